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
	"context"
	"encoding/json"
	"errors"
	"maps"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/aes"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane" // the built-in types
)

// prefixes describes where resources are stored as upstream's factory does: the group
// is not in it.
type prefixes struct{}

func (prefixes) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	config := storagebackend.NewDefaultConfig("/registry", nil)
	// No server listens: requests that get so far fail.
	config.Transport.ServerList = []string{"http://127.0.0.1:1"}
	return generic.RESTOptions{ResourcePrefix: "/" + strings.ToLower(resource.Resource), StorageConfig: config.ForResource(resource)}, nil
}

// TestAWrongGroupReachesNothing: its objects would be those of another group.
func TestAWrongGroupReachesNothing(t *testing.T) {
	s := NewStored(prefixes{}, prefixes{}, func(schema.GroupResource) bool { return false })
	for resource, says := range map[schema.GroupResource]string{
		{Group: "certificates.k8s.io", Resource: "clustertrustbundles"}: "",
		{Group: "scheduling.k8s.io", Resource: "podgroups"}:             "",
		{Group: "lifecycle.k8s.io", Resource: "evictions"}:              "",
		{Group: "networking.k8s.io", Resource: "leases"}:                "under the same keys",
		{Group: "", Resource: "minions"}:                                "no kind of group",
		{Group: "", Resource: "masterleases"}:                           "no kind of group",
		{Group: "extensions", Resource: "deployments"}:                  "under the same keys",
		{Group: "apps", Resource: "deployments"}:                        "under the same keys",
		{Group: "events.k8s.io", Resource: "events"}:                    "under the same keys",
	} {
		_, err := exampleOf(resource, s.sameKeys)
		if (err == nil) != (says == "") || (err != nil && !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v, want it to say %q", resource, err, says)
		}
	}
	if _, _, err := s.List(t.Context(), schema.GroupResource{Group: "networking.k8s.io", Resource: "leases"}, 1, ""); err == nil {
		t.Error("Leases are listed under a wrong group")
	}
	if err := s.Delete(t.Context(), schema.GroupResource{Resource: "minions"}, task.StoredObject{Key: "/registry/minions/n"}); err == nil {
		t.Error("a Node is deleted under a wrong name")
	}
}

