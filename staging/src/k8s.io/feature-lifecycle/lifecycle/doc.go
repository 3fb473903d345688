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

// Package lifecycle has the types that a feature's author uses: one literal of
// Feature for each gate that leaves data behind or that may be set centrally.
//
//	lifecycle.Feature{
//		Name:      "MaxUnavailableStatefulSet",
//		OnDisable: lifecycle.Tasks{lifecycle.ClearField(statefulSets, "spec.updateStrategy.rollingUpdate.maxUnavailable")},
//	}
//
// Kubernetes' own literals are in pkg/featurelifecycle/catalog of the fork; operators pass theirs
// to the controller in lifecycle/controller. A feature that declares nothing
// gets reporting and waiting for uses all the same. Nothing in this package runs.
package lifecycle
