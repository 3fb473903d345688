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

package catalog

import (
	"cmp"
	"slices"

	"k8s.io/feature-lifecycle/lifecycle"
)

// All returns the verdicts on all gates, sorted by name.
func All() []Entry {
	entries := slices.Concat(stateless, nodeLocal, apiMachinery, apps, auth, autoscaling, dra, network, podsOfNodes,
		selinux, spreading, storage, workloadAware)
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return entries
}

// Features returns what the server flow needs: the features that declare
// something, sorted by name.
func Features() []lifecycle.Feature {
	var features []lifecycle.Feature
	for _, e := range All() {
		if len(e.OnEnable) > 0 || len(e.OnDisable) > 0 || len(e.Versions) > 0 || e.Control != "" {
			features = append(features, e.Feature)
		}
	}
	return features
}
