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
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/kubernetes/pkg/features"
)

var (
	deployments  = appsv1.SchemeGroupVersion.WithResource("deployments")
	replicaSets  = appsv1.SchemeGroupVersion.WithResource("replicasets")
	statefulSets = appsv1.SchemeGroupVersion.WithResource("statefulsets")
)

// apps are the features of SIG Apps.
var apps = []Entry{
	{Feature: lifecycle.Feature{
		// ReplicaSets come first: a Deployment's number is the sum of theirs.
		Name: features.DeploymentReplicaSetTerminatingReplicas,
		OnDisable: lifecycle.Tasks{
			lifecycle.ClearField(replicaSets, "status.terminatingReplicas"),
			lifecycle.ClearField(deployments, "status.terminatingReplicas"),
		},
		Control: lifecycle.Dynamic,
	}, OtherCopies: statusCopies},
	{Feature: lifecycle.Feature{
		// Without the gate kube-controller-manager takes such a Job over from
		// the controller that it names. CronJobs make Jobs and come first.
		Name: features.JobManagedBy,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(cronJobs, "another controller for their Jobs", "spec.jobTemplate.spec.managedBy"),
			lifecycle.WaitForNone(jobs, "another controller", "spec.managedBy"),
		},
	}, OtherCopies: appliedCopies, OnReapply: "a CronJob that is applied again keeps the field, and the server drops it from the Jobs that are made of it; condition Clean names the CronJob"},
	{Feature: lifecycle.Feature{
		// While it is on, defaulting writes 1 into every StatefulSet with the
		// strategy RollingUpdate, on every write.
		Name:      features.MaxUnavailableStatefulSet,
		OnDisable: lifecycle.Tasks{lifecycle.ClearField(statefulSets, "spec.updateStrategy.rollingUpdate.maxUnavailable")},
		Control:   lifecycle.Dynamic,
	}, OtherCopies: appliedCopies},
	{Feature: lifecycle.Feature{
		// Without the feature the controller does nothing for a set with the
		// strategy, not even for pods that are missing. Another strategy
		// replaces pods in another way, so users have to choose it. The
		// controller does not remove the condition.
		Name: features.StatefulSetRecreateStrategy,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(statefulSets, "update strategy Recreate", "spec.updateStrategy.type="+string(appsv1.RecreateStatefulSetStrategyType)),
			lifecycle.ClearField(statefulSets, "status.conditions[type="+string(appsv1.StatefulSetProgressing)+"]"),
		},
		Control: lifecycle.Dynamic,
	}, OtherCopies: "last-applied annotations and what GitOps tools apply again keep the strategy: the server refuses it in an object without it; ControllerRevisions have the template only; " + statusCopies},
}
