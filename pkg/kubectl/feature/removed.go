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

package feature

// harmlessWhenRemoved has gates that this build's version removed although their features
// were not generally available, with the reason why what they stored does no harm there.
// The catalog has only gates that exist.
var harmlessWhenRemoved = map[string]string{
	"GangScheduling":                "it stores nothing: GenericWorkload, which it became a part of, has the tasks for PodGroups",
	"PreventStaticPodAPIReferences": "it stores nothing: kubelets refuse static pods that refer to API objects, without a gate",
	"WorkloadAwarePreemption":       "what it stored is in Workloads and PodGroups, which the tasks of GenericWorkload handle",
}
