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
	"errors"
	"strings"
	"testing"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/feature-lifecycle/lifecycle/task"
	_ "k8s.io/kubernetes/pkg/api/legacyscheme"
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
		_, err := s.example(resource)
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