// TestDeletableObjectsLeftToAPI: finalizers and admission have their say.
func TestDeletableObjectsLeftToAPI(t *testing.T) {
	bundles := schema.GroupResource{Group: "certificates.k8s.io", Resource: "clustertrustbundles"}
	custom := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	ctx, cancel := context.WithCancel(t.Context())
	// Calls to etcd end at once.
	cancel()
	for name, tc := range map[string]struct {
		resource   schema.GroupResource
		served     bool
		unreadable error
		refused    bool
	}{
		"what is served":                      {bundles, true, nil, true},
		"what is served and does not decode":  {bundles, true, errors.New("garbage"), false},
		"what is not served":                  {bundles, false, nil, false},
		"a custom resource":                   {custom, false, nil, true},
		"a custom resource that is no longer": {custom, false, errors.New("garbage"), false},
	} {
		s := NewStored(prefixes{}, prefixes{}, func(schema.GroupResource) bool { return tc.served })
		err := s.Delete(ctx, tc.resource, task.StoredObject{Key: "/registry/" + tc.resource.Resource + "/a", Unreadable: tc.unreadable})
		if refused := err != nil && strings.Contains(err.Error(), "for the API to delete"); err == nil || refused != tc.refused {
			t.Errorf("%s: %v, want it refused: %t", name, err, tc.refused)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestMetadataOfUndecodableObjects: all kinds have it in the same place.
func TestMetadataOfUndecodableObjects(t *testing.T) {
	gone := &schedulingv1beta1.Workload{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", Finalizers: []string{"example.net/billing"}}}
	raw, err := gone.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	enveloped, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "scheduling.k8s.io/v1alpha1", Kind: "Workload"}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for name, plain := range map[string]string{
		"protobuf": "k8s\x00" + string(enveloped),
		"JSON":     `{"apiVersion":"scheduling.k8s.io/v1alpha1","kind":"Workload","metadata":{"name":"a","uid":"u","finalizers":["example.net/billing"]}}`,
		"YAML":     "apiVersion: scheduling.k8s.io/v1alpha1\nkind: Workload\nmetadata:\n  name: a\n  uid: u\n  finalizers:\n  - example.net/billing\n",
	} {
		if about := metadataIn([]byte(plain)); about.UID != "u" || len(about.Finalizers) != 1 || about.Finalizers[0] != "example.net/billing" {
			t.Errorf("%s: %v", name, about)
		}
	}
	for _, garbage := range []string{"", "no server can decode this", "k8s\x00garbage", "{"} {
		if about := metadataIn([]byte(garbage)); about.UID != "" || about.Finalizers != nil {
			t.Errorf("%q: %v", garbage, about)
		}
	}
}

// keys is the part of etcd that Stored reads.
type keys struct {
	clientv3.KV
	values map[string][]byte
	// written are the keys that were put, in order.
	written []string
}

func (k *keys) Get(_ context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	op := clientv3.OpGet(key, options...)
	found := &clientv3.GetResponse{}
	for _, name := range slices.Sorted(maps.Keys(k.values)) {
		switch {
		case name < key || name >= string(op.RangeBytes()) && name != key:
		case int64(len(found.Kvs)) == op.Limit():
			found.More = true
		default:
			found.Kvs = append(found.Kvs, &mvccpb.KeyValue{Key: []byte(name), Value: k.values[name], ModRevision: int64(len(name))})
		}
	}
	return found, nil
}

// put stores an object as JSON, and returns where its bytes are as long as they are used.
func (k *keys) put(t *testing.T, key string, object map[string]any) weak.Pointer[byte] {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	k.values[key] = data
	return weak.Make(&data[0])
}

// storedSlices is access to ResourceSlices below a prefix, encrypted at rest or not.
func storedSlices(transformer value.Transformer) (s *Stored, etcd *keys, prefix string) {
	s, etcd, prefix = NewStored(prefixes{}, prefixes{}, func(schema.GroupResource) bool { return true }), &keys{values: map[string][]byte{}}, "/registry/resourceslices/"
	resource := mappings.Resource.GroupResource()
	config := storagebackend.NewDefaultConfig("/registry", legacyscheme.Codecs.LegacyCodec(mappings.Resource.GroupVersion()))
	config.Transformer = transformer
	s.places[resource] = place{resource: resource, client: &clientv3.Client{KV: etcd}, prefix: prefix, config: config.ForResource(resource), builtIn: true}
	return s, etcd, prefix
}

// TestFieldIsFoundInEncryptedObjects: the objects that hold it are listed page by page, in
// whatever encoding, and those that cannot be searched are an error and not left out.
func TestFieldIsFoundInEncryptedObjects(t *testing.T) {
	transformer, _, err := aes.NewGCMTransformerWithUniqueKeyUnsafe()
	if err != nil {
		t.Fatal(err)
	}
	s, etcd, prefix := storedSlices(transformer)
	put := func(name, as string, plain []byte) {
		t.Helper()
		data, err := transformer.TransformToStorage(t.Context(), plain, value.DefaultContext(prefix+as))
		if err != nil {
			t.Fatal(err)
		}
		etcd.values[prefix+name] = data
	}
	text := publishedObject(t, "v1.36.0", "resource.k8s.io.v1.ResourceSlice.json")
	for name, plain := range map[string][]byte{
		"a": publishedObject(t, "v1.36.0", "resource.k8s.io.v1.ResourceSlice.pb"),
		"b": publishedObject(t, "v1.36.0", "resource.k8s.io.v1.ResourceSlice.after_roundtrip.pb"),
		"c": publishedObject(t, "HEAD", "resource.k8s.io.v1.ResourceSlice.pb"),
		"d": text, "e": asYAML(t, text), "f": asCBOR(t, text),
		"g": publishedObject(t, "v1.36.0", "resource.k8s.io.v1beta2.ResourceSlice.pb"),
	} {
		put(name, name, plain)
	}
	list := func() (found []task.StoredObject, pages int, err error) {
		for from := ""; pages == 0 || from != ""; pages++ {
			var page []task.StoredObject
			if page, from, err = s.ListHolding(t.Context(), mappings, 2, from); err != nil {
				return nil, pages, err
			}
			found = append(found, page...)
		}
		return found, pages, nil
	}
	var want []task.StoredObject
	for _, name := range []string{"a", "d", "e", "f"} {
		want = append(want, task.StoredObject{Name: name, Key: prefix + name, UID: "uidValue", Revision: int64(len(prefix) + 1)})
	}
	found, pages, err := list()
	if diff := cmp.Diff(want, found); diff != "" || err != nil || pages != 4 {
		t.Errorf("in %d pages, %v; what holds the field (-want +got):\n%s", pages, err, diff)
	}
	put("h", "h", []byte("secret"))
	if _, _, err := list(); err == nil || !strings.Contains(err.Error(), "looking for "+mappings.Path+" in the stored object "+prefix+"h: ") || strings.Contains(err.Error(), "secret") {
		t.Errorf("an object that no server can read: %v", err)
	}
	// Moved by hand: the key is part of what is encrypted.
	put("h", "i", text)
	if _, _, err := list(); err == nil || !strings.Contains(err.Error(), "decrypting the stored object "+prefix+"h") {
		t.Errorf("an object whose bytes are another's: %v", err)
	}
}

// TestListedObjectsDoNotKeepBytes: tasks keep the objects of whole collections, some for
// days.
func TestListedObjectsDoNotKeepBytes(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	whole := map[string]any{"apiVersion": mappings.Resource.GroupVersion().String(), "kind": "ResourceSlice",
		"metadata": map[string]any{"name": "a", "uid": "u", "annotations": map[string]any{"big": big}}, "spec": map[string]any{"driver": "d", "devices": []any{map[string]any{"name": "d", "nodeAllocatableResourceMappings": map[string]any{"cpu": map[string]any{}}}}}}
	noKind := maps.Clone(whole)
	delete(noKind, "kind")
	for name, tc := range map[string]struct {
		object     map[string]any
		list       func(s *Stored) ([]task.StoredObject, string, error)
		unreadable bool
	}{
		"an object": {whole, func(s *Stored) ([]task.StoredObject, string, error) {
			return s.List(t.Context(), mappings.Resource.GroupResource(), 10, "")
		}, false},
		"one that does not decode": {noKind, func(s *Stored) ([]task.StoredObject, string, error) {
			return s.List(t.Context(), mappings.Resource.GroupResource(), 10, "")
		}, true},
		"one that holds a field": {whole, func(s *Stored) ([]task.StoredObject, string, error) {
			return s.ListHolding(t.Context(), mappings, 10, "")
		}, false},
	} {
		s, etcd, prefix := storedSlices(nil)
		bytes := etcd.put(t, prefix+"a", tc.object)
		page, _, err := tc.list(s)
		if err != nil || len(page) != 1 || page[0].UID != "u" || (page[0].Unreadable != nil) != tc.unreadable {
			t.Fatalf("%s: listed %v, %v", name, page, err)
		}
		if tc.unreadable && len(page[0].Unreadable.Error()) > 2*maxUnreadable {
			t.Errorf("%s: the error has %d bytes", name, len(page[0].Unreadable.Error()))
		}
		clear(etcd.values)
		goruntime.GC()
		if bytes.Value() != nil {
			t.Errorf("%s: what was listed keeps the bytes", name)
		}
		goruntime.KeepAlive(page)
	}
}
