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

package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	listers "k8s.io/feature-lifecycle/client/listers/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// TestClearedByNamesFeature is named with what that feature waits for itself: its
// dependants wait for it once the API has gone with its gate.
func TestClearedByNamesFeature(t *testing.T) {
	groups := schema.GroupResource{Group: "scheduling.k8s.io", Resource: "podgroups"}
	clearing, waiting := lifecycle.ClearCollection(groups), "WaitForNone/pods/a-scheduling-group"
	for name, tc := range map[string]struct {
		state    v1alpha1.FeatureState
		tasks    []v1alpha1.FeatureTask
		resource schema.GroupResource
		want     string
	}{
		"it waits for pods": {v1alpha1.StateTurningOff, []v1alpha1.FeatureTask{{Name: waiting, Message: "waiting for 2 pods using a scheduling group: ns/a, ns/b"}, {Name: clearing.Name}}, groups,
			"feature G, which deletes them and is TurningOff at " + waiting + " (waiting for 2 pods using a scheduling group: ns/a, ns/b)"},
		"it is at it":               {v1alpha1.StateTurningOff, []v1alpha1.FeatureTask{{Name: clearing.Name, Message: "busy"}}, groups, "feature G, which deletes them and is TurningOff at " + clearing.Name},
		"it is off, with leftovers": {v1alpha1.StateOff, nil, groups, "feature G, which is Off and has them left: create the subresource cleanup of it"},
		"it is on":                  {v1alpha1.StateOn, nil, groups, ""},
		"of another collection":     {v1alpha1.StateOff, nil, schema.GroupResource{Resource: "pods"}, ""},
	} {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		if err := indexer.Add(&v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "G"}, Status: v1alpha1.FeatureStatus{State: tc.state, Tasks: tc.tasks}}); err != nil {
			t.Fatal(err)
		}
		c := &observer{
			config:   &Config{Settings: transition.Settings{HowToClean: "create the subresource cleanup"}},
			features: declarations{"G": {Name: "G", OnDisable: lifecycle.Tasks{clearing}}, "Other": {Name: "Other"}},
			lister:   listers.NewFeatureLister(indexer).Features("ns"),
		}
		if got := c.clearedBy(tc.resource); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
