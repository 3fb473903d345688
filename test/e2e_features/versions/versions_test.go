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

package versions

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

const (
	inUse          = "/registry/configmaps/inuse/"
	definitionsKey = "/registry/apiextensions.k8s.io/customresourcedefinitions/"
	keepsKey       = "/registry/versions.example.com/keeps/inuse/"
	leavesKey      = "/registry/versions.example.com/leaves/inuse/"
)

// TestUpDownUp moves 1.36 → 1.37 → 1.36 → 1.37, server by server, with objects in
// use, and kills leaders at every stage of their features' transitions. Etcd tells
// that nothing is lost that should stay, and nothing stays that should go.
func TestUpDownUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lower, 3)
	w.history.wait(t, "the features are adopted at "+lower, func(last map[string]v1alpha1.FeatureStatus) bool {
		return last[workload].State == v1alpha1.StateOff && last[kept].State == v1alpha1.StateOff && last[removed].State == v1alpha1.StateOff && last[removed].Version == lower
	})
	stay := w.use(t)

	w.storeOlder(t, "old-1", "old-2")
	mark, specs := w.history.mark(), w.history.last()
	w.move(t, upper, []string{workload, removed})
	w.same(t, "after the upgrade", stay)
	w.upgraded(t, mark)
	differing := 0
	for name, s := range w.history.last() {
		was := specs[name]
		if s.Stage != was.Stage || *s.Default != *was.Default || s.LockedToDefault != was.LockedToDefault {
			differing++
		}
	}
	if want := changedGates(t); differing != want {
		t.Errorf("%d features differ between %s and %s, want %d", differing, lower, upper, want)
	}

	w.turn(t, upper, true)
	w.useNew(t)
	keeping := w.stored(t, keepsKey)
	mark = w.history.mark()
	w.move(t, lower, []string{workload, removed})
	w.same(t, "after the downgrade", stay)
	w.same(t, "after the downgrade", keeping)
	w.downgraded(t, mark)

	w.turn(t, lower, false)
	w.storeOlder(t, "old-3")
	mark = w.history.mark()
	w.move(t, upper, []string{workload})
	w.same(t, "after the second upgrade", stay)
	w.same(t, "after the second upgrade", keeping)
	w.upgraded(t, mark)
	// What is stored can be read: the servers become ready.
	w.turn(t, upper, true)
	// Two of each move are while versions are mixed.
	if !short && w.kills < 12+6 {
		t.Errorf("%d kills, want one for each stage and for each mix of versions", w.kills)
	}
	fmt.Fprintf(t.Output(), "%d kills\n", w.kills)
}

// changedGates counts the gates of kube-apiserver, with those of the test, whose stage,
// default or lock is another one in the upper version.
func changedGates(t *testing.T) int {
	t.Helper()
	changed := 0
	for _, specs := range utilfeature.DefaultFeatureGate.DeepCopy().GetAllVersioned() {
		if specAt(specs, lower) != specAt(specs, upper) {
			changed++
		}
	}
	// One of the test's own gates differs, which its servers alone have.
	return changed + 1
}

// specAt returns a gate's spec in a server that emulates a version.
func specAt(specs featuregate.VersionedSpecs, version string) versionskew.Spec {
	return versionskew.SpecAt(specs, utilversion.MustParse(version))
}

// TestTheFirstStartWithoutEmulation comes from 1.36 as it is released, without the
// step that docs/upgrade.md wants: Features are adopted at 1.37 and no task of the
// upgrade runs. Clean counts the Workloads that 1.36 stored, and turning the gate
// on removes them, by a server that is not ready before.
func TestTheFirstStartWithoutEmulation(t *testing.T) {
	w := newWorld(t, upper, 1)
	w.storeOlder(t, "old-1", "old-2")
	// A server looks for leftovers when it starts.
	w.restart(t, w.servers[0], upper)
	w.history.wait(t, "Clean counts the Workloads", func(last map[string]v1alpha1.FeatureStatus) bool {
		clean := meta.FindStatusCondition(last[workload].Conditions, v1alpha1.ConditionClean)
		return clean != nil && clean.Reason == v1alpha1.ReasonLeftovers && strings.Contains(clean.Message, "2 workloads.scheduling.k8s.io")
	})
	w.turn(t, upper, true)
	w.keys(t, "once the gate is on", workloadsKey)
}

