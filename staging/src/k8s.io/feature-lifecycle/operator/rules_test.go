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

package operator

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

// TestRules: what the Role allows is what a replica asks for in its life, no less and no
// more, and nothing in other namespaces.
func TestRules(t *testing.T) {
	allowed := map[string]bool{}
	for _, rule := range Rules("widget-operator") {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					allowed[verb+" "+resource+"."+group] = true
				}
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		keepSpec(s.features)
		s.leftBehind()
		used := map[string]bool{
			// No request has this verb: the server asks whether its sender has it.
			"report components.features.k8s.io": true,
		}
		s.features.PrependReactor("delete", "featurereports", func(action clienttesting.Action) (bool, runtime.Object, error) {
			// As the storage does, which has no request for this either.
			const any = "delete featurereports/any.features.k8s.io"
			name := action.(clienttesting.DeleteAction).GetName()
			object, err := s.features.Tracker().Get(action.GetResource(), action.GetNamespace(), name)
			if err != nil || object.(*v1alpha1.FeatureReport).Spec.Username == "" {
				return false, nil, nil
			}
			used[any] = true
			if !allowed[any] {
				return true, nil, apierrors.NewForbidden(v1alpha1.Resource("featurereports"), name, errors.New("another client wrote it"))
			}
			return false, nil, nil
		})
		s.life()
		if _, err := s.features.Tracker().Get(v1alpha1.SchemeGroupVersion.WithResource("featurereports"), "widgets", "widget-operator.crashed"); !apierrors.IsNotFound(err) {
			t.Errorf("reading the report of a replica that crashed: %v, want that it was deleted", err)
		}
		for _, action := range s.sent() {
			resource := action.GetResource()
			if asksForPermissions(action) {
				// Everybody who is authenticated may, also this (system:basic-user).
				continue
			}
			name := resource.Resource
			if sub := action.GetSubresource(); sub != "" {
				name += "/" + sub
			}
			used[action.GetVerb()+" "+name+"."+resource.Group] = true
			if resource != widgets && resource.Resource != "customresourcedefinitions" && action.GetNamespace() != "widgets" {
				t.Errorf("a replica does %s %s in namespace %q", action.GetVerb(), name, action.GetNamespace())
			}
		}
		for _, verb := range []string{"get", "list", "watch"} {
			// Everybody who is authenticated may.
			delete(used, verb+" features.features.k8s.io")
			delete(used, verb+" featurevalues.features.k8s.io")
			// lifecycle.Rules permits these.
			delete(used, verb+" widgets.example.com")
			delete(used, verb+" customresourcedefinitions.apiextensions.k8s.io")
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(allowed))); diff != "" {
			t.Errorf("Rules are not what a replica does in its life (-it does +it may):\n%s", diff)
		}
	})
}

// leftBehind has a server have what others left: the report and the Lease of a replica
// that had another service account and crashed, and a Feature, with its value, whose gate no
// replica has any more.
func (s *server) leftBehind() {
	s.t.Helper()
	crashed := metav1.ObjectMeta{Namespace: "widgets", Name: "widget-operator.crashed"}
	before := metav1.NewMicroTime(time.Now().Add(-24 * time.Hour))
	report := &v1alpha1.FeatureReport{ObjectMeta: crashed, Spec: v1alpha1.FeatureReportSpec{
		Component: "widget-operator", Instance: "crashed", Username: "system:serviceaccount:widgets:earlier", BinaryVersion: "v0.3.1", EmulationVersion: "0.3",
		Liveness: v1alpha1.ReportLiveness{Lease: &v1alpha1.LeaseReference{Namespace: crashed.Namespace, Name: crashed.Name}},
	}}
	lease := &coordinationv1.Lease{ObjectMeta: crashed, Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To[int32](40), RenewTime: &before}}
	unknown := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: "widgets", Name: "Forgotten"}, Status: v1alpha1.FeatureStatus{State: v1alpha1.StateOff, Version: "0.1"}}
	value := &v1alpha1.FeatureValue{ObjectMeta: unknown.ObjectMeta, Control: v1alpha1.ControlDynamic}
	if err := errors.Join(s.features.Tracker().Add(report), s.features.Tracker().Add(unknown), s.features.Tracker().Add(value), s.kube.Tracker().Add(lease)); err != nil {
		s.t.Fatal(err)
	}
}

// life is that of a replica, from its start to its end in order: it creates its Feature,
// takes it through transitions, tells of them, and takes away what others left.
func (s *server) life() {
	s.t.Helper()
	config := valid(s.t)
	config.Settings.KeepUnknownMinors = None
	r, stop := s.running(config)
	// An event that was told before is counted.
	for _, value := range []bool{true, false, true, false} {
		f, err := s.feature()
		if err != nil {
			s.t.Fatal(err)
		}
		f.Spec.Enabled = ptr.To(value)
		if _, err := s.features.FeaturesV1alpha1().Features("widgets").Update(s.t.Context(), f, metav1.UpdateOptions{}); err != nil {
			s.t.Fatal(err)
		}
		pass(5 * time.Minute)
	}
	// What a replica that crashed has left is kept for an hour.
	pass(2 * time.Hour)
	if err := errors.Join(stop(), r.Close(s.t.Context())); err != nil {
		s.t.Fatal(err)
	}
}

// sent is what a replica has sent. What the test itself changed is not.
func (s *server) sent() []clienttesting.Action {
	s.t.Helper()
	dynamic, ok := s.clients.tasks.Dynamic.(*dynamicfake.FakeDynamicClient)
	if !ok {
		s.t.Fatalf("the client of tasks is a %T", s.clients.tasks.Dynamic)
	}
	sent := slices.Concat(s.features.Actions(), s.kube.Actions(), dynamic.Actions())
	return slices.DeleteFunc(sent, func(a clienttesting.Action) bool {
		return a.Matches("update", "features") && a.GetSubresource() == ""
	})
}
