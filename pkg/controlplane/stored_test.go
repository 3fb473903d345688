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
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/feature-lifecycle/lifecycle/task"
	_ "k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane" // the built-in types
)

// prefixes says where resources are stored as upstream's factory does: the group
// is not in it.
type prefixes struct{}

func (prefixes) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{ResourcePrefix: "/" + strings.ToLower(resource.Resource)}, nil
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
