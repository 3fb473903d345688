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
	"k8s.io/client-go/tools/cache"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/intern"
)

// shareReports returns a transformation for informers: reports share what they have
// alike, and lose what the server flow does not read.
func shareReports() cache.TransformFunc {
	lists := intern.NewLists[v1alpha1.ReportedFeature]()
	return func(object any) (any, error) {
		if report, ok := object.(*v1alpha1.FeatureReport); ok {
			report.ManagedFields, report.OwnerReferences = nil, nil
			report.Spec.Features = lists.Of(report.Spec.Features)
		}
		return object, nil
	}
}