// use makes what has nothing to do with versions, and returns its bytes.
func (w *world) use(t *testing.T) map[string][]byte {
	t.Helper()
	if _, err := w.kube().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "inuse"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("stays-%02d", i)}, Data: map[string]string{"kept": fmt.Sprint(i)}}
		if _, err := w.kube().CoreV1().ConfigMaps("inuse").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return w.stored(t, inUse+"stays-")
}

// useNew makes what 1.37 brings.
func (w *world) useNew(t *testing.T) {
	t.Helper()
	for resource, kind := range map[schema.GroupVersionResource]string{keeps: "Keep", leaves: "Leaf"} {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(3)}}}
		object.SetAPIVersion(resource.GroupVersion().String())
		object.SetKind(kind)
		object.SetName("one")
		framework.Eventually(t, kind+" to be served", func() error {
			_, err := w.dynamic().Resource(resource).Namespace("inuse").Create(t.Context(), object, metav1.CreateOptions{})
			return err
		})
	}
	for i := range 3 {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("uses-%d", i)}, Data: map[string]string{"kept": "x", "removed": "y"}}
		if _, err := w.kube().CoreV1().ConfigMaps("inuse").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	workload := &schedulingv1beta1.Workload{
		ObjectMeta: metav1.ObjectMeta{Name: "new"},
		Spec: schedulingv1beta1.WorkloadSpec{PodGroupTemplates: []schedulingv1beta1.PodGroupTemplate{{
			Name: "group", SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 2}},
		}}},
	}
	if _, err := w.kube().SchedulingV1beta1().Workloads("default").Create(t.Context(), workload, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// upgraded checks what 1.37 brings and takes away.
func (w *world) upgraded(t *testing.T, mark map[string]int) {
	t.Helper()
	w.keys(t, "at "+upper, workloadsKey)
	w.keys(t, "at "+upper, definitionsKey, "keeps.versions.example.com", "leaves.versions.example.com")
	for feature, want := range map[string][]string{
		workload: {"Off@" + lower, "Upgrading@" + lower, "Off@" + upper},
		kept:     {"Off@" + lower, "Upgrading@" + lower, "Off@" + upper},
		removed:  {"Off@" + lower, "Upgrading@" + lower, "Off@" + upper, "TurningOn@" + upper, "On@" + upper},
	} {
		w.stages(t, mark, feature, want)
	}
}

// downgraded checks what 1.36 must not find, and that the rest is there.
func (w *world) downgraded(t *testing.T, mark map[string]int) {
	t.Helper()
	w.keys(t, "at "+lower, workloadsKey)
	w.keys(t, "at "+lower, definitionsKey, "keeps.versions.example.com")
	w.keys(t, "at "+lower, leavesKey)
	w.keys(t, "at "+lower, keepsKey, "one")
	for name, s := range w.history.last() {
		if s.Stage == v1alpha1.StagePreAlpha && (s.State != v1alpha1.StateOff || s.Version != lower) {
			t.Errorf("%s is newer than %s and %s in the form of %s", name, lower, s.State, s.Version)
		}
	}
	for i := range 3 {
		object, err := w.kube().CoreV1().ConfigMaps("inuse").Get(t.Context(), fmt.Sprintf("uses-%d", i), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"kept": "x"}, object.Data); diff != "" {
			t.Errorf("%s has something of the feature, or lost something else (-want +got):\n%s", object.Name, diff)
		}
	}
	if _, err := w.kube().CoreV1().ConfigMaps("inuse").Patch(t.Context(), "uses-0", types.MergePatchType, []byte(`{"data":{"kept":"z"}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("an object cannot be changed any more: %v", err)
	}
	for feature, want := range map[string][]string{
		workload: {"On@" + upper, "Downgrading@" + upper, "On@" + lower},
		kept:     {"Off@" + upper, "Off@" + lower},
		removed:  {"On@" + upper, "TurningOff@" + upper, "Off@" + upper, "Downgrading@" + upper, "Off@" + lower},
	} {
		w.stages(t, mark, feature, want)
	}
}

// stages checks the states of a feature since a mark. The one that it began in
// may not have been written again.
func (w *world) stages(t *testing.T, mark map[string]int, feature string, want []string) {
	t.Helper()
	got := stages(w.history.since(mark, feature))
	if len(got) > 0 && got[0] != want[0] {
		got = append([]string{want[0]}, got...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected stages of %s (-want +got):\n%s", feature, diff)
	}
	fmt.Fprintf(t.Output(), "%s: %s\n", feature, strings.Join(got, ", "))
}
