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

// Package lifecycle takes one gate through on, used, off and gone on real
// clusters, and tries what must not work.
package lifecycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/cmd/local-up/cluster"
	"k8s.io/kubernetes-features/test/integration/framework"
	"k8s.io/utils/ptr"
)

const (
	gate = "MaxUnavailableStatefulSet"
	ns   = metav1.NamespaceDefault
)

// controlPlane is a cluster without nodes: nothing writes StatefulSets' status
// but the controller.
func controlPlane(gates string) cluster.Config {
	return cluster.Config{FeatureGates: gates, ExtraArgs: map[string][]string{
		// No instance contradicts in these tests; five seconds are enough for
		// reports to arrive.
		cluster.APIServer: {"--feature-settle-period=5s"},
	}}
}

func inState(state v1alpha1.FeatureState) func(*v1alpha1.Feature) bool {
	return func(f *v1alpha1.Feature) bool { return f.Status.State == state }
}

func statefulSet(name string, strategy appsv1.StatefulSetUpdateStrategy) *appsv1.StatefulSet {
	labels := map[string]string{"app": name}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"keep": "this"}},
		Spec: appsv1.StatefulSetSpec{
			// Without replicas the controller writes the status once.
			Replicas:       ptr.To[int32](0),
			ServiceName:    name,
			Selector:       &metav1.LabelSelector{MatchLabels: labels},
			UpdateStrategy: strategy,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.invalid/c"}}},
			},
		},
	}
}

func create(t *testing.T, c *framework.Cluster, set *appsv1.StatefulSet) *appsv1.StatefulSet {
	t.Helper()
	created, err := c.Kube.AppsV1().StatefulSets(ns).Create(t.Context(), set, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating StatefulSet %s: %v", set.Name, err)
	}
	return created
}

func read(t *testing.T, c *framework.Cluster, name string) *appsv1.StatefulSet {
	t.Helper()
	set, err := c.Kube.AppsV1().StatefulSets(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("reading StatefulSet %s: %v", name, err)
	}
	return set
}

// field returns the field that the gate guards, nil when it is not set.
func field(set *appsv1.StatefulSet) *intstr.IntOrString {
	if set.Spec.UpdateStrategy.RollingUpdate == nil {
		return nil
	}
	return set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable
}

// rest is what clearing has to leave as it was (S7).
func rest(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	set = set.DeepCopy()
	if set.Spec.UpdateStrategy.RollingUpdate != nil {
		set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil
	}
	set.ResourceVersion, set.Generation, set.ManagedFields = "", 0, nil
	set.Status = appsv1.StatefulSetStatus{}
	return set
}

var (
	rolling  = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: ptr.To(intstr.FromInt32(2)), Partition: ptr.To[int32](1)}}
	onDelete = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
)

