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

package controlplane

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/rawobject"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// removedField is looked for in objects. It is not safe for concurrent use.
type removedField struct {
	task.RemovedField
	// inProtobuf is set by the first object that has the version of the field.
	inProtobuf *rawobject.Field
}

// in returns whether the bytes of an object have the field. Decoding drops it, so the bytes
// themselves are read: a number in the message that the path leads to, or a key where they
// are not protobuf. Bytes of another version than the field's have none. Bytes that cannot be
// read are an error: what they hold is not known.
func (f *removedField) in(plain []byte) (bool, error) {
	resource := f.Resource.GroupResource()
	if !bytes.HasPrefix(plain, protobufPrefix) {
		content, err := contentOf(plain)
		if err != nil {
			return false, err
		}
		if err := isOf(content.GroupVersionKind(), resource); err != nil || content.GroupVersionKind().GroupVersion() != f.Resource.GroupVersion() {
			return false, err
		}
		return task.Field{Resource: resource, Path: f.Path}.In(content.Object)
	}
	object, err := rawobject.Parse(plain)
	if err != nil {
		return false, err
	}
	kind := schema.FromAPIVersionAndKind(object.APIVersion(), object.Kind())
	if err := isOf(kind, resource); err != nil || kind.GroupVersion() != f.Resource.GroupVersion() {
		return false, err
	}
	if f.inProtobuf == nil {
		typ, err := structOf(legacyscheme.Scheme, kind)
		if err != nil {
			return false, fmt.Errorf("%w, which shows the numbers of fields", err)
		}
		if f.inProtobuf, err = rawobject.NewRemovedField(typ, f.Path, f.Number); err != nil {
			return false, err
		}
	}
	return f.inProtobuf.Holds(object)
}

// texts reads what is not protobuf, as the storage of built-in resources does, without
// knowing kinds.
var texts = serializer.NewCodecFactory(runtime.NewScheme(), serializer.WithSerializer(cbor.NewSerializerInfo)).UniversalDeserializer()

// contentOf returns an object that is stored as JSON, YAML or CBOR with all its fields.
func contentOf(plain []byte) (*unstructured.Unstructured, error) {
	content := &unstructured.Unstructured{}
	if _, _, err := texts.Decode(plain, nil, content); err != nil {
		return nil, fmt.Errorf("reading it as JSON, YAML or CBOR: %w", withoutBytes(err))
	}
	return content, nil
}
