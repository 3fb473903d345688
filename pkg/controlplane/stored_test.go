/*
Copyright 2026 The Kubernetes Authors.

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

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/feature-lifecycle/lifecycle/task"
	_ "k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane" // the built-in types
)

// prefixes says where resources are stored as upstream's factory does: the group
// is not in it.
type prefixes struct{}

func (prefixes) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	config := storagebackend.NewDefaultConfig("/registry", nil)
	// Nobody is there: what gets so far fails.
	config.Transport.ServerList = []string{"http://127.0.0.1:1"}
	return generic.RESTOptions{ResourcePrefix: "/" + strings.ToLower(resource.Resource), StorageConfig: config.ForResource(resource)}, nil
}

// TestAWrongGroupReachesNothing: its objects would be those of another group.
func TestAWrongGroupReachesNothing(t *testing.T) {
	s := NewStored(prefixes{}, prefixes{}, func(schema.GroupResource) bool { return false })
	for resource, says := range map[schema.GroupResource]string{
		{Group: "certificates.k8s.io", Resource: "clustertrustbundles"}: "",
		{Group: "scheduling.k8s.io", Resource: "podgroups"}:             "",
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

// TestWhatTheAPICanDeleteIsLeftToIt: finalizers and admission have their say.
func TestWhatTheAPICanDeleteIsLeftToIt(t *testing.T) {
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
