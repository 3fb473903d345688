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

package controller

import (
	"slices"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/lru"
)

// sharedLists is how many different lists of features are shared. Processes of one
// component and version mostly report the same; where they do not, lists beyond that
// are held once for each report.
const sharedLists = 1024

// sharing makes reports share what they say alike. It is safe for concurrent use.
type sharing struct {
	lists *lru.Cache
}

func newSharing() *sharing { return &sharing{lru.New(sharedLists)} }

// report is a transformer of informers: it replaces the list of features of a report
// by an equal one that others have, and drops what the server flow does not read.
func (s *sharing) report(object any) (any, error) {
	report, ok := object.(*v1alpha1.FeatureReport)
	if !ok {
		return object, nil
	}
	report.ManagedFields = nil
	hash := hashGates(report.Spec.Features)
	if known, ok := s.lists.Get(hash); ok && slices.Equal(known.([]v1alpha1.ReportedFeature), report.Spec.Features) {
		report.Spec.Features = known.([]v1alpha1.ReportedFeature)
		return report, nil
	}
	report.Spec.Features = slices.Clip(report.Spec.Features)
	s.lists.Add(hash, report.Spec.Features)
	return report, nil
}
