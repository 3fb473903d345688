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

// Package everywhere shows how an operator asks whether a feature is on everywhere,
// before it relies on it. Copy it, or import it.
package everywhere

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
)

// On returns true for a feature that is on everywhere: every task of turning it on is
// done, and no live process is known to have it off, or not known at all. Otherwise why
// names what is missing.
func On(feature *v1alpha1.Feature) (on bool, why string) {
	if state := feature.Status.State; state != v1alpha1.StateOn {
		return false, fmt.Sprintf("%s is %q", feature.Name, state)
	}
	match := meta.FindStatusCondition(feature.Status.Conditions, v1alpha1.ConditionUsesMatch)
	switch {
	case match == nil:
		return false, fmt.Sprintf("nothing is known of the users of %s", feature.Name)
	case match.Status != metav1.ConditionTrue:
		return false, match.Message
	default:
		return true, ""
	}
}

// Ask asks a cluster. It is no error if the cluster does not have the feature, or no
// such API (an older or unpatched cluster): the feature is not reported as on there.
// All authenticated users may read Features; those of Kubernetes are in kube-system. An
// operator that asks often lists and watches with an informer instead, and calls On.
func Ask(ctx context.Context, client versioned.Interface, namespace, name string) (on bool, why string, err error) {
	feature, err := client.FeaturesV1alpha1().Features(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) && missing(ctx, client) {
		return false, fmt.Sprintf("the cluster does not say anything about %s", name), nil
	}
	if err != nil {
		return false, "", fmt.Errorf("asking whether %s is on everywhere: %w", name, err)
	}
	on, why = On(feature)
	return on, why, nil
}

// missing returns true if the cluster has no such API. RBAC does not know which resources
// exist, so without permissions in the group the answer is Forbidden either way. Discovery
// distinguishes the two, and all authenticated users may read it.
func missing(ctx context.Context, client versioned.Interface) bool {
	answer := make(chan error, 1)
	// Clients of discovery take no context.
	go func() {
		_, err := client.Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String())
		answer <- err
	}()
	select {
	case err := <-answer:
		return apierrors.IsNotFound(err)
	case <-ctx.Done():
		return false
	}
}
