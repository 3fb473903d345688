//go:build linux

/*
Copyright 2026 The Kubernetes Authors.

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

// Package values runs real components with values that are set centrally, and
// with values that change while they run.
package values

import (
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/util/retry"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/kubernetes-features/cmd/local-up/cluster"
	featurestorage "k8s.io/kubernetes-features/pkg/registry/features/feature/storage"
	"k8s.io/kubernetes-features/test/integration/framework"
)

// Features that components ask for soon after they start. All are on by default
// but the last, which all components of Kubernetes ask for.
const (
	nodeFeature      = "ContainerCheckpoint"
	managerFeature   = "StaleControllerConsistencyJob"
	explicitFeature  = "StaleControllerConsistencyStatefulSet"
	schedulerFeature = "SchedulerAsyncPreemption"
	sharedFeature    = "ClientsAllowCBOR"
)

var features = []string{nodeFeature, managerFeature, explicitFeature, schedulerFeature, sharedFeature}

// world is a cluster whose server flow writes no status, so that the test says
// which features are set centrally.
type world struct {
	*framework.Cluster
	t    *testing.T
	flow versioned.Interface
}

// start starts etcd and kube-apiserver of a cluster with one hollow node. What
// else runs, each test starts.
func start(t *testing.T, args map[string][]string) *world {
	t.Helper()
	w := &world{t: t, Cluster: framework.Start(t, cluster.Config{Nodes: 1, Only: []string{cluster.Etcd, cluster.APIServer}, ExtraArgs: args})}
	w.flow = versioned.NewForConfigOrDie(w.Impersonate(featurestorage.FlowUser, user.SystemPrivilegedGroup))
	for _, feature := range features {
		w.WaitForFeature(feature, "announced", func(f *v1alpha1.Feature) bool { return f.Status.State != "" })
	}
	w.silenceFlow()
	return w
}

// silenceFlow takes the permission to write status away from the server flow,
// also for restarts of the server.
func (w *world) silenceFlow() {
	w.t.Helper()
	roles := w.Kube.RbacV1().Roles(metav1.NamespaceSystem)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		role, err := roles.Get(w.t.Context(), featurestorage.FlowUser, metav1.GetOptions{})
		if err != nil {
			return err
		}
		role.Annotations[rbacv1.AutoUpdateAnnotationKey] = "false"
		role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "features/status") })
		_, err = roles.Update(w.t.Context(), role, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	framework.WaitFor(w.t, "the server flow to be silent", func() bool {
		review, err := w.Kube.AuthorizationV1().SubjectAccessReviews().Create(w.t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: featurestorage.FlowUser,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: metav1.NamespaceSystem, Group: v1alpha1.GroupName, Resource: "features", Subresource: "status", Verb: "update",
			},
		}}, metav1.CreateOptions{})
		return err == nil && !review.Status.Allowed
	})
}

// set writes what kube-apiserver would for --central-features and
// --dynamic-features.
func (w *world) set(feature string, control v1alpha1.FeatureControl, value bool) {
	w.t.Helper()
	features := w.flow.FeaturesV1alpha1().Features(metav1.NamespaceSystem)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		f, err := features.Get(w.t.Context(), feature, metav1.GetOptions{})
		if err != nil {
			return err
		}
		f.Status.Control = control
		f.Status.Configured = &v1alpha1.FeatureConfiguration{Value: value, Source: v1alpha1.SourceCommandLine}
		_, err = features.UpdateStatus(w.t.Context(), f, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		w.t.Fatalf("setting %s: %v", feature, err)
	}
}

// found is what a component found when it asked for a feature: true, false, or
// nil if it did not say that it asked.
func found(reports []v1alpha1.FeatureReport, component, feature string) *v1alpha1.ReportedFeature {
	for _, r := range reports {
		if r.Spec.Component != component {
			continue
		}
		for _, f := range r.Spec.Features {
			if f.Name == feature && (f.Asked || f.Explicit) {
				return &f
			}
		}
	}
	return nil
}

// waitFound waits until a component has reported a value.
func (w *world) waitFound(component, feature string, value bool) {
	w.t.Helper()
	w.WaitForReports("in which "+component+" finds "+feature, func(reports []v1alpha1.FeatureReport) bool {
		f := found(reports, component, feature)
		return f != nil && f.Enabled == value
	})
}

func (w *world) start(names ...string) {
	w.t.Helper()
	if err := w.Start(w.t.Context(), names...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stop(names ...string) {
	w.t.Helper()
	if err := w.Stop(w.t.Context(), names...); err != nil {
		w.t.Fatal(err)
	}
}
