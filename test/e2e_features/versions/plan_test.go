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
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes/pkg/features"
)

// scaleToZero is one of Kubernetes' own that is on by default at 1.37 and off at 1.36.
// While its objects are there it cannot be turned off.
const scaleToZero = string(features.HPAScaleToZero)

// TestPlans plans moves between 1.36 and 1.37 on a real server, with
// objects in use, compares that with etcd, and then moves: every feature gets the
// value that was planned. Plans write nothing.
func TestPlans(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lower, 1)
	w.history.wait(t, "all features are at rest", func(last map[string]v1alpha1.FeatureStatus) bool {
		return last[workload].State == v1alpha1.StateOff && last[removed].State == v1alpha1.StateOff && last[removed].Version == lower
	})
	w.use(t)
	w.storeOlder(t, "old-1", "old-2")

	t.Run("of an upgrade: the version, then the value", func(t *testing.T) {
		p := w.plan(t, removed, upper)
		want := []string{"Upgrading WaitForUses", "Upgrading Upgrade/" + upper + "/Apply/leaves", "TurningOn WaitForUses"}
		if diff := cmp.Diff(want, tasks(p, false)); diff != "" {
			t.Errorf("unexpected plan (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(&v1alpha1.FeatureConfiguration{Value: true, Source: v1alpha1.SourceDefault}, p.Configured); diff != "" {
			t.Errorf("unexpected value (-want +got):\n%s", diff)
		}
		if len(p.Blockers) != 1 || !strings.Contains(p.Blockers[0], "--emulated-version="+upper) {
			t.Errorf("the blockers are %q, want the server's restart", p.Blockers)
		}
		p = w.plan(t, workload, upper)
		if n, stored := counted(p, "workloads"), len(w.stored(t, workloadsKey)); n != int64(stored) || stored != 2 {
			t.Errorf("%d Workloads are planned for, %d are in etcd, want 2", n, stored)
		}
	})
	w.comesAbout(t, upper)

	w.useMany(t)
	t.Run("of a downgrade: the value, then the version", func(t *testing.T) { w.planned(t) })
	t.Run("of a gate that others depend on", func(t *testing.T) {
		off := false
		p, err := w.ask(t, string(features.PodLevelResources), v1alpha1.FeaturePlanSpec{Enabled: &off})
		if err != nil {
			t.Fatal(err)
		}
		if dependent := string(features.InPlacePodLevelResourcesVerticalScaling); !slices.Contains(p.Dependents, dependent) || !strings.Contains(strings.Join(p.Blockers, "\n"), dependent+"=false") {
			t.Errorf("%s depends on it and is on, and the plan says %q, %q", dependent, p.Dependents, p.Blockers)
		}
	})
	t.Run("of an unknown version", func(t *testing.T) {
		// The next minor version, and the next major one, which may come instead of it.
		for _, to := range []string{utilversion.MustParse(upper).AddMinor(1).String(), "2.0"} {
			p := w.plan(t, removed, to)
			if p.Configured != nil || len(p.Tasks) != 0 || len(p.Unknown) != 1 || !strings.Contains(p.Unknown[0], "upgrade-check --to "+to) {
				t.Errorf("unexpected plan for %s: %+v", to, p)
			}
		}
		for _, bad := range []string{"1.3x", "v" + lower, "3.0", "1"} {
			if p, err := w.ask(t, removed, v1alpha1.FeaturePlanSpec{TargetVersion: bad}); err == nil || !strings.Contains(err.Error(), "spec.targetVersion") {
				t.Errorf("a plan for version %s: %v, %+v", bad, err, p)
			}
		}
	})
	// A user has to give the autoscaler another minimum.
	if err := w.Kube.AutoscalingV2().HorizontalPodAutoscalers("inuse").Delete(t.Context(), "workers", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.comesAbout(t, lower)
}

// planned compares plans of a downgrade with what is in etcd, and holds that
// nothing is written for them.
func (w *world) planned(t *testing.T) {
	// The server queried the gate for the autoscaler; its report follows within a minute.
	w.WaitForReports("the server's use of "+scaleToZero, func(reports []v1alpha1.FeatureReport) bool {
		return slices.ContainsFunc(reports, func(r v1alpha1.FeatureReport) bool {
			return slices.ContainsFunc(r.Spec.Features, func(f v1alpha1.ReportedFeature) bool { return f.Name == scaleToZero && f.Queried })
		})
	})
	var p, autoscaler *v1alpha1.FeaturePlanStatus
	// The server flow may write a Feature by itself meanwhile, and does not go on
	// doing so.
	framework.WaitFor(t, "plans during which nothing is written", func() bool {
		before := w.revisions(t)
		p, autoscaler = w.plan(t, removed, lower), w.plan(t, scaleToZero, lower)
		off := false
		if _, err := w.ask(t, removed, v1alpha1.FeaturePlanSpec{Enabled: &off}); err != nil {
			t.Fatal(err)
		}
		return cmp.Equal(before, w.revisions(t))
	})
	used := 0
	for _, data := range w.stored(t, inUse) {
		if strings.Contains(string(data), "removed") {
			used++
		}
	}
	leaves := len(w.stored(t, leavesKey))
	if used != 3 || leaves != 2 {
		t.Errorf("etcd has %d ConfigMaps with the field and %d Leaves, want 3 and 2", used, leaves)
	}
	want := []string{
		"TurningOff WaitForUses", fmt.Sprintf("TurningOff ClearField/configmaps/data.removed %d", used),
		"Downgrading WaitForUses", fmt.Sprintf("Downgrading Downgrade/%s/Remove/leaves 1 %d", upper, leaves),
	}
	if diff := cmp.Diff(want, tasks(p, true)); diff != "" {
		t.Errorf("unexpected plan (-want +got):\n%s", diff)
	}
	if p.Configured == nil || p.Configured.Value || p.Configured.Source != v1alpha1.SourceDefault {
		t.Errorf("the value at %s is %+v, want off by default", lower, p.Configured)
	}
	shown, err := json.MarshalIndent(autoscaler, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(t.Output(), "%s at %s:\n%s\n", scaleToZero, lower, shown)
	if !slices.ContainsFunc(autoscaler.Blockers, func(b string) bool {
		return strings.Contains(b, "1 object of horizontalpodautoscalers.autoscaling is changed or deleted") && strings.Contains(b, "inuse/workers")
	}) {
		t.Errorf("the autoscaler would hold it, and the blockers are %q", autoscaler.Blockers)
	}
	if n := counted(autoscaler, "horizontalpodautoscalers"); n != 1 {
		t.Errorf("%d autoscalers are planned for, want 1: %+v", n, autoscaler)
	}
	if len(autoscaler.Uses) != 1 || autoscaler.Uses[0].Component != "kube-apiserver" || !*autoscaler.Uses[0].Enabled {
		t.Errorf("the server uses the other value, and uses are %+v", autoscaler.Uses)
	}
}

// useMany makes objects that use what is on at 1.37 and off at 1.36.
func (w *world) useMany(t *testing.T) {
	t.Helper()
	for i := range 3 {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("uses-%d", i)}, Data: map[string]string{"kept": "x", "removed": "y"}}
		if _, err := w.Kube.CoreV1().ConfigMaps("inuse").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	autoscaler := framework.AutoscalerToZero("workers")
	if _, err := w.Kube.AutoscalingV2().HorizontalPodAutoscalers("inuse").Create(t.Context(), autoscaler, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		leaf := &unstructured.Unstructured{}
		leaf.SetAPIVersion(leaves.GroupVersion().String())
		leaf.SetKind("Leaf")
		leaf.SetName(name)
		framework.Eventually(t, "Leaf to be served", func() error {
			_, err := w.dynamic().Resource(leaves).Namespace("inuse").Create(t.Context(), leaf, metav1.CreateOptions{})
			return err
		})
	}
}

// comesAbout plans a move for all features, moves, and compares.
func (w *world) comesAbout(t *testing.T, to string) {
	t.Helper()
	want := map[string]v1alpha1.FeatureState{}
	changed := 0
	for name, status := range w.history.last() {
		p := w.plan(t, name, to)
		if p.Configured == nil {
			t.Fatalf("which value %s has at %s is not planned: %q", name, to, p.Unknown)
		}
		want[name] = v1alpha1.StateOff
		if p.Configured.Value {
			want[name] = v1alpha1.StateOn
		}
		if status.State != want[name] {
			changed++
			if !strings.Contains(strings.Join(tasks(p, false), "\n"), "Turning") {
				t.Errorf("%s is %s and would be %s at %s, without a task: %+v", name, status.State, want[name], to, p)
			}
		}
	}
	w.move(t, to, nil)
	got := map[string]v1alpha1.FeatureState{}
	for name, status := range w.history.last() {
		got[name] = status.State
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("at %s features are not as planned (-planned +happened):\n%s", to, diff)
	}
	if changed < 25 {
		t.Errorf("only %d of %d features have another value at %s", changed, len(want), to)
	}
	fmt.Fprintf(t.Output(), "%d features were planned for %s, %d with another value, and came about\n", len(want), to, changed)
}

// revisions are the versions of all that is stored, without what servers write
// all the time.
func (w *world) revisions(t *testing.T) map[string]int64 {
	t.Helper()
	revisions := framework.KeysBelow(t, w.etcd, "/registry/")
	maps.DeleteFunc(revisions, func(key string, _ int64) bool {
		return strings.HasPrefix(key, "/registry/leases/") || strings.HasPrefix(key, "/registry/masterleases/")
	})
	return revisions
}

func (w *world) ask(t *testing.T, name string, spec v1alpha1.FeaturePlanSpec) (*v1alpha1.FeaturePlanStatus, error) {
	t.Helper()
	p, err := w.Features.FeaturesV1alpha1().Features(metav1.NamespaceSystem).CreatePlan(t.Context(), name, &v1alpha1.FeaturePlan{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &p.Status, nil
}

func (w *world) plan(t *testing.T, name, to string) *v1alpha1.FeaturePlanStatus {
	t.Helper()
	p, err := w.ask(t, name, v1alpha1.FeaturePlanSpec{TargetVersion: to})
	if err != nil {
		t.Fatalf("planning %s of %s: %v", to, name, err)
	}
	return p
}

// tasks has a line for each task, with what it counts if that is wanted.
func tasks(p *v1alpha1.FeaturePlanStatus, counts bool) []string {
	var lines []string
	for _, task := range p.Tasks {
		line := fmt.Sprintf("%s %s", task.State, task.Name)
		for _, l := range task.Leftovers {
			if counts {
				line += fmt.Sprintf(" %d", l.Count)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// counted is how many objects of a resource a plan counts.
func counted(p *v1alpha1.FeaturePlanStatus, resource string) int64 {
	var n int64
	for _, task := range p.Tasks {
		for _, l := range task.Leftovers {
			if l.Resource == resource {
				n += l.Count
			}
		}
	}
	return n
}
