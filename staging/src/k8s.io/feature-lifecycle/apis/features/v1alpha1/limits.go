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

package v1alpha1

// Limits that validation holds and that writers have to keep: a status that is
// refused for one long name would stop everything.
const (
	// MaxNameLength is the longest name of a gate, component, instance or task.
	MaxNameLength = 253
	// MaxTasks is the most tasks that one transition has, TaskWaitForUses
	// included.
	MaxTasks = 100
	// MaxCheckpointLength is the longest checkpoint of a task. A continue token
	// has some hundred characters.
	MaxCheckpointLength = 4096
	// MaxGone is how many instances status.rollout.gone names.
	MaxGone = 20
)
