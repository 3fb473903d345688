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

package control_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	"k8s.io/feature-lifecycle/featuregate"
)

// keepSpec makes a fake server do what a real one does with a Feature whose status
// is written: take nothing but the status. Who saw a report of a replica before the
// change of the value that the replica reports would take that change back.
func keepSpec(server *fake.Clientset) {
	server.PrependReactor("update", "features", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "status" {
			return false, nil, nil
		}
		written := action.(clienttesting.UpdateAction).GetObject().(*v1alpha1.Feature)
		stored, err := server.Tracker().Get(action.GetResource(), written.Namespace, written.Name)
		if err != nil {
			return true, nil, err
		}
		stored.(*v1alpha1.Feature).Spec.DeepCopyInto(&written.Spec)
		return false, nil, nil
	})
}

// TestAnOperatorsReplicasAreFlippedLive runs the binary of the example twice, in
// its own namespace, and turns its feature on and off through the API.
func TestAnOperatorsReplicasAreFlippedLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, kube := fake.NewClientset(), kubefake.NewClientset()
		keepSpec(server)
		ctx, stop := context.WithCancel(t.Context())
		gates := make(chan *featuregate.Gate, 2)
		ended := make(chan error, 2)
		for i := range cap(gates) {
			replica := operator{instance: fmt.Sprintf("replica-%d", i), features: server, kube: kube, dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()),
				work: func(_ context.Context, gate *featuregate.Gate) { gates <- gate }}
			go func() {
				ended <- replica.run(ctx, []string{"--dynamic-features=Widgets", "--central-features=Gadgets"})
			}()
			// A fake list has no version to watch from: one after the other.
			synctest.Wait()
		}
		defer func() {
			stop()
			for range cap(ended) {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		}()
		replicas := []*featuregate.Gate{<-gates, <-gates}
		feature := func(name string) *v1alpha1.Feature {
			t.Helper()
			<-time.After(time.Minute)
			synctest.Wait()
			f, err := server.FeaturesV1alpha1().Features(namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		for name, want := range map[string]v1alpha1.FeatureControl{"Widgets": v1alpha1.ControlDynamic, "Gadgets": v1alpha1.ControlCentral, "Gizmos": v1alpha1.ControlLocal} {
			f := feature(name)
			if f.Status.Control != want || f.Status.Configured == nil || f.Status.Configured.Value != (name == "Gadgets") || f.Status.Configured.Source != v1alpha1.SourceDefault {
				t.Errorf("%s is %s, configured as %+v; want %s and its default", name, f.Status.Control, f.Status.Configured, want)
			}
		}
		for _, on := range []bool{true, false} {
			patch := fmt.Appendf(nil, `{"spec":{"enabled":%t}}`, on)
			if _, err := server.FeaturesV1alpha1().Features(namespace).Patch(t.Context(), "Widgets", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			f := feature("Widgets")
			want := map[bool]v1alpha1.FeatureState{true: v1alpha1.StateOn, false: v1alpha1.StateOff}[on]
			if f.Status.State != want || f.Status.Configured.Source != v1alpha1.SourceAPI {
				t.Errorf("Widgets is %s by %+v, want %s", f.Status.State, f.Status.Configured, want)
			}
			for _, gate := range replicas {
				if gate.Enabled("Widgets") != on {
					t.Errorf("a replica has Widgets %t", !on)
				}
			}
		}
	})
}
