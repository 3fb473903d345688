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
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes/pkg/features"
)

// podGroupFinalizer is PodGroupProtectionFinalizer of upstream's pkg/apis/scheduling, which
// links the internal types of Pods; a test compares them.
const podGroupFinalizer = schedulingv1beta1.GroupName + "/podgroup-protection"

var (
	compositePodGroups = schedulingv1alpha3.SchemeGroupVersion.WithResource("compositepodgroups")
	podGroups          = schedulingv1beta1.SchemeGroupVersion.WithResource("podgroups")
	workloads          = schedulingv1beta1.SchemeGroupVersion.WithResource("workloads")
	jobs               = batchv1.SchemeGroupVersion.WithResource("jobs")
	cronJobs           = batchv1.SchemeGroupVersion.WithResource("cronjobs")
)

const podGroupCopies = "a Workload's templates are copied to PodGroups when those are made; both are looked after. Last-applied annotations and what GitOps tools apply again keep the fields: the server drops them when they are applied to an object without them"

// workloadAware are the features of SIG Scheduling around Workloads. The
// collections workloads and podgroups go away with GenericWorkload, which all
// others here need; what the others stored is gone then, too.
var workloadAware = []Entry{
	{Feature: lifecycle.Feature{
		// A Workload's spec cannot be changed, and neither can a PodGroup's
		// parent. Once no group has one, no composite group is in use.
		Name: features.CompositePodGroup,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(workloads, "composite templates", "spec.compositePodGroupTemplates"),
			lifecycle.WaitForNone(podGroups, "a composite group as their parent", "spec.parentCompositePodGroupName"),
			lifecycle.ClearCollection(compositePodGroups.GroupResource()),
		},
	}, OtherCopies: podGroupCopies, APIs: []API{{
		GroupVersion: schedulingv1alpha3.SchemeGroupVersion, Resources: []string{compositePodGroups.Resource},
		Without: withoutGroups,
	}, workloadsAPI}, BootstrapRBAC: true},
	{Feature: lifecycle.Feature{
		// A Workload's spec cannot be changed, and neither can a PodGroup's
		// claims. A group goes after its pods (its finalizer sees to that), so
		// once no group has claims, none is in use by one. The claim controller
		// without the gate keeps a reservation that it does not know
		// (syncClaim), and with it the claim forever, so it is removed. Objects
		// made for a group are not collected once groups are not served.
		Name: features.DRAWorkloadResourceClaims,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(workloads, "resource claims in templates", ofGroupTemplates("resourceClaims")...),
			lifecycle.WaitForNone(podGroups, "resource claims", "spec.resourceClaims", "status.resourceClaimStatuses"),
			mayBind(lifecycle.ClearField(resourceClaims, "status.reservedFor[resource=podgroups]")),
			waitForNoneOfGroups(groupVersion, groupVersionAlpha, groupVersion136),
		},
		// The garbage collector of either version does not know the other's
		// PodGroups, so it retries the other's claims forever. GenericWorkload
		// deletes the groups at the boundary, with the gate on or off.
		Versions: lifecycle.Versions{{
			At:          "1.37",
			OnUpgrade:   lifecycle.Tasks{waitForNoneOfGroups(groupVersion136)},
			OnDowngrade: lifecycle.Tasks{waitForNoneOfGroups(groupVersion, groupVersionAlpha)},
		}},
	}, OtherCopies: podGroupCopies, OnReapply: "a claim that is applied with a PodGroup as its owner is stored; no controller writes one, and condition Clean names it", APIs: []API{workloadsAPI}, BootstrapRBAC: true},
	{Feature: lifecycle.Feature{
		// A Pod's group cannot be changed, and removing it from a template
		// would roll pods. Once no pod has one, nothing is lost with the
		// groups. The controller that takes their finalizer goes with the gate.
		Name: features.GenericWorkload,
		// Objects of versions before may remain when no server with this API
		// ran at that version. The first server that knows Features adopts
		// them at its own version, and the upgrades below never run.
		OnEnable:  clearUnreadableWorkloads(),
		OnDisable: clearWorkloads(),
		// Each version stores Workloads as one that the next and the one
		// before do not have: 1.35 as v1alpha1, 1.36 as v1alpha2, 1.37 as
		// v1beta1. None decodes another's, and one makes every LIST fail.
		Versions: lifecycle.Versions{
			{At: "1.36", OnUpgrade: clearUnreadableWorkloads(), OnDowngrade: clearWorkloads()},
			{At: "1.37", OnUpgrade: clearUnreadableWorkloads(), OnDowngrade: clearWorkloads()},
		},
	}, OtherCopies: templateCopies, APIs: []API{workloadsAPI}, BootstrapRBAC: true, Controller: "podgroup-protection-controller"},
	{Feature: lifecycle.Feature{
		// The policy cannot be changed. Without the gate the priority class
		// decides, and groups that must not preempt others would. While it is
		// on, defaulting and admission write PreemptLowerPriority into groups,
		// though not into templates.
		Name: features.PodGroupPreemptionPolicy,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(workloads, "a preemption policy in templates", append(ofGroupTemplates("preemptionPolicy"), ofCompositeTemplates("preemptionPolicy")...)...),
			lifecycle.WaitForNone(podGroups, "preemption policy Never", "spec.preemptionPolicy="+string(schedulingv1beta1.PreemptNever)),
			lifecycle.WaitForNone(compositePodGroups, "preemption policy Never", "spec.preemptionPolicy="+string(schedulingv1alpha3.PreemptNever)),
		},
	}, Retained: []Remainder{
		{Field: task.Field{Resource: podGroups.GroupResource(), Path: "spec.preemptionPolicy"}, Why: groupsPreempt},
		{Field: task.Field{Resource: compositePodGroups.GroupResource(), Path: "spec.preemptionPolicy"}, Why: groupsPreempt},
	}, OtherCopies: podGroupCopies, APIs: []API{workloadsAPI}},
	{Feature: lifecycle.Feature{
		// With the gate off a PodGroup may lose the field, and the scheduler
		// ignores it. A Workload's templates cannot be changed.
		Name: features.TopologyAwareWorkloadScheduling,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(workloads, "scheduling constraints in templates", ofGroupTemplates("schedulingConstraints")...),
			lifecycle.ClearField(podGroups, "spec.schedulingConstraints"),
		},
	}, OtherCopies: podGroupCopies, APIs: []API{workloadsAPI}},
	{Feature: lifecycle.Feature{
		// The Job controller makes a Workload and a PodGroup for a Job, which
		// own them, and puts the group into the Job's pods. They go with the
		// Job: to delete them sooner would take pods that wait for their group
		// their rules. Once the groups are gone, so are their pods: the
		// groups' finalizer sees to that. What a Job says about them cannot be
		// changed; CronJobs make Jobs and come first.
		Name: features.WorkloadWithJob,
		// 1.36 has the gate and not the fields of Jobs, and loses them without an
		// error.
		Versions: lifecycle.Versions{{At: "1.37", OnDowngrade: waitForNoJobScheduling()}},
		OnDisable: append(waitForNoJobScheduling(),
			lifecycle.WaitForNone(workloads, "a Job as its owner", "metadata.ownerReferences[apiVersion="+batchv1.SchemeGroupVersion.String()+"]"),
			lifecycle.WaitForNone(podGroups, "a Job as its owner", "metadata.ownerReferences[apiVersion="+batchv1.SchemeGroupVersion.String()+"]"),
		),
	}, OtherCopies: appliedCopies, APIs: []API{workloadsAPI}, BootstrapRBAC: true},
}

