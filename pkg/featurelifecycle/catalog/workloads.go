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
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	"k8s.io/kubernetes/pkg/features"
)

var (
	podGroups = schedulingv1beta1.SchemeGroupVersion.WithResource("podgroups")
	workloads = schedulingv1beta1.SchemeGroupVersion.WithResource("workloads")
)

const podGroupCopies = "a Workload's templates are copied to PodGroups when those are made; both are looked after. Last-applied annotations and what GitOps tools apply again keep the fields: the server drops them when they are applied to an object without them"

// workloadAware are the features of SIG Scheduling around Workloads. The
// collections workloads and podgroups go away with GenericWorkload, which all
// others here need; what the others stored is gone then, too.
var workloadAware = []Entry{
	{Feature: lifecycle.Feature{
		// A Workload's spec cannot be changed, and neither can a PodGroup's
		// claims. A group goes after its pods (its finalizer sees to that), so
		// once no group has claims, none is in use by one. The claim controller
		// without the gate keeps a reservation that it does not know
		// (syncClaim), and with it the claim forever, so it is removed. Objects
		// made for a group are not collected once groups are not served.
		Name: features.DRAWorkloadResourceClaims,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(workloads, "resource claims in templates", "spec.podGroupTemplates[*].resourceClaims"),
			lifecycle.WaitForNone(podGroups, "resource claims", "spec.resourceClaims", "status.resourceClaimStatuses"),
			mayBind(lifecycle.ClearField(resourceClaims, "status.reservedFor[resource=podgroups]")),
			lifecycle.WaitForNone(resourceClaims, "a PodGroup as their owner", "metadata.ownerReferences[apiVersion="+schedulingv1beta1.SchemeGroupVersion.String()+"]"),
		},
	}, OtherCopies: podGroupCopies, OnReapply: "a claim that is applied with a PodGroup as its owner is stored; no controller writes one, and condition Clean names it", APIs: []API{workloadsAPI}, BootstrapRBAC: true},
	{Feature: lifecycle.Feature{
		// A Pod's group cannot be changed, and removing it from a template
		// would roll pods. Once no pod has one, nothing is lost with the
		// groups. The controller that takes their finalizer goes with the gate.
		Name: features.GenericWorkload,
		// Objects of 1.35 may remain when no server with this API ran at that
		// version. The first server that knows Features adopts them at its own
		// version, and the upgrade below never runs.
		OnEnable:  lifecycle.Tasks{lifecycle.ClearUnreadable(workloads.GroupResource())},
		OnDisable: clearWorkloads(),
		// 1.35 stores Workloads as scheduling.k8s.io/v1alpha1, which 1.36 does
		// not have: it cannot decode them, and one makes every LIST fail. 1.36
		// stores v1alpha2, which is in no release before it.
		Versions: lifecycle.Versions{{
			At:          "1.36",
			OnUpgrade:   lifecycle.Tasks{lifecycle.ClearUnreadable(workloads.GroupResource())},
			OnDowngrade: clearWorkloads(),
		}},
	}, OtherCopies: templateCopies, APIs: []API{workloadsAPI}, BootstrapRBAC: true, Controller: "podgroup-protection-controller"},
	{Feature: lifecycle.Feature{
		// With the gate off a PodGroup may lose the field, and the scheduler
		// ignores it. A Workload's templates cannot be changed.
		Name: features.TopologyAwareWorkloadScheduling,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(workloads, "scheduling constraints in templates", "spec.podGroupTemplates[*].schedulingConstraints"),
			lifecycle.ClearField(podGroups, "spec.schedulingConstraints"),
		},
	}, OtherCopies: podGroupCopies, APIs: []API{workloadsAPI}},
	{Feature: lifecycle.Feature{
		// As TopologyAwareWorkloadScheduling. A PodGroup's disruptionMode
		// cannot be removed: defaulting, which queries no gate, puts Pod in
		// its place, and with the gate off validation forbids that change.
		Name: "WorkloadAwarePreemption",
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(workloads, "preemption in templates",
				"spec.podGroupTemplates[*].disruptionMode", "spec.podGroupTemplates[*].priorityClassName", "spec.podGroupTemplates[*].priority"),
			lifecycle.WaitForNone(podGroups, "disruption mode PodGroup", "spec.disruptionMode=PodGroup"),
			lifecycle.ClearField(podGroups, "spec.priorityClassName"),
			lifecycle.ClearField(podGroups, "spec.priority"),
		},
	}, Retained: []Remainder{{
		Field: task.Field{Resource: podGroups.GroupResource(), Path: "spec.disruptionMode"},
		Why:   "defaulting writes Pod into every PodGroup, gate or not; nothing reads it, and it goes with the PodGroup",
	}}, OtherCopies: podGroupCopies, APIs: []API{workloadsAPI}},
	{Feature: lifecycle.Feature{
		// The Job controller makes a Workload and a PodGroup for a Job, which
		// own them, and puts the group into the Job's pods. They go with the
		// Job: to delete them sooner would take pods that wait for their group
		// their rules. Once the groups are gone, so are their pods: the
		// groups' finalizer sees to that.
		Name: features.WorkloadWithJob,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(workloads, "a Job as its owner", "metadata.ownerReferences[apiVersion="+batchv1.SchemeGroupVersion.String()+"]"),
			lifecycle.WaitForNone(podGroups, "a Job as its owner", "metadata.ownerReferences[apiVersion="+batchv1.SchemeGroupVersion.String()+"]"),
		},
	}, OtherCopies: "they are not copied", APIs: []API{workloadsAPI}, BootstrapRBAC: true},
}

// mayBind permits a task to change what claims are reserved for, which the server
// requires beside the permission to change their status (KEP-4817's granular
// authorization; pkg/registry/resource, AuthorizedForBinding).
func mayBind(t task.Task) task.Task {
	t.Rules = append(t.Rules, rbacv1.PolicyRule{
		APIGroups: []string{resourcev1.GroupName}, Resources: []string{"resourceclaims/" + resourcev1.SubresourceBinding}, Verbs: []string{"patch"},
	})
	return t
}

// clearWorkloads ends the collections workloads and podgroups, once no pod needs
// them.
func clearWorkloads() lifecycle.Tasks {
	return slices.Concat(
		lifecycle.WaitForNoneInPods("a scheduling group", "spec.schedulingGroup"),
		lifecycle.Tasks{
			lifecycle.ClearCollection(workloads.GroupResource()),
			lifecycle.ClearCollection(podGroups.GroupResource(), scheduling.PodGroupProtectionFinalizer),
		},
	)
}
