//go:build linux

/*
Copyright The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package gates

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/feature-lifecycle/lifecycletest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane" // all kinds of Kubernetes
)

// registry is where kube-apiserver stores everything.
const registry = "/registry/"

// cborPrefix is what apimachinery's CBOR begins with (RFC 8949, 3.4.6).
var cborPrefix = []byte{0xd9, 0xd9, 0xf7}

// moment is everything in etcd at one time: what decodes to an object, and the
// keys of all.
type moment struct {
	*lifecycletest.View
	keys []string
}

// moment reads everything from etcd, at one revision: no server is asked, no
// default is filled in, no gate drops a field.
func (w *world) moment(t *testing.T) moment {
	t.Helper()
	response, err := w.Etcd().Get(t.Context(), registry, clientv3.WithPrefix())
	if err != nil {
		t.Fatalf("reading etcd: %v", err)
	}
	var objects []lifecycletest.Object
	var keys []string
	for _, kv := range response.Kvs {
		keys = append(keys, string(kv.Key))
		object, encoding, err := decode(kv.Value)
		if errors.Is(err, errNotOurs) {
			continue
		}
		if err != nil {
			t.Fatalf("decoding %s: %v", kv.Key, err)
		}
		plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		objects = append(objects, lifecycletest.Object{
			Unstructured: object, Resource: plural.GroupResource(), Key: string(kv.Key), Revision: kv.ModRevision, MediaType: encoding,
		})
	}
	return moment{View: lifecycletest.NewView(objects, w.Mapper, convert), keys: keys}
}

// stored is what decodes of all that is in etcd now.
func (w *world) stored(t *testing.T) *lifecycletest.View {
	t.Helper()
	return w.moment(t).View
}

// errNotOurs is for what is not an object, or of a kind that no gate of
// Kubernetes stores anything in.
var errNotOurs = errors.New("not an object of Kubernetes' own kinds")

// decode reads the bytes of an object in whichever encoding they are.
func decode(data []byte) (*unstructured.Unstructured, string, error) {
	switch {
	case bytes.HasPrefix(data, []byte("{")):
		content := map[string]any{}
		if err := json.Unmarshal(data, &content); err != nil || content["kind"] == nil {
			return nil, "", errNotOurs
		}
		object := &unstructured.Unstructured{}
		return object, runtime.ContentTypeJSON, object.UnmarshalJSON(data)
	case bytes.HasPrefix(data, cborPrefix):
		object := &unstructured.Unstructured{}
		_, _, err := cbor.NewSerializer(legacyscheme.Scheme, legacyscheme.Scheme).Decode(data, nil, object)
		return object, runtime.ContentTypeCBOR, err
	}
	// A deserializer neither converts nor fills in defaults.
	typed, kind, err := legacyscheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if runtime.IsNotRegisteredError(err) || runtime.IsMissingKind(err) || (err != nil && !bytes.HasPrefix(data, []byte("k8s\x00"))) {
		return nil, "", errNotOurs
	}
	if err != nil {
		return nil, "", err
	}
	object, err := asUnstructured(typed, *kind)
	return object, runtime.ContentTypeProtobuf, err
}

func asUnstructured(typed runtime.Object, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(kind)
	return object, nil
}

// convert returns a built-in object in another version. Conversion fills in no
// defaults either.
func convert(object *unstructured.Unstructured, version schema.GroupVersion) (*unstructured.Unstructured, error) {
	kind := object.GroupVersionKind()
	scheme := legacyscheme.Scheme
	if kind.Group == apiextensions.GroupName {
		scheme = apiextensionsapiserver.Scheme
	}
	typed, err := scheme.New(kind)
	if err != nil {
		return nil, fmt.Errorf("converting it to %s: %w", version, err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return nil, err
	}
	internal, err := scheme.UnsafeConvertToVersion(typed, runtime.InternalGroupVersioner)
	if err != nil {
		return nil, err
	}
	converted, err := scheme.UnsafeConvertToVersion(internal, version)
	if err != nil {
		return nil, err
	}
	return asUnstructured(converted, version.WithKind(kind.Kind))
}
