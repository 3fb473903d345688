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

package tracker

import v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"

// ControllerStopped returns true for the report of a process that no longer runs the
// server flow: other servers reconcile its features.
func ControllerStopped(report *v1alpha1.FeatureReport) bool {
	return report.Annotations[v1alpha1.AnnotationControllerStopped] == "true"
}

// Terminating returns true for the report of a process that terminates gracefully, or
// has done so, and could not delete its report. It no longer describes a live user. The
// server flow and tools use the same.
func Terminating(report *v1alpha1.FeatureReport) bool {
	return report.Annotations[v1alpha1.AnnotationTerminating] == "true"
}
