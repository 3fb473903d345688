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
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes/pkg/features"
)

var autoscalers = autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers")

// autoscaling are the features of SIG Autoscaling.
var autoscaling = []Entry{
	{Feature: lifecycle.Feature{
		// With the gate off the controller uses the cluster's tolerance,
		// whether the field is there or not.
		Name: features.HPAConfigurableTolerance,
		OnDisable: lifecycle.Tasks{
			lifecycle.ClearField(autoscalers, "spec.behavior.scaleUp.tolerance"),
			lifecycle.ClearField(autoscalers, "spec.behavior.scaleDown.tolerance"),
		},
		Control: lifecycle.Dynamic,
	}, OtherCopies: appliedCopies},
	{Feature: lifecycle.Feature{
		// With the gate off no change raises the generation, and the
		// controller does not observe it: to clients that compare the two,
		// every later change would seem to be observed. Without the field they
		// know that nothing is said.
		Name:      features.HPAGeneration,
		OnDisable: lifecycle.Tasks{lifecycle.ClearField(autoscalers, "status.observedGeneration")},
		Control:   lifecycle.Dynamic,
	}, Retained: []Remainder{{
		Field: task.Field{Resource: autoscalers.GroupResource(), Path: "metadata.generation"},
		Why:   "a generation cannot be removed or lowered; it stays as it is while the gate is off, no component reads it then, and it rises again from there",
	}}, OtherCopies: statusCopies},
	{Feature: lifecycle.Feature{
		// Without the field the minimum is 1: removing a 0 would start pods of
		// workloads that are scaled to zero on purpose. The condition is of no
		// use to a controller with the gate off, which removes it only from
		// autoscalers whose workload has no pods.
		Name: features.HPAScaleToZero,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(autoscalers, "minReplicas 0", "spec.minReplicas=0"),
			lifecycle.ClearField(autoscalers, "status.conditions[type=ScaledToZero]"),
		},
		Control: lifecycle.Dynamic,
	}, OtherCopies: "last-applied annotations and what GitOps tools apply again keep the 0: the server refuses it in an object without it; status is not copied"},
}
