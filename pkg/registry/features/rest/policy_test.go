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
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	featurestorage "k8s.io/kubernetes-features/pkg/registry/features/feature/storage"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
)

// taskRules are the rules of two tasks of one resource.
var taskRules = []rbacv1.PolicyRule{
	{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: []string{"patch", "list"}},
	{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: []string{"list", "watch"}},
	{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
}

// namespacedRules are the rules of a task in one namespace.
var namespacedRules = map[string][]rbacv1.PolicyRule{
	"example": {{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, ResourceNames: []string{"named"}, Verbs: []string{"delete"}}},
}

// authorizerOf evaluates the policy as kube-apiserver does.
func authorizerOf(t *testing.T) authorizer.Authorizer {
	t.Helper()
	policy := Policy(taskRules, namespacedRules)
	var roles []*rbacv1.Role
	var bindings []*rbacv1.RoleBinding
	var clusterRoles []*rbacv1.ClusterRole
	var clusterBindings []*rbacv1.ClusterRoleBinding
	for namespace := range policy.Roles {
		for i := range policy.Roles[namespace] {
			roles = append(roles, &policy.Roles[namespace][i])
		}
		for i := range policy.RoleBindings[namespace] {
			bindings = append(bindings, &policy.RoleBindings[namespace][i])
		}
	}
	for i := range policy.ClusterRoles {
		clusterRoles = append(clusterRoles, &policy.ClusterRoles[i])
	}
	for i := range policy.ClusterRoleBindings {
		clusterBindings = append(clusterBindings, &policy.ClusterRoleBindings[i])
	}
	_, rules := validation.NewTestRuleResolver(roles, bindings, clusterRoles, clusterBindings)
	return rbac.New(rules, rules, rules, rules)
}

func TestPolicyPermissions(t *testing.T) {
	jane := &user.DefaultInfo{Name: "jane", Groups: []string{user.AllAuthenticated}}
	anonymous := &user.DefaultInfo{Name: "system:anonymous", Groups: []string{user.AllUnauthenticated}}
	scheduler := &user.DefaultInfo{Name: user.KubeScheduler, Groups: []string{user.AllAuthenticated}}
	manager := &user.DefaultInfo{Name: user.KubeControllerManager, Groups: []string{user.AllAuthenticated}}
	node := &user.DefaultInfo{Name: "system:node:n1", Groups: []string{user.NodesGroup, user.AllAuthenticated}}
	proxy := &user.DefaultInfo{Name: "system:serviceaccount:kube-system:kube-proxy", Groups: []string{user.AllAuthenticated}}
	flow := &user.DefaultInfo{Name: featurestorage.FlowUser, Groups: []string{user.AllAuthenticated}}
	type request struct {
		user                            user.Info
		verb, namespace, resource, name string
	}
	const ks, kf = metav1.NamespaceSystem, v1alpha1.LeaseNamespace
	for what, tc := range map[string]struct {
		request
		want bool
	}{
		"a user reads features":                      {request{jane, "list", ks, "features", ""}, true},
		"in any namespace":                           {request{jane, "watch", "example", "features", ""}, true},
		"a user follows values":                      {request{jane, "watch", ks, "featurevalues", ""}, true},
		"a node follows values":                      {request{node, "list", ks, "featurevalues", ""}, true},
		"an anonymous user follows values":           {request{anonymous, "watch", ks, "featurevalues", ""}, false},
		"a user writes values":                       {request{jane, "update", ks, "featurevalues", "A"}, false},
		"the server flow publishes values":           {request{flow, "create", ks, "featurevalues", ""}, true},
		"it changes them":                            {request{flow, "update", ks, "featurevalues", "A"}, true},
		"it deletes them":                            {request{flow, "delete", ks, "featurevalues", "A"}, true},
		"but none elsewhere":                         {request{flow, "create", "example", "featurevalues", ""}, false},
		"an anonymous user reads features":           {request{anonymous, "list", ks, "features", ""}, false},
		"a user writes features":                     {request{jane, "update", ks, "features", "A"}, false},
		"a user writes their status":                 {request{jane, "update", ks, "features/status", "A"}, false},
		"a user plans":                               {request{jane, "create", ks, "features/plan", "A"}, false},
		"a user cleans":                              {request{jane, "create", ks, "features/cleanup", "A"}, false},
		"a user reads reports":                       {request{jane, "list", ks, "featurereports", ""}, false},
		"the scheduler reports":                      {request{scheduler, "create", ks, "featurereports", ""}, true},
		"as itself":                                  {request{scheduler, "report", ks, "components", "kube-scheduler"}, true},
		"as kube-apiserver":                          {request{scheduler, "report", ks, "components", "kube-apiserver"}, false},
		"elsewhere":                                  {request{scheduler, "create", "example", "featurereports", ""}, false},
		"the scheduler touches any report":           {request{scheduler, "delete", ks, "featurereports/any", "x"}, false},
		"the scheduler writes status":                {request{scheduler, "update", ks, "features/status", "A"}, false},
		"the controller manager renews its Lease":    {request{manager, "update", kf, "leases", "x"}, true},
		"but none of kube-system":                    {request{manager, "update", ks, "leases", "kube-scheduler"}, false},
		"a node reports":                             {request{node, "create", ks, "featurereports", ""}, true},
		"a node confirms values":                     {request{node, "create", ks, "featurereports/confirmation", "x"}, true},
		"a user confirms values":                     {request{jane, "create", ks, "featurereports/confirmation", "x"}, false},
		"as kubelet":                                 {request{node, "report", ks, "components", "kubelet"}, true},
		"a node renews Leases of reporters":          {request{node, "update", kf, "leases", "x"}, false},
		"kube-proxy reports by its service account":  {request{proxy, "report", ks, "components", "kube-proxy"}, true},
		"the server flow creates":                    {request{flow, "create", ks, "features", ""}, true},
		"the server flow writes status":              {request{flow, "update", ks, "features/status", "A"}, true},
		"but not elsewhere":                          {request{flow, "update", "example", "features/status", "A"}, false},
		"the server flow changes no spec":            {request{flow, "update", ks, "features", "A"}, false},
		"the server flow writes no report":           {request{flow, "update", ks, "featurereports", "x"}, false},
		"it retires reports":                         {request{flow, "delete", ks, "featurereports", "x"}, true},
		"of any user":                                {request{flow, "delete", ks, "featurereports/any", "x"}, true},
		"and changes none":                           {request{flow, "update", ks, "featurereports/any", "x"}, false},
		"and their Leases":                           {request{flow, "delete", kf, "leases", "x"}, true},
		"but does not renew any":                     {request{flow, "update", kf, "leases", "x"}, false},
		"its tasks do what they declare":             {request{flow, "patch", "example", "statefulsets", "x"}, true},
		"and nothing else":                           {request{flow, "delete", "example", "statefulsets", "x"}, false},
		"but for one, in one namespace":              {request{flow, "delete", "example", "statefulsets", "named"}, true},
		"and in no other":                            {request{flow, "delete", "elsewhere", "statefulsets", "named"}, false},
		"nor with other resources":                   {request{flow, "patch", "example", "pods", "x"}, false},
		"nor read secrets":                           {request{flow, "get", ks, "secrets", "x"}, false},
		"a user with no part in it reports anything": {request{jane, "create", ks, "featurereports", ""}, false},
	} {
		group, listed := map[string]string{"leases": "coordination.k8s.io", "statefulsets": "apps", "pods": "", "secrets": ""}[tc.resource]
		if !listed {
			group = v1alpha1.GroupName
		}
		resource, subresource, _ := strings.Cut(tc.resource, "/")
		decision, _, err := authorizerOf(t).Authorize(t.Context(), authorizer.AttributesRecord{
			User: tc.user, Verb: tc.verb, Namespace: tc.namespace, APIGroup: group, Resource: resource, Subresource: subresource, Name: tc.name, ResourceRequest: true,
		})
		if got := decision == authorizer.DecisionAllow; err != nil || got != tc.want {
			t.Errorf("%s: allowed %t, %v; want %t", what, got, err, tc.want)
		}
	}
}

func TestServerMaintainsPolicy(t *testing.T) {
	policy := Policy(taskRules, namespacedRules)
	for namespace, roles := range policy.Roles {
		for _, role := range roles {
			if !strings.HasPrefix(role.Name, "system:") || role.Annotations[rbacv1.AutoUpdateAnnotationKey] != "true" || role.Namespace != namespace {
				t.Errorf("role %s/%s is not marked as the server's", role.Namespace, role.Name)
			}
		}
	}
}

// TestTaskRoleIsDeterministic: otherwise every server would rewrite it.
func TestTaskRoleIsDeterministic(t *testing.T) {
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: []string{"list", "patch", "watch"}},
	}
	// One that is limited to a name stays so.
	named := rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: []string{"delete"}, ResourceNames: []string{"x"}}
	want = append(want, named)
	for range 10 {
		if diff := cmp.Diff(want, compact(append(slices.Clone(taskRules), named))); diff != "" {
			t.Fatalf("rules (-want +got):\n%s", diff)
		}
	}
}
