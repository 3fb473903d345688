//go:build linux

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

package framework

import (
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Grantee is who gets permissions.
type Grantee struct {
	Subject rbacv1.Subject
	// Config is how the subject reaches the server.
	Config *rest.Config
}

// User is a user by name, which an administrator impersonates.
func (c *Cluster) User(name string) Grantee {
	return Grantee{Subject: rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}, Config: c.Impersonate(name)}
}

// Permit gives permissions in a namespace, or in all for metav1.NamespaceAll, by a role
// and a binding of a name. It waits until the server knows them, and asks as the grantee
// itself, so that a token of it is known, too.
func (c *Cluster) Permit(t testing.TB, to Grantee, name, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	if len(rules) == 0 {
		return
	}
	options, rbac, meta := metav1.CreateOptions{}, c.Kube.RbacV1(), metav1.ObjectMeta{Name: name}
	subjects, err := []rbacv1.Subject{to.Subject}, error(nil)
	if namespace == metav1.NamespaceAll {
		_, err = rbac.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, options)
		if err == nil {
			_, err = rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}}, options)
		}
	} else {
		_, err = rbac.Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, options)
		if err == nil {
			_, err = rbac.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}}, options)
		}
	}
	if err != nil {
		t.Fatalf("giving %s permissions in namespace %q: %v", to.Subject.Name, namespace, err)
	}
	c.WaitForPermission(t, to, namespace, rules[len(rules)-1])
}

// WaitForPermission waits until the server knows that the grantee may do what a rule
// says.
func (c *Cluster) WaitForPermission(t testing.TB, to Grantee, namespace string, rule rbacv1.PolicyRule) {
	t.Helper()
	client, review := kubernetes.NewForConfigOrDie(to.Config), reviewOf(namespace, rule)
	Eventually(t, "the permissions of "+to.Subject.Name, func() error {
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed {
			err = fmt.Errorf("%+v is not allowed: %s", review.Spec.ResourceAttributes, answer.Status.Reason)
		}
		return err
	})
}

// reviewOf asks for something that a rule permits.
func reviewOf(namespace string, rule rbacv1.PolicyRule) *authorizationv1.SelfSubjectAccessReview {
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	attributes := &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource}
	if len(rule.ResourceNames) > 0 {
		attributes.Name = rule.ResourceNames[0]
	}
	return &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}
}
