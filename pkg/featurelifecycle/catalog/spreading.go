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
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes/pkg/features"
)

var runtimeClasses = nodev1.Resource("runtimeclasses")

const noComparisons = "validation of RuntimeClasses refuses the operators, gate or not (apis/node/validation): they are never stored"

// spreading are the features of SIG Scheduling in the specs of Pods.
var spreading = []Entry{
	{Feature: lifecycle.Feature{
		Name:      features.MatchLabelKeysInPodTopologySpread,
		OnDisable: lifecycle.WaitForNoneInPods("matchLabelKeys in topologySpreadConstraints", "spec.topologySpreadConstraints[*].matchLabelKeys"),
		Control:   lifecycle.Central,
	}, OtherCopies: templateCopies},
	// Only kube-apiserver queries the gate, when a Pod is created. The
	// scheduler evaluates matchLabelKeys in any case
	// (podtopologyspread/common.go).
	{Feature: lifecycle.Feature{Name: features.MatchLabelKeysInPodTopologySpreadSelectorMerge},
		Retained: []Remainder{{
			Field: task.Field{Resource: pods.GroupResource(), Path: "spec.topologySpreadConstraints[*].labelSelector.matchExpressions"},
			Why:   "the merged selector means the same as matchLabelKeys beside it, so the Pod is spread as without it; a Pod's constraints cannot be changed, and they go with the Pod",
		}},
		OtherCopies: "only Pods get it; templates have no merged selectors, and a Pod's spec is not copied"},
	{Feature: lifecycle.Feature{
		// A toleration with an unknown operator tolerates nothing: Pods would
		// be evicted, and DaemonSets would delete theirs.
		Name:      features.TaintTolerationComparisonOperators,
		OnDisable: lifecycle.WaitForNoneInPods("tolerations that compare numbers", "spec.tolerations[*].operator=Lt", "spec.tolerations[*].operator=Gt"),
		Control:   lifecycle.Central,
	}, Retained: []Remainder{
		{Field: task.Field{Resource: runtimeClasses, Path: "scheduling.tolerations[*].operator", Value: "Lt"}, Why: noComparisons, Unstored: true},
		{Field: task.Field{Resource: runtimeClasses, Path: "scheduling.tolerations[*].operator", Value: "Gt"}, Why: noComparisons, Unstored: true},
	}, OtherCopies: valueCopies},
}
