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

package operators

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/leader"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/utils/ptr"
)

// twoOperators have features of the same names, one of them a name of Kubernetes',
// too. One operator's go on and off, although the replica that does it crashes on the
// way; nothing happens to the other's.
func (w *world) twoOperators(t *testing.T) {
	red, blue := w.install(t, "red"), w.install(t, "blue")
	kept := w.make(t, blue.resource, "kept", map[string]any{"size": "3", "color": "blue", "glaze": "mat", "limit": "7"})
	others := follow(t, w.etcd, blue.namespace)
	history := framework.NewHistory()
	framework.FollowFeatures(t, w.etcd, featuresKey(red.namespace)+colors, history.Add)
	// One of them leads, as all of them compute.
	first := leader.Of(colors, []string{"a", "b"})
	second := map[string]string{"a": "b", "b": "a"}[first]
	leading, successor := red.start(t, first, nil), red.start(t, second, nil)
	strangers := []*replica{blue.start(t, "a", nil), blue.start(t, "b", nil)}
	for _, o := range []*thirdParty{red, blue} {
		o.waitForState(t, v1alpha1.StateOff, 2, colors, borrowed)
	}

	for _, feature := range []string{colors, borrowed} {
		red.ask(t, feature, true)
	}
	red.waitForState(t, v1alpha1.StateOn, 2, colors, borrowed)
	for _, r := range []*replica{leading, successor} {
		if got, want := r.found(), both(true); got != want {
			t.Errorf("the features of red are On, and a replica of it finds %s, want %s", got, want)
		}
	}
	for _, r := range strangers {
		if got, want := r.found(), both(false); got != want {
			t.Errorf("the features of red were turned on, and a replica of blue finds %s, want %s", got, want)
		}
	}
	w.usedByKubernetesAlone(t, red.component, blue.component)
	w.make(t, red.resource, "used", map[string]any{"size": "1", "color": "red", "limit": "5"})
	w.make(t, red.resource, "glazed", map[string]any{"size": "2", "color": "red", "glaze": "mat"})

	history.Wait(t, 0, "On", framework.In(v1alpha1.StateOn))
	mark := history.Mark()
	for _, feature := range []string{colors, borrowed} {
		red.ask(t, feature, false)
	}
	history.Wait(t, mark, "held by an object", func(v framework.FeatureVersion) bool {
		return len(v.Status.Tasks) > 0 && strings.HasPrefix(v.Status.Tasks[0].Name, "WaitForNone/") && strings.Contains(v.Status.Tasks[0].Message, "default/glazed")
	})
	if err := leading.crash(t); err != nil {
		t.Errorf("Start of the replica that was told to end: %v", err)
	}
	if last := history.Last(); last.Status.State != v1alpha1.StateTurningOff {
		t.Fatalf("the replica did not crash in the middle of a transition, the state is %s", last.Status.State)
	}
	crashed := history.Mark()
	glaze := []byte(`{"spec":{"glaze":null}}`)
	if _, err := w.objects.Resource(red.resource).Namespace(metav1.NamespaceDefault).Patch(t.Context(), "glazed", types.MergePatchType, glaze, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	// The other replica waits for the Lease of the first one to expire.
	history.Wait(t, crashed, "Off", framework.In(v1alpha1.StateOff))
	w.WaitForFeatureIn(t, red.namespace, borrowed, "Off", func(f *v1alpha1.Feature) bool { return f.Status.State == v1alpha1.StateOff })
	if got, want := successor.found(), both(false); got != want {
		t.Errorf("the features are Off, and the replica that is left finds %s, want %s", got, want)
	}

	checkHistory(t, history, mark)
	for name, size := range map[string]string{"used": "1", "glazed": "2"} {
		if diff := cmp.Diff(map[string]any{"size": size}, w.read(t, red.resource, name).Object["spec"]); diff != "" {
			t.Errorf("spec of %s after turning off (-want +got):\n%s", name, diff)
		}
	}
	w.untouched(t, blue.resource, kept)
	if n := others.unchanged(t); n != 2 {
		t.Errorf("%d features of blue were followed, want 2", n)
	}
	for o, replicas := range map[*thirdParty][]*replica{red: {leading, successor}, blue: strangers} {
		for _, r := range replicas {
			if found := o.elsewhere(r); len(found) > 0 {
				t.Errorf("a replica of %s asked for what is not its own:\n%s", o.namespace, strings.Join(found, "\n"))
			}
			if len(r.requests.after(0)) == 0 {
				t.Errorf("a replica of %s has sent nothing, as far as this test sees", o.namespace)
			}
		}
	}
}

// oneDefinition: two installations of an operator have one kind, and features of the same
// names. Each looks after its own namespace, and what one of them turns off is on in the
// other, with its objects as they were: one that has the field, and one that would hold
// the transition.
func (w *world) oneDefinition(t *testing.T) {
	resource := w.define(t, "team")
	left, right := w.installBeside(t, "team-left", resource), w.installBeside(t, "team-right", resource)
	replicas := map[*thirdParty]*replica{left: left.start(t, "a", nil), right: right.start(t, "a", nil)}
	for o := range replicas {
		o.waitForState(t, v1alpha1.StateOff, 1, colors, borrowed)
		o.ask(t, colors, true)
	}
	for o := range replicas {
		o.waitForState(t, v1alpha1.StateOn, 1, colors)
	}
	var kept []*unstructured.Unstructured
	w.makeIn(t, resource, left.namespace, "used", map[string]any{"size": "1", "color": "red"})
	for name, spec := range map[string]map[string]any{"used": {"size": "2", "color": "blue"}, "glazed": {"color": "blue", "glaze": "mat"}} {
		kept = append(kept, w.makeIn(t, resource, right.namespace, name, spec))
	}

	left.ask(t, colors, false)
	left.waitForState(t, v1alpha1.StateOff, 1, colors)
	w.WaitForFeatureIn(t, left.namespace, colors, "clean", func(f *v1alpha1.Feature) bool {
		return meta.IsStatusConditionTrue(f.Status.Conditions, v1alpha1.ConditionClean)
	})
	if diff := cmp.Diff(map[string]any{"size": "1"}, w.objects.Read(t, resource, left.namespace, "used").Object["spec"]); diff != "" {
		t.Errorf("spec of what was turned off (-want +got):\n%s", diff)
	}
	for _, was := range kept {
		w.untouched(t, resource, was)
	}
	right.waitForState(t, v1alpha1.StateOn, 1, colors)

	// The other one is not held by what it does not look after, and is by its own.
	w.makeIn(t, resource, left.namespace, "glazed", map[string]any{"glaze": "mat"})
	right.ask(t, colors, false)
	w.WaitForFeatureIn(t, right.namespace, colors, "held by its own object", func(f *v1alpha1.Feature) bool {
		return len(f.Status.Tasks) > 0 && strings.Contains(f.Status.Tasks[0].Message, "waiting for 1 teamthings.thirdparty.example.com using glaze: team-right/glazed")
	})
	glaze := []byte(`{"spec":{"glaze":null}}`)
	if _, err := w.objects.Resource(resource).Namespace(right.namespace).Patch(t.Context(), "glazed", types.MergePatchType, glaze, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	right.waitForState(t, v1alpha1.StateOff, 1, colors)
	for o, r := range replicas {
		asked := count(r.requests.after(0), func(sent request) bool {
			return strings.Contains(sent.path, "/apis/"+resource.Group+"/") && strings.Contains(sent.path, "/"+resource.Resource)
		})
		own := count(r.requests.after(0), func(sent request) bool {
			return strings.Contains(sent.path, "/namespaces/"+o.namespace+"/"+resource.Resource)
		})
		if asked == 0 || asked != own {
			t.Errorf("the installation in %s sent %d requests for objects of the kind, %d of them for those of its namespace, want all, and some", o.namespace, asked, own)
		}
	}
}

// checkHistory checks the invariants of transitions, and that the one that began
// after a mark is the one that ended.
func checkHistory(t *testing.T, history *framework.History, mark int) {
	t.Helper()
	all, off := history.Since(0), history.Since(mark)
	for invariant, problem := range map[string]string{"S1": framework.FalseState(all), "S2": framework.EarlyTask(all), "S3": framework.LostTask(all)} {
		if problem != "" {
			t.Errorf("%s: %s", invariant, problem)
		}
	}
	// The spec changes first.
	states := slices.DeleteFunc(framework.States(off), func(s v1alpha1.FeatureState) bool { return s == v1alpha1.StateOn })
	if diff := cmp.Diff([]v1alpha1.FeatureState{v1alpha1.StateTurningOff, v1alpha1.StateOff}, states); diff != "" {
		t.Errorf("unexpected states on the way off (-want +got):\n%s", diff)
	}
	if transitions := framework.Transitions(off); len(transitions) != 1 {
		t.Errorf("on the way off there were the transitions %v, want one that the crash did not replace", transitions)
	}
}

// usedByKubernetesAlone checks that operators which report that they use a feature of a
// name of Kubernetes' are no users of that of Kubernetes. They have reported before.
// What kube-apiserver knows is looked at once a report has reached it that came
// later.
func (w *world) usedByKubernetesAlone(t *testing.T, operators ...string) {
	t.Helper()
	const component = "latecomer"
	meta := metav1.ObjectMeta{Name: component + ".x"}
	leases, reports := w.Kube.CoordinationV1().Leases(v1alpha1.LeaseNamespace), w.Features.FeaturesV1alpha1().FeatureReports(metav1.NamespaceSystem)
	lease := &coordinationv1.Lease{ObjectMeta: meta, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("x"), LeaseDurationSeconds: ptr.To[int32](40), RenewTime: &metav1.MicroTime{Time: time.Now()},
	}}
	if _, err := leases.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	state := w.WaitForFeatureIn(t, metav1.NamespaceSystem, borrowed, "there", func(f *v1alpha1.Feature) bool { return f.Status.State != "" }).Status.State
	report := newReport(metav1.NamespaceSystem, component)
	report.Spec.Features = []v1alpha1.ReportedFeature{{Name: borrowed, Queried: true, Enabled: state == v1alpha1.StateOn}}
	if _, err := reports.Create(t.Context(), report, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	used := w.WaitForFeatureIn(t, metav1.NamespaceSystem, borrowed, "used by who came last", func(f *v1alpha1.Feature) bool {
		return slices.ContainsFunc(f.Status.Uses, func(u v1alpha1.FeatureUse) bool { return u.Component == component })
	})
	for _, use := range used.Status.Uses {
		if slices.Contains(operators, use.Component) {
			t.Errorf("feature %s of Kubernetes is said to be used by an operator that has one of the same name: %+v", borrowed, use)
		}
	}
	for what, err := range map[string]error{
		"Lease":  leases.Delete(t.Context(), meta.Name, metav1.DeleteOptions{}),
		"report": reports.Delete(t.Context(), meta.Name, metav1.DeleteOptions{}),
	} {
		if err != nil {
			t.Errorf("deleting the %s of %s: %v", what, meta.Name, err)
		}
	}
}

// newReport is a valid report of a component's process x.
func newReport(namespace, component string) *v1alpha1.FeatureReport {
	name, leases := component+".x", namespace
	if namespace == metav1.NamespaceSystem && component != "kube-apiserver" {
		leases = v1alpha1.LeaseNamespace
	}
	return &v1alpha1.FeatureReport{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.FeatureReportSpec{
			Component: component, Instance: "x", BinaryVersion: "v0.1.0",
			Liveness: v1alpha1.ReportLiveness{Lease: &v1alpha1.LeaseReference{Namespace: leases, Name: name}},
		},
	}
}
