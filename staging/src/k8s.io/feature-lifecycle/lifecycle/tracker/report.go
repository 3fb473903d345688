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

package tracker

import v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"

// ControllerStopped is true for the report of a process that runs no server flow any more: others
// look after the features that it would.
func ControllerStopped(report *v1alpha1.FeatureReport) bool {
	return report.Annotations[v1alpha1.AnnotationControllerStopped] == "true"
}

// Terminating is true for the report of a process that ends, or has ended, in order, and
// could not take its report away: it says nothing of a live user any more. The server
// flow and tools use the same.
func Terminating(report *v1alpha1.FeatureReport) bool {
	return report.Annotations[v1alpha1.AnnotationTerminating] == "true"
}
