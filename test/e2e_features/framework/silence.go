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
	"errors"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/util/retry"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	featurestorage "k8s.io/kubernetes-features/pkg/registry/features/feature/storage"
)

// SilenceFlow takes the permission to write status away from the server flow, also for
// restarts of the server. From then on the test says what is set centrally
// (SetConfigured).
func (c *Cluster) SilenceFlow() {
	c.t.Helper()
	roles := c.Kube.RbacV1().Roles(metav1.NamespaceSystem)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		role, err := roles.Get(c.t.Context(), featurestorage.FlowUser, metav1.GetOptions{})
		if err != nil {
			return err
		}
		role.Annotations[rbacv1.AutoUpdateAnnotationKey] = "false"
		role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "features/status") })
		_, err = roles.Update(c.t.Context(), role, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		c.t.Fatalf("taking the permission to write status away: %v", err)
	}
	Eventually(c.t, "the server flow to be silent", func() error {
		review, err := c.Kube.AuthorizationV1().SubjectAccessReviews().Create(c.t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: featurestorage.FlowUser,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: metav1.NamespaceSystem, Group: v1alpha1.GroupName, Resource: "features", Subresource: "status", Verb: "update",
			},
		}}, metav1.CreateOptions{})
		if err == nil && review.Status.Allowed {
			err = errors.New("it may write status still: " + review.Status.Reason)
		}
		return err
	})
}

// SetConfigured writes what kube-apiserver would for --central-features and
// --dynamic-features, once the flow that would write otherwise is silent.
func (c *Cluster) SetConfigured(feature string, control v1alpha1.FeatureControl, value bool) {
	c.t.Helper()
	flow := versioned.NewForConfigOrDie(c.Impersonate(featurestorage.FlowUser, user.SystemPrivilegedGroup))
	features := flow.FeaturesV1alpha1().Features(metav1.NamespaceSystem)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		f, err := features.Get(c.t.Context(), feature, metav1.GetOptions{})
		if err != nil {
			return err
		}
		f.Status.Control = control
		f.Status.Configured = &v1alpha1.FeatureConfiguration{Value: value, Source: v1alpha1.SourceCommandLine}
		_, err = features.UpdateStatus(c.t.Context(), f, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		c.t.Fatalf("setting %s: %v", feature, err)
	}
}
