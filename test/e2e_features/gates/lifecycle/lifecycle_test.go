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

package lifecycle

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/utils/ptr"
)

const (
	gate = "MaxUnavailableStatefulSet"
	ns   = metav1.NamespaceDefault
)

// controlPlane is a cluster without nodes: nothing writes StatefulSets' status
// but the controller.
func controlPlane(gates string) localcluster.Config {
	return localcluster.Config{FeatureGates: gates, ExtraArgs: map[string][]string{
		// No instance contradicts in these tests.
		localcluster.APIServer: {"--feature-settle-period=2s"},
	}}
}

// statefulSet has no replicas, so that the controller writes the status once.
func statefulSet(name string, strategy appsv1.StatefulSetUpdateStrategy) *appsv1.StatefulSet {
	set := framework.PlainStatefulSet(name)
	set.Annotations = map[string]string{"keep": "this"}
	set.Spec.UpdateStrategy = strategy
	return set
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

// rest is what clearing has to leave as it was (S7).
func rest(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	set = framework.WithoutMaxUnavailable(set)
	set.Status = appsv1.StatefulSetStatus{}
	return set
}

var (
	rolling  = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: ptr.To(intstr.FromInt32(2)), Partition: ptr.To[int32](1)}}
	onDelete = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
)

// controlled are what runs in TestOnUsedOff: kube-controller-manager has gates, too, so
// that a server waits for the report of another process.
var controlled = []string{localcluster.Etcd, localcluster.APIServer, localcluster.ControllerManager}

// TestOnUsedOff takes two features through on, used and off in one cluster, whose server
// is killed twice on the way: stories 1 and 4 of KEP-3920. The field of one is cleared.
// The other one waits until an administrator has removed the Pods that use it.
func TestOnUsedOff(t *testing.T) {
	const bundles = "ClusterTrustBundle=true"
	values := func(on bool) string { return fmt.Sprintf("%s,%s=%t,%s=%t", bundles, gate, on, projection, on) }
	config := controlPlane(values(true))
	config.Only = controlled
	// Without the StatefulSet controller only this test and the server flow write
	// StatefulSets, so that resourceVersions show their writes.
	config.ExtraArgs[localcluster.ControllerManager] = []string{"--controllers=*,-statefulset-controller"}
	// Pods are made before the controller of service accounts is there.
	config.ExtraArgs[localcluster.APIServer] = append(config.ExtraArgs[localcluster.APIServer],
		"--runtime-config=certificates.k8s.io/v1beta1=true", "--disable-admission-plugins=ServiceAccount")
	c := framework.Start(t, config)
	field, source := framework.RecordFeature(t, c.Etcd(), gate), framework.RecordFeature(t, c.Etcd(), projection)
	field.Wait(t, 0, "On", framework.In(v1alpha1.StateOn))
	source.Wait(t, 0, "On", framework.In(v1alpha1.StateOn))
	sets := makeSets(t, c)
	makePods(t, c)

	on := field.Mark()
	off := values(false)
	if err := c.Restart(t.Context(), &off); err != nil {
		t.Fatalf("restarting with the gates off: %v", err)
	}
	crashTwice(t, c, field, on)
	cleared(t, c, field, on, sets)
	released(t, c)
	for name, history := range map[string]*framework.History{gate: field, projection: source} {
		all := history.Since(0)
		for invariant, problem := range map[string]string{"S1": framework.FalseState(all), "S2": framework.EarlyTask(all), "S3": framework.LostTask(all)} {
			if problem != "" {
				t.Errorf("%s of %s: %s", invariant, name, problem)
			}
		}
	}
}

