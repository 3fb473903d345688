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
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// Fields that upstream replaced in place, in API versions that servers of both sides
// store. hack/renamed finds them at each move to another minor version, and its test
// holds them here with their numbers. The feature that stored a field has it in its
// OnDisable by clearRemoved.
var (
	// nodeAllocatableMappings is replaced by nodeAllocatableResources, of another type.
	nodeAllocatableMappings = task.RemovedField{
		Resource: resourceSlices, Path: "spec.devices[*].nodeAllocatableResourceMappings", Number: 13,
		At: "1.37", Instead: "spec.devices[*].nodeAllocatableResources",
	}
	// nodeAllocatableOfPods is replaced by mapping and overhead.
	nodeAllocatableOfPods = task.RemovedField{
		Resource: pods, Path: "status.nodeAllocatableResourceClaimStatuses[*].resources", Number: 3,
		At: "1.37", Instead: "status.nodeAllocatableResourceClaimStatuses[*].mapping",
	}
)

// clearRemoved returns the tasks that end fields which this version does not have.
func clearRemoved(fields ...task.RemovedField) lifecycle.Tasks {
	var tasks lifecycle.Tasks
	for _, field := range fields {
		tasks = append(tasks, lifecycle.ClearRemovedField(field))
	}
	return tasks
}
