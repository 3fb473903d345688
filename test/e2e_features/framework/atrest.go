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

package framework

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/watchtools"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// WaitForRest waits until the server flow has nothing left to do for the features of
// Kubernetes: each gate that a kube-apiserver reports has a Feature, and each Feature is
// On or Off without a transition. A server that has just started creates Features for
// some seconds, and writes their first state after that.
func (c *Cluster) WaitForRest() []v1alpha1.Feature {
	c.t.Helper()
	gates := sets.New[string]()
	c.WaitForReports("of kube-apiserver", func(reports []v1alpha1.FeatureReport) bool {
		for _, report := range reports {
			if report.Spec.Component == localcluster.APIServer {
				for _, feature := range report.Spec.Features {
					gates.Insert(feature.Name)
				}
			}
		}
		return len(gates) > 0
	})
	ctx, cancel := context.WithTimeout(c.t.Context(), Patience)
	defer cancel()
	source := cache.NewListWatchFromClient(c.Features.FeaturesV1alpha1().RESTClient(), "features", metav1.NamespaceSystem, fields.Everything())
	known := map[string]v1alpha1.Feature{}
	err := watchtools.UntilWithSync(ctx, source, &v1alpha1.Feature{}, nil, func(event watch.Event) (bool, error) {
		feature, ok := event.Object.(*v1alpha1.Feature)
		if !ok {
			return false, nil
		}
		known[feature.Name] = *feature
		if event.Type == watch.Deleted {
			delete(known, feature.Name)
		}
		return len(known) >= len(gates) && len(atWork(gates, known)) == 0, nil
	})
	if err != nil {
		c.t.Fatalf("waiting for all features to be at rest: %v; these of %d gates are not:\n%s", err, len(gates), strings.Join(atWork(gates, known), "\n"))
	}
	var all []v1alpha1.Feature
	for _, name := range slices.Sorted(maps.Keys(known)) {
		all = append(all, known[name])
	}
	return all
}

// atWork describes each feature that is not at rest.
func atWork(gates sets.Set[string], known map[string]v1alpha1.Feature) []string {
	var all []string
	for name := range gates {
		if _, ok := known[name]; !ok {
			all = append(all, name+" has no Feature")
		}
	}
	for name, f := range known {
		rests := f.Status.State == v1alpha1.StateOn || f.Status.State == v1alpha1.StateOff
		if !rests || f.Status.Transition != nil || len(f.Status.Tasks) > 0 {
			all = append(all, fmt.Sprintf("%s is %q, its transition %+v with tasks %+v", name, f.Status.State, f.Status.Transition, f.Status.Tasks))
		}
	}
	slices.Sort(all)
	return all
}