// TestMaxUnavailableStatefulSet is the whole path: the story of KEP-3920.
func TestMaxUnavailableStatefulSet(t *testing.T) {
	config := controlPlane(gate + "=true")
	// Without the StatefulSet controller nobody but this test and the server
	// flow writes StatefulSets, so that resourceVersions tell.
	config.ExtraArgs[cluster.ControllerManager] = []string{"--controllers=*,-statefulset-controller"}
	c := framework.Start(t, config)
	c.WaitForFeature(gate, "On", inState(v1alpha1.StateOn))

	before := map[string]*appsv1.StatefulSet{
		"used":      create(t, c, statefulSet("used", rolling)),
		"defaulted": create(t, c, statefulSet("defaulted", appsv1.StatefulSetUpdateStrategy{})),
		"never":     create(t, c, statefulSet("never", onDelete)),
	}
	for name, want := range map[string]bool{"used": true, "defaulted": true, "never": false} {
		if got := field(before[name]) != nil; got != want {
			t.Fatalf("StatefulSet %s has the field: %t, want %t", name, got, want)
		}
	}

	off := gate + "=false"
	if err := c.Restart(t.Context(), &off); err != nil {
		t.Fatalf("restarting with the gate off: %v", err)
	}
	var states []v1alpha1.FeatureState
	var tasks []string
	final := c.WaitForFeature(gate, "Off", func(f *v1alpha1.Feature) bool {
		if n := len(states); n == 0 || states[n-1] != f.Status.State {
			states = append(states, f.Status.State)
		}
		if len(f.Status.Tasks) > 0 {
			if n := len(tasks); n == 0 || tasks[n-1] != f.Status.Tasks[0].Name {
				tasks = append(tasks, f.Status.Tasks[0].Name)
			}
		}
		// S1: no task is left in a state of rest.
		if (f.Status.State == v1alpha1.StateOn || f.Status.State == v1alpha1.StateOff) && len(f.Status.Tasks) > 0 {
			t.Errorf("S1: state %s with tasks %v", f.Status.State, f.Status.Tasks)
		}
		return f.Status.State == v1alpha1.StateOff
	})
	if n := len(states); n < 2 || states[n-2] != v1alpha1.StateTurningOff {
		t.Errorf("states were %v, want TurningOff before Off", states)
	}
	want := []string{v1alpha1.TaskWaitForUses, "ClearField/statefulsets.apps/spec.updateStrategy.rollingUpdate.maxUnavailable"}
	if diff := cmp.Diff(want, tasks); diff != "" {
		t.Errorf("unexpected tasks (-want +got):\n%s", diff)
	}
	if final.Status.Transition != nil {
		t.Errorf("a transition is left: %+v", final.Status.Transition)
	}

	for name, was := range before {
		is := read(t, c, name)
		if value := field(is); value != nil {
			t.Errorf("StatefulSet %s still has maxUnavailable %s", name, value)
		}
		if diff := cmp.Diff(rest(was), rest(is)); diff != "" {
			t.Errorf("S7: StatefulSet %s changed elsewhere (-before +after):\n%s", name, diff)
		}
	}
	if was, is := before["never"].ResourceVersion, read(t, c, "never").ResourceVersion; was != is {
		t.Errorf("StatefulSet never had the field and was written: resourceVersion %s, now %s", was, is)
	}
	clean := c.WaitForFeature(gate, "Clean", func(f *v1alpha1.Feature) bool {
		return condition(f, v1alpha1.ConditionClean) == metav1.ConditionTrue
	})
	if c := condition(clean, v1alpha1.ConditionProgressing); c != metav1.ConditionFalse {
		t.Errorf("Progressing is %s in state Off", c)
	}
}

func condition(f *v1alpha1.Feature, kind string) metav1.ConditionStatus {
	for _, c := range f.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// TestCrashOfTheServerDuringATransition kills kube-apiserver while it waits for
// uses and while the field is to be cleared; the next process goes on.
func TestCrashOfTheServerDuringATransition(t *testing.T) {
	config := controlPlane(gate + "=true")
	config.Only = []string{cluster.Etcd, cluster.APIServer}
	c := framework.Start(t, config)
	c.WaitForFeature(gate, "On", inState(v1alpha1.StateOn))
	for _, name := range []string{"a", "b"} {
		create(t, c, statefulSet(name, rolling))
	}
	off := gate + "=false"
	if err := c.Restart(t.Context(), &off); err != nil {
		t.Fatalf("restarting with the gate off: %v", err)
	}
	turning := c.WaitForFeature(gate, "TurningOff", inState(v1alpha1.StateTurningOff))
	crash(t, c)
	again := c.WaitForFeature(gate, "past waiting for uses", func(f *v1alpha1.Feature) bool {
		return f.Status.State == v1alpha1.StateOff || len(f.Status.Tasks) == 1
	})
	if again.Status.Transition != nil && again.Status.Transition.ID != turning.Status.Transition.ID {
		t.Errorf("S3: the crash lost transition %s; it is %s now", turning.Status.Transition.ID, again.Status.Transition.ID)
	}
	crash(t, c)
	c.WaitForFeature(gate, "Off", inState(v1alpha1.StateOff))
	for _, name := range []string{"a", "b"} {
		if value := field(read(t, c, name)); value != nil {
			t.Errorf("StatefulSet %s still has maxUnavailable %s", name, value)
		}
	}
}

func crash(t *testing.T, c *framework.Cluster) {
	t.Helper()
	if err := c.Kill(t.Context(), cluster.APIServer); err != nil {
		t.Fatalf("killing kube-apiserver: %v", err)
	}
	if err := c.Start(t.Context(), cluster.APIServer); err != nil {
		t.Fatalf("starting kube-apiserver again: %v", err)
	}
}
