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

package rest

import (
	"cmp"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/apis/features"
	featurestorage "k8s.io/kubernetes-features/pkg/registry/features/feature/storage"
	rbacv1helpers "k8s.io/kubernetes/pkg/apis/rbac/v1"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
)

const (
	// PolicyHookName is the post-start hook that writes the RBAC policy.
	PolicyHookName = "features/bootstrap-roles"
	viewerRole     = "system:feature-viewer"
	reporterRole   = "system:feature-reporter"
	leaseRole      = "system:feature-reporter-lease"
	// flowRole permits the server flow what it does with features and reports,
	// flowTasksRole what the declared tasks do with everything else.
	flowRole      = "system:feature-lifecycle"
	flowTasksRole = "system:feature-lifecycle:tasks"
)

// reporter is a component that may write its own reports.
type reporter struct {
	component string
	// subjects are the identities that run it.
	subjects []rbacv1.Subject
	// leases is true when it renews a Lease of its own.
	leases bool
}

func reporters() []reporter {
	return []reporter{
		{component: "kube-controller-manager", subjects: users(user.KubeControllerManager), leases: true},
		{component: "kube-scheduler", subjects: users(user.KubeScheduler), leases: true},
		{component: "kubelet", subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: user.NodesGroup}}},
		{component: "kube-proxy", subjects: append(users(user.KubeProxy),
			rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: "kube-proxy"})},
	}
}

func users(names ...string) []rbacv1.Subject {
	var subjects []rbacv1.Subject
	for _, name := range names {
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name})
	}
	return subjects
}

// Policy is the RBAC that Kubernetes' own use of features.k8s.io needs. Authenticated
// users may read Features and their values. Each component may write its own reports. Only
// administrators may write specs. The server flow has the permissions for its own work
// and for the declared tasks: in all namespaces or, by their names, in one.
func Policy(tasks []rbacv1.PolicyRule, namespaced map[string][]rbacv1.PolicyRule) *rbacrest.PolicyData {
	rule := rbacv1helpers.NewRule
	policy := &rbacrest.PolicyData{
		ClusterRoles: []rbacv1.ClusterRole{{
			ObjectMeta: metav1.ObjectMeta{Name: viewerRole},
			Rules:      []rbacv1.PolicyRule{rule("get", "list", "watch").Groups(features.GroupName).Resources("features", "featurevalues").RuleOrDie()},
		}},
		ClusterRoleBindings: []rbacv1.ClusterRoleBinding{
			rbacv1helpers.NewClusterBinding(viewerRole).Groups(user.AllAuthenticated).BindingOrDie(),
		},
		Roles:        map[string][]rbacv1.Role{},
		RoleBindings: map[string][]rbacv1.RoleBinding{},
	}
	var leasing []rbacv1.Subject
	for _, r := range reporters() {
		add(policy, metav1.NamespaceSystem, reporterRole+":"+r.component, r.subjects,
			rule("get", "create", "update", "patch", "delete").Groups(features.GroupName).Resources("featurereports").RuleOrDie(),
			rule("create").Groups(features.GroupName).Resources("featurereports/confirmation").RuleOrDie(),
			rule("report").Groups(features.GroupName).Resources("components").Names(r.component).RuleOrDie(),
		)
		if r.leases {
			leasing = append(leasing, r.subjects...)
		}
	}
	add(policy, v1alpha1.LeaseNamespace, leaseRole, leasing,
		rule("get", "create", "update", "patch", "delete").Groups("coordination.k8s.io").Resources("leases").RuleOrDie())
	addFlow(policy, tasks)
	for namespace, rules := range namespaced {
		add(policy, namespace, flowTasksRole, users(featurestorage.FlowUser), compact(rules)...)
	}
	for i := range policy.ClusterRoles {
		markBootstrap(&policy.ClusterRoles[i].ObjectMeta)
	}
	for i := range policy.ClusterRoleBindings {
		markBootstrap(&policy.ClusterRoleBindings[i].ObjectMeta)
	}
	return policy
}

// FlowRules returns the rules of the server flow, by namespace, beside those of
// its tasks. It deletes Leases of ended servers; RBAC cannot limit that to a
// prefix of names. It reads a Lease before it treats the process as lost.
func FlowRules() map[string][]rbacv1.PolicyRule {
	rule := rbacv1helpers.NewRule
	lease := rule("get", "list", "watch", "delete").Groups("coordination.k8s.io").Resources("leases").RuleOrDie()
	return map[string][]rbacv1.PolicyRule{
		metav1.NamespaceSystem: {
			rule("get", "list", "watch", "create", "delete").Groups(features.GroupName).Resources("features").RuleOrDie(),
			rule("update").Groups(features.GroupName).Resources("features/status").RuleOrDie(),
			rule("list", "watch", "create", "update", "delete").Groups(features.GroupName).Resources("featurevalues").RuleOrDie(),
			rule("list", "watch", "delete").Groups(features.GroupName).Resources("featurereports").RuleOrDie(),
			// Reports of lost processes, of any user.
			rule("delete").Groups(features.GroupName).Resources("featurereports/any").RuleOrDie(),
			rule("create", "patch").Groups("").Resources("events").RuleOrDie(),
			lease,
		},
		v1alpha1.LeaseNamespace: {lease},
	}
}

// addFlow adds the roles of the server flow.
func addFlow(policy *rbacrest.PolicyData, tasks []rbacv1.PolicyRule) {
	for namespace, rules := range FlowRules() {
		add(policy, namespace, flowRole, users(featurestorage.FlowUser), rules...)
	}
	if len(tasks) == 0 {
		return
	}
	policy.ClusterRoles = append(policy.ClusterRoles, rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: flowTasksRole}, Rules: compact(tasks)})
	policy.ClusterRoleBindings = append(policy.ClusterRoleBindings,
		rbacv1helpers.NewClusterBinding(flowTasksRole).Users(featurestorage.FlowUser).BindingOrDie())
}

// compact merges rules that permit verbs on whole resources into one for each
// resource, sorted. So the role is the same in every server, and is written
// only when it changes. Rules for single names or other paths stay as they are.
func compact(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	verbs := map[schema.GroupResource]sets.Set[string]{}
	var others []rbacv1.PolicyRule
	for _, r := range rules {
		if len(r.ResourceNames) > 0 || len(r.NonResourceURLs) > 0 {
			others = append(others, r)
			continue
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				key := schema.GroupResource{Group: group, Resource: resource}
				if verbs[key] == nil {
					verbs[key] = sets.New[string]()
				}
				verbs[key].Insert(r.Verbs...)
			}
		}
	}
	var result []rbacv1.PolicyRule
	for _, resource := range slices.SortedFunc(maps.Keys(verbs), func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) }) {
		result = append(result, rbacv1.PolicyRule{
			APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: sets.List(verbs[resource]),
		})
	}
	return append(result, others...)
}

func add(policy *rbacrest.PolicyData, namespace, name string, subjects []rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	markBootstrap(&meta)
	policy.Roles[namespace] = append(policy.Roles[namespace], rbacv1.Role{ObjectMeta: meta, Rules: rules})
	policy.RoleBindings[namespace] = append(policy.RoleBindings[namespace], rbacv1.RoleBinding{
		ObjectMeta: *meta.DeepCopy(),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   subjects,
	})
}

// markBootstrap labels the objects that the server writes and maintains, as
// upstream's policy is labeled.
func markBootstrap(meta *metav1.ObjectMeta) {
	meta.Labels = map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"}
	meta.Annotations = map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"}
}
