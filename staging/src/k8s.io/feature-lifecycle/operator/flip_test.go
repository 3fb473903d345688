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
	"context"
	"errors"
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
	componentfeaturegate "k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/control"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/utils/clock"
)

// keepSpec makes a fake server do what a real one does with a Feature whose status
// is written: take nothing but the status. A client that saw a report of a replica before
// the change of the value that the replica reports would take that change back.
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

// flipped are features of each kind of control.
var flipped = map[componentfeaturegate.Feature]componentfeaturegate.FeatureSpec{
	"Widgets": {PreRelease: componentfeaturegate.Alpha},
	"Gadgets": {PreRelease: componentfeaturegate.Beta, Default: true},
	"Gizmos":  {PreRelease: componentfeaturegate.Alpha},
}

// TestAnOperatorsReplicasAreFlippedLive runs two replicas of an operator in its own
// namespace, and turns its feature on and off through the API.
func TestAnOperatorsReplicasAreFlippedLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, kube := fake.NewClientset(), kubefake.NewSimpleClientset()
		keepSpec(server)
		own := clients{own: server, features: server, ownKube: kube, kube: kube, tasks: task.Clients{Dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())}}
		ctx, stop := context.WithCancel(t.Context())
		var gates []*featuregate.Gate
		var replicas []*Replica
		ended := make(chan error, 2)
		for i := range cap(ended) {
			gate := gateOf(t, "0.3")
			if err := gate.Add(flipped); err != nil {
				t.Fatal(err)
			}
			config := Config{
				Namespace: "widgets", Component: "widget-operator", Instance: fmt.Sprintf("replica-%d", i), Version: "v0.3.1", Gate: gate,
				Features: []lifecycle.Feature{{Name: "Widgets", Control: lifecycle.Dynamic}, {Name: "Gadgets", Control: lifecycle.Central}},
				Control:  control.Options{Dynamic: []string{"Widgets"}, Central: []string{"Gadgets"}},
			}
			replica, err := newReplica(config, own, clock.RealClock{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := replica.Load(ctx); err != nil {
				t.Fatal(err)
			}
			go func() { ended <- replica.Start(ctx) }()
			gates, replicas = append(gates, gate), append(replicas, replica)
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
			for _, replica := range replicas {
				if err := replica.Close(context.WithoutCancel(ctx)); err != nil {
					t.Error(err)
				}
			}
		}()
		feature := func(name string) *v1alpha1.Feature {
			t.Helper()
			<-time.After(time.Minute)
			synctest.Wait()
			f, err := server.FeaturesV1alpha1().Features("widgets").Get(t.Context(), name, metav1.GetOptions{})
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
			if _, err := server.FeaturesV1alpha1().Features("widgets").Patch(t.Context(), "Widgets", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			f := feature("Widgets")
			want := map[bool]v1alpha1.FeatureState{true: v1alpha1.StateOn, false: v1alpha1.StateOff}[on]
			if f.Status.State != want || f.Status.Configured.Source != v1alpha1.SourceAPI {
				t.Errorf("Widgets is %s by %+v, want %s", f.Status.State, f.Status.Configured, want)
			}
			for _, gate := range gates {
				if gate.Enabled("Widgets") != on {
					t.Errorf("a replica has Widgets %t", !on)
				}
			}
		}
	})
}

// TestReplicasDecideCentralValuesThemselves: what a Feature says of a central value is
// what replicas have said before. One that is started with another value has that.
func TestReplicasDecideCentralValuesThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		config := valid(t)
		config.Gate = gateOf(t, "0.3", colors)
		config.Features[0].Control = lifecycle.Central
		config.Control = control.Options{Central: []string{string(colors)}}
		before := &v1alpha1.Feature{
			ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, Name: string(colors)},
			Status: v1alpha1.FeatureStatus{
				State: v1alpha1.StateOn, Control: v1alpha1.ControlCentral,
				Configured: &v1alpha1.FeatureConfiguration{Value: true, Source: v1alpha1.SourceCommandLine},
			},
		}
		if err := s.features.Tracker().Add(before); err != nil {
			t.Fatal(err)
		}
		r, stop := s.running(config)
		if config.Gate.Enabled(colors) {
			t.Error("the replica has what those before it had, and not what its command line says")
		}
		f, err := s.feature()
		if err != nil {
			t.Fatal(err)
		}
		if c := f.Status.Configured; c == nil || c.Value {
			t.Errorf("the feature is configured as %+v, want what the replica has", c)
		}
		if err := errors.Join(stop(), r.Close(t.Context())); err != nil {
			t.Error(err)
		}
	})
}