// makeSets makes StatefulSets that have the field, got it from the server, and do not
// have it.
func makeSets(t *testing.T, c *framework.Cluster) map[string]*appsv1.StatefulSet {
	t.Helper()
	sets := map[string]*appsv1.StatefulSet{
		"used":      create(t, c, statefulSet("used", rolling)),
		"defaulted": create(t, c, statefulSet("defaulted", appsv1.StatefulSetUpdateStrategy{})),
		"never":     create(t, c, statefulSet("never", onDelete)),
	}
	for name, want := range map[string]bool{"used": true, "defaulted": true, "never": false} {
		if got := framework.HasMaxUnavailable(sets[name]); got != want {
			t.Fatalf("StatefulSet %s has the field: %t, want %t", name, got, want)
		}
	}
	return sets
}

// crashTwice kills kube-apiserver while it waits for uses, and while the field is to be
// cleared or just was; each time the next process continues the transition.
func crashTwice(t *testing.T, c *framework.Cluster, history *framework.History, on int) {
	t.Helper()
	history.Wait(t, on, "TurningOff", framework.In(v1alpha1.StateTurningOff))
	crash(t, c)
	history.Wait(t, on, "past waiting for uses", func(v framework.FeatureVersion) bool {
		return v.Status.State == v1alpha1.StateOff || v.Status.State == v1alpha1.StateTurningOff && len(v.Status.Tasks) == 1
	})
	crash(t, c)
	history.Wait(t, on, "Off", framework.In(v1alpha1.StateOff))
	if transitions := framework.Transitions(history.Since(on)); len(transitions) != 1 {
		t.Errorf("S3: on the way off there were the transitions %v, want one that no crash replaced", transitions)
	}
}

// cleared checks how the feature went off, and what became of the StatefulSets.
func cleared(t *testing.T, c *framework.Cluster, history *framework.History, on int, before map[string]*appsv1.StatefulSet) {
	t.Helper()
	var tasks []string
	for _, v := range history.Since(on) {
		if len(v.Status.Tasks) > 0 {
			tasks = append(tasks, v.Status.Tasks[0].Name)
		}
	}
	want := []string{v1alpha1.TaskWaitForUses, "ClearField/statefulsets.apps/spec.updateStrategy.rollingUpdate.maxUnavailable"}
	if diff := cmp.Diff(want, slices.Compact(tasks)); diff != "" {
		t.Errorf("unexpected tasks (-want +got):\n%s", diff)
	}
	states := framework.States(history.Since(on))
	if n := len(states); n < 2 || states[n-1] != v1alpha1.StateOff || states[n-2] != v1alpha1.StateTurningOff {
		t.Errorf("states were %v, want TurningOff before Off", states)
	}
	for name, was := range before {
		is := read(t, c, name)
		if framework.HasMaxUnavailable(is) {
			t.Errorf("StatefulSet %s still has maxUnavailable %s", name, is.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable)
		}
		if diff := cmp.Diff(rest(was), rest(is)); diff != "" {
			t.Errorf("S7: StatefulSet %s changed elsewhere (-before +after):\n%s", name, diff)
		}
	}
	if was, is := before["never"].ResourceVersion, read(t, c, "never").ResourceVersion; was != is {
		t.Errorf("StatefulSet never had the field and was written: resourceVersion %s, now %s", was, is)
	}
	clean := c.WaitForFeature(gate, "Clean", func(f *v1alpha1.Feature) bool {
		return meta.IsStatusConditionTrue(f.Status.Conditions, v1alpha1.ConditionClean)
	})
	if !meta.IsStatusConditionFalse(clean.Status.Conditions, v1alpha1.ConditionProgressing) {
		t.Errorf("Progressing is not False in state Off: %+v", clean.Status.Conditions)
	}
	if clean.Status.Transition != nil {
		t.Errorf("a transition is left: %+v", clean.Status.Transition)
	}
}

func crash(t *testing.T, c *framework.Cluster) {
	t.Helper()
	if err := c.Kill(t.Context(), localcluster.APIServer); err != nil {
		t.Fatalf("killing kube-apiserver: %v", err)
	}
	if err := c.Start(t.Context(), localcluster.APIServer); err != nil {
		t.Fatalf("starting kube-apiserver again: %v", err)
	}
}