const (
	// withoutGroups describes a kube-scheduler without the API.
	withoutGroups = "a kube-scheduler that has the gate on schedules nothing, since it waits for groups"
	// groupsPreempt explains the default of the policy.
	groupsPreempt = "defaulting and admission write PreemptLowerPriority into every group while the gate is on; nothing reads it while it is off, and it goes with the group"
)

// compositeLevels are the levels of composite templates that validation permits: the tree
// of templates is WorkloadMaxTreeDepth deep, and its leaves are templates of PodGroups.
const compositeLevels = schedulingv1beta1.WorkloadMaxTreeDepth - 1

// ofCompositeTemplates returns a path in the composite templates of Workloads, at every
// level.
func ofCompositeTemplates(path string) []string {
	var paths []string
	within := "spec."
	for range compositeLevels {
		within += "compositePodGroupTemplates[*]."
		paths = append(paths, within+path)
	}
	return paths
}

// ofGroupTemplates returns a path in the templates of PodGroups in Workloads, at every
// level.
func ofGroupTemplates(path string) []string {
	path = "podGroupTemplates[*]." + path
	return append([]string{"spec." + path}, ofCompositeTemplates(path)...)
}

// waitForNoJobScheduling waits until no Job and no CronJob says how its pods are grouped.
func waitForNoJobScheduling() lifecycle.Tasks {
	return lifecycle.Tasks{
		lifecycle.WaitForNone(cronJobs, "scheduling of their Jobs", "spec.jobTemplate.spec.scheduling"),
		lifecycle.WaitForNone(jobs, "scheduling", "spec.scheduling"),
	}
}

// Versions of the API of PodGroups. Claims keep that of their time in their owner.
var (
	groupVersion      = schedulingv1beta1.SchemeGroupVersion.String()
	groupVersionAlpha = schedulingv1alpha3.SchemeGroupVersion.String()
)

// groupVersion136 is the version of PodGroups at 1.36, which 1.37 does not have.
const groupVersion136 = "scheduling.k8s.io/v1alpha2"

// waitForNoneOfGroups waits until no claim has a PodGroup of one of the versions as its owner.
func waitForNoneOfGroups(versions ...string) task.Task {
	var owners []string
	for _, version := range versions {
		owners = append(owners, "metadata.ownerReferences[apiVersion="+version+"]")
	}
	return lifecycle.WaitForNone(resourceClaims, "a PodGroup as their owner", owners...)
}

// clearUnreadableWorkloads deletes Workloads and PodGroups that this version cannot decode.
func clearUnreadableWorkloads() lifecycle.Tasks {
	return lifecycle.Tasks{lifecycle.ClearUnreadable(workloads.GroupResource()), lifecycle.ClearUnreadable(podGroups.GroupResource())}
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
			lifecycle.ClearCollection(podGroups.GroupResource(), podGroupFinalizer),
		},
	)
}
