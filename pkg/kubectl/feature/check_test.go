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

package feature

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/utils/ptr"
)

// world is a cluster as its Features and FeatureReports describe it.
type world struct {
	t        *testing.T
	gates    gates
	version  string
	features map[string]*v1alpha1.Feature
	reports  []*v1alpha1.FeatureReport
	// plans has the servers' plan for each feature; planErr is returned
	// instead.
	plans   map[string][]v1alpha1.PlannedTask
	planErr error
	planned []string
}

// newWorld has one kube-apiserver, of a version, and no features.
func newWorld(t *testing.T, version string) *world {
	t.Helper()
	known, err := buildGates()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, gates: known, version: version, features: map[string]*v1alpha1.Feature{}, plans: map[string][]v1alpha1.PlannedTask{}}
	w.process("kube-apiserver", "a", version)
	return w
}

// next adds versions of gates to what this build has, as the build of 1.37 has
// them.
func (w *world) next(specs map[featuregate.Feature]featuregate.VersionedSpecs) {
	w.gates.highest = utilversion.MustParse("1.37")
	w.gates.specs = maps.Clone(w.gates.specs)
	maps.Copy(w.gates.specs, specs)
}

// process adds a process that has the binary of a version, with gates that it
// sets explicitly, as in Gate=true.
func (w *world) process(component, instance, version string, settings ...string) *v1alpha1.FeatureReport {
	r := &v1alpha1.FeatureReport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: component + "." + instance},
		Spec:       v1alpha1.FeatureReportSpec{Component: component, Instance: instance, BinaryVersion: "v" + version + ".3", EmulationVersion: version},
	}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		r.Spec.Features = append(r.Spec.Features, v1alpha1.ReportedFeature{Name: name, Enabled: value == "true", Explicit: true})
	}
	w.reports = append(w.reports, r)
	return r
}

// feature adds a feature at rest.
func (w *world) feature(name string, state v1alpha1.FeatureState) *v1alpha1.Feature {
	spec := versionskew.SpecAt(w.gates.specs[featuregate.Feature(name)], utilversion.MustParse(w.version))
	f := &v1alpha1.Feature{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name},
		Status: v1alpha1.FeatureStatus{
			State: state, Version: w.version, Stage: spec.Stage, Default: ptr.To(spec.Default), LockedToDefault: spec.Locked,
			Configured: &v1alpha1.FeatureConfiguration{Value: state == v1alpha1.StateOn, Source: v1alpha1.SourceDefault},
		},
	}
	if f.Status.Configured.Value != spec.Default {
		f.Status.Configured.Source = v1alpha1.SourceCommandLine
	}
	meta.SetStatusCondition(&f.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionKnown, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonKnownToServers})
	w.features[name] = f
	return f
}

// left returns a condition Clean that found something.
func left(f *v1alpha1.Feature, reason, message string) {
	meta.SetStatusCondition(&f.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionClean, Status: metav1.ConditionFalse, Reason: reason, Message: message})
}

// objects lets the first task of a feature with a name that contains some text
// find objects.
func (w *world) objects(name, task, resource, group string, examples ...string) {
	w.t.Helper()
	for _, d := range w.gates.catalog[featuregate.Feature(name)].OnDisable {
		if strings.Contains(d.Name, task) {
			w.plans[name] = append(w.plans[name], v1alpha1.PlannedTask{Name: d.Name, Leftovers: []v1alpha1.ResourceLeftovers{{
				Group: group, Resource: resource, Count: int64(len(examples)), Examples: examples,
			}}})
			return
		}
	}
	w.t.Fatalf("the catalog has no task %s for %s", task, name)
}

// run runs the command and returns its output and exit code.
func (w *world) run(to, output string, change ...func(*upgradeCheckOptions)) (string, int) {
	w.t.Helper()
	client := fake.NewClientset()
	for _, f := range w.features {
		if err := client.Tracker().Add(f); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, r := range w.reports {
		if err := client.Tracker().Add(r); err != nil {
			w.t.Fatal(err)
		}
	}
	w.planned = nil
	client.PrependReactor("create", "features/plan", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create := action.(clienttesting.CreateActionImpl)
		plan := create.GetObject().(*v1alpha1.FeaturePlan).DeepCopy()
		if plan.Spec.TargetVersion == to && plan.Spec.Enabled == nil {
			plan.Status.Tasks = w.plans[create.Name+" to "+to]
			return true, plan, w.planErr
		}
		if plan.Spec.Enabled == nil || *plan.Spec.Enabled {
			w.t.Errorf("a plan for %+v", plan.Spec)
		}
		w.planned = append(w.planned, create.Name)
		plan.Status.Tasks = w.plans[create.Name]
		return true, plan, w.planErr
	})
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	o := &upgradeCheckOptions{to: to, output: output, client: client, gates: w.gates, IOStreams: streams}
	for _, c := range change {
		c(o)
	}
	err := o.run(w.t.Context())
	for _, action := range client.Actions() {
		if action.GetVerb() != "list" && action.GetSubresource() != "plan" {
			w.t.Errorf("the check does %s %s", action.GetVerb(), action.GetResource())
		}
	}
	var code exitError
	switch {
	case err == nil:
		return out.String(), ExitSafe
	case errors.As(err, &code):
		return out.String(), int(code)
	default:
		return out.String() + "error: " + err.Error() + "\n", ExitFailed
	}
}

// want compares the whole output.
func (w *world) want(to string, code int, output string) {
	w.t.Helper()
	got, exit := w.run(to, "")
	if diff := cmp.Diff(strings.TrimPrefix(output, "\n"), got); diff != "" {
		w.t.Errorf("unexpected output (-want +got):\n%s", diff)
	}
	if exit != code {
		w.t.Errorf("exit code %d, want %d", exit, code)
	}
}

// specs are a gate's at the versions from 1.36 on.
func specs(later ...featuregate.FeatureSpec) featuregate.VersionedSpecs {
	all := featuregate.VersionedSpecs{{Version: utilversion.MustParse("1.36"), Default: true, PreRelease: featuregate.Beta}}
	for _, s := range later {
		s.Version = utilversion.MustParse("1.37")
		all = append(all, s)
	}
	return all
}

// First pitfall in practice: a gate that is set explicitly anywhere and that
// the next version removed or locked to the other value.
func TestCheckFindsRemovedOrLockedGates(t *testing.T) {
	w := newWorld(t, "1.36")
	w.next(map[featuregate.Feature]featuregate.VersionedSpecs{
		"LockedOn":  specs(featuregate.FeatureSpec{Default: true, LockToDefault: true, PreRelease: featuregate.GA}),
		"LockedOff": specs(featuregate.FeatureSpec{LockToDefault: true, PreRelease: featuregate.Deprecated}),
		"SetRight":  specs(featuregate.FeatureSpec{Default: true, LockToDefault: true, PreRelease: featuregate.GA}),
		"NodeOnly":  specs(featuregate.FeatureSpec{Default: true, LockToDefault: true, PreRelease: featuregate.GA}),
	})
	for _, name := range []string{"LockedOn", "SetRight"} {
		w.feature(name, v1alpha1.StateOn)
	}
	w.feature("LockedOff", v1alpha1.StateOff)
	// The build of 1.37 does not have it any more.
	removed := w.feature("Removed", v1alpha1.StateOn)
	removed.Status.Stage, removed.Status.Default, removed.Status.LockedToDefault = v1alpha1.StageGA, ptr.To(true), true
	w.process("kubelet", "node-1", "1.36", "LockedOn=false", "NodeOnly=false")
	w.process("kubelet", "node-2", "1.35", "LockedOn=false")
	// This one was replaced already, so it does start.
	w.process("kubelet", "node-3", "1.37", "SetRight=true", "LockedOff=false")
	w.process("kube-controller-manager", "m", "1.36", "SetRight=true", "Removed=true")
	w.process("kube-scheduler", "s", "1.36", "LockedOff=true")
	// One that ended in order is no more, and what others than Kubernetes' own
	// components have is not known.
	w.process("kube-scheduler", "gone", "1.36", "LockedOn=false").Annotations = map[string]string{v1alpha1.AnnotationTerminating: "true"}
	w.process("csi-driver", "d", "2.1", "SomethingElse=true")
	w.want("1.37", ExitNotSafe, `
LockedOff: not safe (RefusesToStart)
  Why:  1.37 has the gate locked to false and its binaries would refuse to start: kube-scheduler/s sets LockedOff=true
  Next: take LockedOff out of --feature-gates, or of featureGates in the configuration file, before the binary is replaced
LockedOn: not safe (RefusesToStart)
  Why:  1.37 has the gate locked to true and its binaries would refuse to start: kubelet/node-1 sets LockedOn=false, kubelet/node-2 sets LockedOn=false
  Next: take LockedOn out of --feature-gates, or of featureGates in the configuration file, before the binary is replaced
Removed: not safe (RefusesToStart)
  Why:  1.37 does not have the gate and its binaries would refuse to start: kube-controller-manager/m sets Removed=true
  Next: take Removed out of --feature-gates, or of featureGates in the configuration file, before the binary is replaced
NodeOnly: not safe (RefusesToStart)
  Why:  1.37 has the gate locked to true and its binaries would refuse to start: kubelet/node-1 sets NodeOnly=false
  Next: take NodeOnly out of --feature-gates, or of featureGates in the configuration file, before the binary is replaced
Not safe to move from 1.36 to 1.37: 4 of 5 features are not safe, 0 unknown.
`)
}

// The same on the way down: gates that are new in 1.36 are unknown to 1.35,
// whatever the value, even while kube-apiservers emulate 1.35 already.
func TestCheckFindsGatesUnknownAfterDowngrade(t *testing.T) {
	for _, version := range []string{"1.36", "1.35"} {
		w := newWorld(t, version)
		w.reports[0].Spec.BinaryVersion = "v1.36.3"
		w.feature("StaleControllerConsistencyJob", v1alpha1.StateOff)
		w.process("kube-controller-manager", "m", "1.36", "StaleControllerConsistencyJob=false")
		w.want("1.35", ExitNotSafe, fmt.Sprintf(`
StaleControllerConsistencyJob: not safe (RefusesToStart)
  Why:  1.35 does not have the gate and its binaries would refuse to start: kube-controller-manager/m sets StaleControllerConsistencyJob=false
  Next: take StaleControllerConsistencyJob out of --feature-gates, or of featureGates in the configuration file, before the binary is replaced
Not safe to move from %s to 1.35: 1 of 1 features are not safe, 0 unknown.
`, version))
	}
}

// TestCheckFindsConflictingGatesOfBinary: RestartAllContainersOnContainerExits is on by
// default in 1.36, and so is NodeDeclaredFeatures, on which it depends.
func TestCheckFindsConflictingGatesOfBinary(t *testing.T) {
	w := newWorld(t, "1.35")
	w.gates.dependences = map[string][]versionskew.Dependence{
		"NodeDeclaredFeatures":                 {{Name: "RestartAllContainersOnContainerExits"}},
		"RestartAllContainersOnContainerExits": {{Name: "NodeDeclaredFeatures", Needed: true}},
	}
	w.reports[0].Spec.BinaryVersion = "v1.36.3"
	w.feature("RestartAllContainersOnContainerExits", v1alpha1.StateOff)
	w.feature("NodeDeclaredFeatures", v1alpha1.StateOff)
	w.process("kubelet", "node-1", "1.35", "NodeDeclaredFeatures=false")
	// Dependencies of components outside Kubernetes are not known.
	w.process("csi-driver", "d", "1.35", "NodeDeclaredFeatures=false")
	w.want("1.36", ExitNotSafe, `
NodeDeclaredFeatures: not safe (RefusesToStart)
  Why:  binaries would refuse to start in 1.36 with RestartAllContainersOnContainerExits on and NodeDeclaredFeatures off, on which it depends: kubelet/node-1 sets NodeDeclaredFeatures=false
  Next: start them in 1.36 with --feature-gates=RestartAllContainersOnContainerExits=false,NodeDeclaredFeatures=false, or with --feature-gates=RestartAllContainersOnContainerExits=true,NodeDeclaredFeatures=true
RestartAllContainersOnContainerExits: not safe (RefusesToStart)
  Why:  binaries would refuse to start in 1.36 with RestartAllContainersOnContainerExits on and NodeDeclaredFeatures off, on which it depends: kubelet/node-1 sets NodeDeclaredFeatures=false
  Next: start them in 1.36 with --feature-gates=RestartAllContainersOnContainerExits=false,NodeDeclaredFeatures=false, or with --feature-gates=RestartAllContainersOnContainerExits=true,NodeDeclaredFeatures=true
Not safe to move from 1.35 to 1.36: 2 of 2 features are not safe, 0 unknown.
`)
	// One that has the version already does not start.
	w.reports[1].Spec.BinaryVersion, w.reports[1].Spec.EmulationVersion = "v1.36.3", "1.36"
	w.want("1.36", ExitSafe, "Safe to move from 1.35 to 1.36: all 2 features are.\n")
}

// TestUpstreamRefusalsAreReported covers every gate of this build that others depend on,
// or that depends on others, with both values. At each version that can be emulated, the
// check has to agree with component-base's own gate whether a process starts.
func TestUpstreamRefusalsAreReported(t *testing.T) {
	known, err := buildGates()
	if err != nil {
		t.Fatal(err)
	}
	asked, refused := 0, 0
	for version := known.lowest; !version.GreaterThan(known.highest); version = version.AddMinor(1) {
		for name := range known.dependences {
			for _, value := range []bool{false, true} {
				gate, err := catalog.Gates()
				if err != nil {
					t.Fatal(err)
				}
				if err := gate.SetEmulationVersion(version); err != nil {
					t.Fatal(err)
				}
				starts := gate.SetFromMap(map[string]bool{name: value}) == nil
				asked++
				lines := &commandLines{settings: map[string][]versionskew.Setting{name: {{Component: kubeAPIServer, Instance: "a", Enabled: value}}}}
				c := &checker{gates: known, namespace: metav1.NamespaceSystem}
				_, refuses := (versionskew.Input{
					Feature: &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Name: name}}, To: version.String(),
					Target:   versionskew.SpecAt(known.specs[featuregate.Feature(name)], version),
					Explicit: lines.settings[name], Dependences: c.dependences(move{from: version, to: version}, name, lines),
				}).Refuses()
				if refuses == starts {
					t.Errorf("%s with %s=%t: it starts: %t, and the check says that it would refuse: %t", version, name, value, starts, refuses)
				}
				if !starts {
					refused++
				}
			}
		}
	}
	if asked == 0 || refused == 0 {
		t.Errorf("%d questions, %d refused: this shows nothing", asked, refused)
	}
}

// Second pitfall in practice: stored objects that use a field whose gate is off in
// the adjacent version. Names that begin with a digit are allowed by default from 1.36 on.
func TestCheckFindsStoredObjectsOfDisabledFeature(t *testing.T) {
	w := newWorld(t, "1.36")
	w.feature("RelaxedServiceNameValidation", v1alpha1.StateOn).Status.Control = v1alpha1.ControlDynamic
	w.feature("ResourceHealthStatus", v1alpha1.StateOn)
	w.feature("HPAConfigurableTolerance", v1alpha1.StateOn)
	w.feature("MaxUnavailableStatefulSet", v1alpha1.StateOff)
	w.feature("StaleControllerConsistencyJob", v1alpha1.StateOn)
	w.objects("RelaxedServiceNameValidation", "services", "services", "", "shop/1st", "shop/2nd")
	w.want("1.35", ExitNotSafe, `
RelaxedServiceNameValidation: not safe (NotInAdjacentVersion)
  Why:  the feature is on and is off in 1.35, where what uses it (2 services: shop/1st, shop/2nd) may be lost, or stand in the way of updates and deletions
  Next: restart all kube-apiservers of this version with --emulated-version=1.35 and wait until the feature is Off, or kubectl patch features -n kube-system RelaxedServiceNameValidation --type=merge -p '{"spec":{"enabled":false}}', and wait until the feature is Off; nothing may remove that from live services: change or delete them
Not safe to move from 1.36 to 1.35: 1 of 5 features are not safe, 0 unknown.
`)
	if diff := cmp.Diff([]string{"MaxUnavailableStatefulSet", "RelaxedServiceNameValidation", "ResourceHealthStatus"}, w.planned); diff != "" {
		t.Errorf("the servers were asked for other features than those that are off now, or in 1.35 (-want +got):\n%s", diff)
	}
	// Without permission to plan, features that are on and off there stay
	// unsafe.
	w.planErr = apierrors.NewForbidden(v1alpha1.Resource("features/plan"), "", errors.New("no"))
	out, code := w.run("1.35", "name")
	if want := "feature.features.k8s.io/RelaxedServiceNameValidation\nfeature.features.k8s.io/ResourceHealthStatus\n"; out != want || code != ExitNotSafe {
		t.Errorf("exit code %d and\n%swant\n%s", code, out, want)
	}
	// 1.36 has it on, so nothing is wrong with the way up.
	w.planErr = nil
	w.version, w.reports = "1.35", nil
	w.process("kube-apiserver", "a", "1.35")
	w.features = map[string]*v1alpha1.Feature{}
	w.feature("RelaxedServiceNameValidation", v1alpha1.StateOn)
	w.want("1.36", ExitSafe, "Safe to move from 1.35 to 1.36: all 1 features are.\n")
}

// TestOutdatedLeftovers stores an object after the servers' last examination.
func TestOutdatedLeftovers(t *testing.T) {
	w := newWorld(t, "1.36")
	meta.SetStatusCondition(&w.feature("MaxUnavailableStatefulSet", v1alpha1.StateOff).Status.Conditions,
		metav1.Condition{Type: v1alpha1.ConditionClean, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNothingLeft})
	w.want("1.35", ExitSafe, "Safe to move from 1.36 to 1.35: all 1 features are.\n")
	w.objects("MaxUnavailableStatefulSet", "ClearField", "statefulsets", "apps", "shop/db")
	if out, code := w.run("1.35", ""); code != ExitNotSafe || !strings.Contains(out, "1 statefulsets.apps: shop/db") {
		t.Errorf("exit code %d and\n%s", code, out)
	}
	// Without permission to plan, it is not known.
	w.planErr = apierrors.NewForbidden(v1alpha1.Resource("features/plan"), "", errors.New("no"))
	if out, code := w.run("1.35", ""); code != ExitUnknown || !strings.Contains(out, "the condition Clean may be 30 minutes old") {
		t.Errorf("exit code %d and\n%s", code, out)
	}
}

// Third pitfall in practice: an object that can no longer be updated or deleted
// because validation of a disabled feature stands in the way.
func TestCheckFindsUnchangeableObjects(t *testing.T) {
	w := newWorld(t, "1.36")
	left(w.feature("HPAScaleToZero", v1alpha1.StateOff), v1alpha1.ReasonLeftovers, "1 horizontalpodautoscalers.autoscaling")
	left(w.feature("MaxUnavailableStatefulSet", v1alpha1.StateOff), v1alpha1.ReasonLeftovers, "1 statefulsets.apps")
	w.feature("RelaxedServiceNameValidation", v1alpha1.StateOff)
	w.process("kube-scheduler", "s", "1.36")
	w.objects("HPAScaleToZero", "WaitForNone", "horizontalpodautoscalers", "autoscaling", "shop/web")
	w.objects("MaxUnavailableStatefulSet", "ClearField", "statefulsets", "apps", "shop/db")
	unsafe := `
HPAScaleToZero: not safe (NeedsTasks)
  Why:  the feature is off and left something behind that may not be updated or deleted any more, here or in 1.35: 1 horizontalpodautoscalers.autoscaling: shop/web
  Next: nothing may remove that from live horizontalpodautoscalers: change or delete them
MaxUnavailableStatefulSet: not safe (NeedsTasks)
  Why:  the feature is off and left something behind that may not be updated or deleted any more, here or in 1.35: 1 statefulsets.apps: shop/db
  Next: kubectl feature clean MaxUnavailableStatefulSet
Not safe to move from 1.36 to 1.35: 2 of 3 features are not safe, 0 unknown.
`
	w.want("1.35", ExitNotSafe, unsafe)
	// Not examined yet: the servers are queried.
	for _, name := range []string{"HPAScaleToZero", "MaxUnavailableStatefulSet"} {
		left(w.features[name], v1alpha1.ReasonNotExamined, "")
	}
	w.want("1.35", ExitNotSafe, unsafe)
	w.planErr = errors.New("boom")
	if out, code := w.run("1.35", ""); code != ExitUnknown || !strings.Contains(out, "MaxUnavailableStatefulSet: unknown (NotExamined)") || !strings.Contains(out, "boom") {
		t.Errorf("exit code %d and\n%s", code, out)
	}
	// Once they are removed, the feature is safe.
	w.planErr, w.plans = nil, nil
	w.want("1.35", ExitSafe, "Safe to move from 1.36 to 1.35: all 3 features are.\n")
}

// TestAllAlphaTurnsOffGatesPromotedToBeta covers groups of gates: reports list only
// gates that are set by name.
func TestAllAlphaTurnsOffGatesPromotedToBeta(t *testing.T) {
	w := newWorld(t, "1.36")
	alpha := featuregate.FeatureSpec{Version: utilversion.MustParse("1.36"), PreRelease: featuregate.Alpha}
	beta := featuregate.FeatureSpec{Version: utilversion.MustParse("1.37"), PreRelease: featuregate.Beta}
	// HPAScaleToZero declares what it stores.
	w.next(map[featuregate.Feature]featuregate.VersionedSpecs{"HPAScaleToZero": {alpha, beta}, "PodDeletionCost": {alpha}})
	w.objects("HPAScaleToZero", "WaitForNone", "horizontalpodautoscalers", "autoscaling", "shop/web")
	w.feature("HPAScaleToZero", v1alpha1.StateOn)
	w.feature("PodDeletionCost", v1alpha1.StateOn)
	if out, code := w.run("1.37", "name"); code != ExitNotSafe || out != "feature.features.k8s.io/HPAScaleToZero\n" {
		t.Errorf("exit code %d and %q", code, out)
	}
	// Set by name on the servers it stays on.
	w.reports[0].Spec.Features = []v1alpha1.ReportedFeature{{Name: "HPAScaleToZero", Enabled: true, Explicit: true}}
	w.want("1.37", ExitSafe, "Safe to move from 1.36 to 1.37: all 2 features are.\n")
}

// TestDeclaredTasksComeFirst: Workloads of 1.36 mean nothing to 1.35.
func TestDeclaredTasksComeFirst(t *testing.T) {
	w := newWorld(t, "1.36")
	w.feature("GenericWorkload", v1alpha1.StateOff)
	// They would find nothing.
	w.want("1.35", ExitSafe, "Safe to move from 1.36 to 1.35: all 1 features are.\n")
	// Nor would they because those of a change of the value do.
	w.plans["GenericWorkload to 1.35"] = []v1alpha1.PlannedTask{{Name: "WaitForNone", State: v1alpha1.StateTurningOff, Leftovers: []v1alpha1.ResourceLeftovers{{Resource: "pods", Count: 1}}}}
	w.want("1.35", ExitSafe, "Safe to move from 1.36 to 1.35: all 1 features are.\n")
	w.plans["GenericWorkload to 1.35"] = []v1alpha1.PlannedTask{{Name: v1alpha1.TaskWaitForUses}, {Name: "ClearCollection", Leftovers: []v1alpha1.ResourceLeftovers{{Resource: "workloads", Count: 1}}}}
	out, code := w.run("1.35", "")
	if code != ExitNotSafe || !strings.Contains(out, "GenericWorkload: not safe (NeedsTasks)") || !strings.Contains(out, "Downgrade/1.36/") || !strings.Contains(out, "--emulated-version=1.35") {
		t.Errorf("exit code %d and\n%s", code, out)
	}
	// They have run while the servers emulate 1.35: the binaries may be replaced.
	w.reports[0].Spec.EmulationVersion = "1.35"
	w.features["GenericWorkload"].Status.Version = "1.35"
	w.want("1.35", ExitSafe, "Safe to move from 1.35 to 1.35: all 1 features are.\n")
	w.features["GenericWorkload"].Status.State = v1alpha1.StateDowngrading
	if out, code := w.run("1.35", "wide"); code != ExitNotSafe || !strings.Contains(out, "InTransition") {
		t.Errorf("exit code %d and\n%s", code, out)
	}
}

// TestWorkloadsOf135KeepServersFromBecomingReady: GenericWorkload is on at 1.35 and
// Workloads are stored as 1.36 cannot decode them. A server of 1.36 with the gate on may
// never become ready, so the task that removes them would not run.
func TestWorkloadsOf135KeepServersFromBecomingReady(t *testing.T) {
	const upgrade, upgradeGroups = "Upgrade/1.36/ClearUnreadable/workloads.scheduling.k8s.io", "Upgrade/1.36/ClearUnreadable/podgroups.scheduling.k8s.io"
	w := newWorld(t, "1.35")
	w.reports[0].Spec.BinaryVersion = "v1.36.3"
	w.reports[0].Spec.Features = []v1alpha1.ReportedFeature{{Name: "GenericWorkload", Enabled: true, Explicit: true}}
	w.feature("GenericWorkload", v1alpha1.StateOn)
	found := func(count int64, examples ...string) {
		task, groups := v1alpha1.PlannedTask{Name: upgrade, State: v1alpha1.StateUpgrading}, v1alpha1.PlannedTask{Name: upgradeGroups, State: v1alpha1.StateUpgrading}
		if count > 0 {
			task.Leftovers = []v1alpha1.ResourceLeftovers{{Group: "scheduling.k8s.io", Resource: "workloads", Count: count, Examples: examples}}
		}
		w.plans["GenericWorkload to 1.36"] = []v1alpha1.PlannedTask{{Name: v1alpha1.TaskWaitForUses, State: v1alpha1.StateUpgrading}, task, groups}
	}
	found(3, "shop/a", "shop/b", "shop/c")
	w.want("1.36", ExitNotSafe, `
GenericWorkload: not safe (NeedsTasks)
  Why:  the feature is on in 1.36, and a server of 1.36 that has the feature on may never become ready while it finds what `+upgrade+`, `+upgradeGroups+` removes: 3 workloads.scheduling.k8s.io: shop/a, shop/b, shop/c
  Next: set --feature-gates=GenericWorkload=false in all components and wait until the feature is Off; turn it on again once status.version is 1.36
Not safe to move from 1.35 to 1.36: 1 of 1 features are not safe, 0 unknown.
`)
	found(0)
	w.want("1.36", ExitSafe, "Safe to move from 1.35 to 1.36: all 1 features are.\n")
	// Without a response, or from a server without the task, it is not known.
	unknown := "GenericWorkload: unknown (NotExamined)"
	w.planErr = apierrors.NewForbidden(v1alpha1.Resource("features/plan"), "", errors.New("no"))
	if out, code := w.run("1.36", ""); code != ExitUnknown || !strings.Contains(out, unknown) || !strings.Contains(out, "asking the servers for what is stored failed") {
		t.Errorf("exit code %d and\n%s", code, out)
	}
	w.planErr, w.plans = nil, map[string][]v1alpha1.PlannedTask{}
	if out, code := w.run("1.36", ""); code != ExitUnknown || !strings.Contains(out, unknown) {
		t.Errorf("exit code %d and\n%s", code, out)
	}
	// Turned off, the task has its time.
	found(3, "shop/a", "shop/b", "shop/c")
	w.reports[0].Spec.Features[0].Enabled = false
	w.feature("GenericWorkload", v1alpha1.StateOff)
	w.want("1.36", ExitSafe, "Safe to move from 1.35 to 1.36: all 1 features are.\n")
}

// TestCheckFindsRefusedServerFlags: kube-apiserver refuses gates in --central-features
// and --dynamic-features that its emulation version does not have, or has locked.
func TestCheckFindsRefusedServerFlags(t *testing.T) {
	const gate = "StaleControllerConsistencyJob"
	w := newWorld(t, "1.36")
	w.feature(gate, v1alpha1.StateOff).Status.Control = v1alpha1.ControlDynamic
	w.reports[0].Spec.Features = []v1alpha1.ReportedFeature{{Name: gate, Control: v1alpha1.ControlDynamic}}
	w.want("1.35", ExitNotSafe, `
StaleControllerConsistencyJob: not safe (RefusesToStart)
  Why:  1.35 does not have the gate and its servers would refuse to start with it in --central-features or --dynamic-features: kube-apiserver/a has StaleControllerConsistencyJob as Dynamic
  Next: take StaleControllerConsistencyJob out of --central-features and --dynamic-features of all servers, before they are restarted as 1.35
Not safe to move from 1.36 to 1.35: 1 of 1 features are not safe, 0 unknown.
`)
	// Its Feature may be gone; the flag is there.
	delete(w.features, gate)
	if out, code := w.run("1.35", "name"); code != ExitNotSafe || out != "feature.features.k8s.io/"+gate+"\n" {
		t.Errorf("exit code %d and %q", code, out)
	}
	// Upwards for what is removed: the build of 1.37 does not have it.
	w.reports[0].Spec.Features[0].Name = "Removed"
	w.next(nil)
	if out, code := w.run("1.37", "name"); code != ExitNotSafe || out != "feature.features.k8s.io/Removed\n" {
		t.Errorf("exit code %d and %q", code, out)
	}
	w.reports[0].Spec.Features[0].Name = gate
	// For what becomes locked, and not for what stays.
	w.next(map[featuregate.Feature]featuregate.VersionedSpecs{gate: specs(featuregate.FeatureSpec{Default: true, LockToDefault: true, PreRelease: featuregate.GA})})
	w.feature(gate, v1alpha1.StateOn)
	if out, code := w.run("1.37", ""); code != ExitNotSafe || !strings.Contains(out, "1.37 has the gate locked") {
		t.Errorf("exit code %d and\n%s", code, out)
	}
	w.next(map[featuregate.Feature]featuregate.VersionedSpecs{gate: specs()})
	w.want("1.37", ExitSafe, "Safe to move from 1.36 to 1.37: all 1 features are.\n")
}

// TestUnsettledFeatureIsNotSafe covers a due change, disagreeing servers, and
// servers without reports.
func TestUnsettledFeatureIsNotSafe(t *testing.T) {
	w := newWorld(t, "1.36")
	due := w.feature("HPAScaleToZero", v1alpha1.StateOff)
	due.Spec.Paused, due.Status.Configured.Value = true, true
	meta.SetStatusCondition(&due.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonPaused, Message: "spec.paused holds the feature; set it to false to let the transition start"})
	w.want("1.35", ExitNotSafe, `
HPAScaleToZero: not safe (InTransition)
  Why:  the feature is Off and configured as true, and has not begun to change
  Next: it does not proceed by itself: spec.paused holds the feature; set it to false to let the transition start
Not safe to move from 1.36 to 1.35: 1 of 1 features are not safe, 0 unknown.
`)
	inconsistent := func(reason, message string) {
		for _, name := range []string{"HPAScaleToZero", "MaxUnavailableStatefulSet"} {
			meta.SetStatusCondition(&w.feature(name, v1alpha1.StateOff).Status.Conditions,
				metav1.Condition{Type: v1alpha1.ConditionConsistent, Status: metav1.ConditionFalse, Reason: reason, Message: message})
		}
	}
	inconsistent(v1alpha1.ReasonServersDisagree, "on in a, off in b")
	if out, code := w.run("1.35", ""); code != ExitUnknown || strings.Count(out, "unknown (Unsettled)") != 2 || !strings.Contains(out, "on in a, off in b") {
		t.Errorf("exit code %d and\n%s", code, out)
	}
	inconsistent(v1alpha1.ReasonReportMissing, "upstream is alive and has not reported which value it configures; no transition starts until it reports or is removed")
	want := `Not known: kube-apiserver upstream is alive and has not reported which value it configures; no transition starts until it reports or is removed
Unknown whether it is safe to move from 1.36 to 1.35: 0 of 2 features are not safe, 0 unknown.
`
	w.want("1.35", ExitUnknown, want)
	if out, code := w.run("1.35", "", func(o *upgradeCheckOptions) { o.allowMissing = true }); code != ExitUnknown || out != want {
		t.Errorf("a server is left out: exit code %d and\n%s", code, out)
	}
}

// TestCheckOfClusterWithDefaults moves all gates of this build with their defaults, in
// use by nothing. A gate that is not in the catalog, generally available in 1.36 and off
// in 1.35, is unknown; the way by emulation turns it off first.
func TestCheckOfClusterWithDefaults(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		code     int
		unknown  []string
	}{
		"up":                   {"1.35", "1.36", ExitSafe, nil},
		"down":                 {"1.36", "1.35", ExitUnknown, []string{"ServiceCIDRStatusFieldWiping"}},
		"up to the newest":     {"1.36", "1.37", ExitSafe, nil},
		"down from the newest": {"1.37", "1.36", ExitSafe, nil},
		"down, with servers of 1.36 that emulate 1.35": {"1.35", "1.35", ExitSafe, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.from)
			w.reports[0].Spec.BinaryVersion = "v1.36.3"
			at := utilversion.MustParse(tc.from)
			for name, versions := range w.gates.specs {
				state := v1alpha1.StateOff
				if versionskew.SpecAt(versions, at).Default {
					state = v1alpha1.StateOn
				}
				w.feature(string(name), state)
			}
			out, code := w.run(tc.to, "")
			var unknown []string
			for line := range strings.Lines(out) {
				if name, ok := strings.CutSuffix(line, ": unknown (NotExamined)\n"); ok {
					unknown = append(unknown, name)
				}
			}
			if diff := cmp.Diff(tc.unknown, unknown); diff != "" || code != tc.code {
				t.Errorf("exit code %d, want %d; unknown (-want +got):\n%s\n%s", code, tc.code, diff, out)
			}
		})
	}
}

func TestCheckOfUnknownFeatures(t *testing.T) {
	for name, tc := range map[string]struct {
		to     string
		change func(*world)
		says   string
	}{
		"no version":           {"next", nil, "--to=next is no minor version; write it like 1.37"},
		"a patch version":      {"1.35.7", nil, "--to=1.35.7 is no minor version; write --to=1.35"},
		"a letter before it":   {"v1.35", nil, "--to=v1.35 is no minor version; write --to=1.35"},
		"newer than the build": {"1.39", nil, "use kubectl-feature of 1.39"},
		"older than it knows":  {"1.32", nil, "this plugin knows versions from 1.34 on"},
		"two versions":         {"1.34", nil, "one minor version at a time; check --to 1.35 first"},
		"no server":            {"1.35", func(w *world) { w.reports = nil }, "no kube-apiserver reports its version"},
		"servers that differ":  {"1.35", func(w *world) { w.process("kube-apiserver", "b", "1.35") }, "have different versions (a 1.36, b 1.35); finish that move first"},
		"a newer cluster":      {"1.37", func(w *world) { w.reports[0].Spec.EmulationVersion = "1.38" }, "the cluster has 1.38: this plugin knows versions up to 1.37"},
		"kubelets with missing reports": {"1.35", func(w *world) {
			w.feature("HPAScaleToZero", v1alpha1.StateOff).Status.Uses = []v1alpha1.FeatureUse{{Component: "kubelet", Expected: 3, Examples: []string{"n1", "n2", "n3"}}}
		}, "Not known: 3 kubelet did not report, and what they set is not known: n1, n2, n3\nUnknown whether it is safe to move from 1.36 to 1.35"},
		"no feature": {"1.35", nil, "Not known: there is no Feature of a gate that this build knows; kube-apiservers create them when they start\nUnknown whether it is safe to move from 1.36 to 1.35"},
		"a format":   {"1.35", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, output := newWorld(t, "1.36"), ""
			if tc.change != nil {
				tc.change(w)
			}
			if name == "a format" {
				output, tc.says = "xml", `unknown output format "xml"`
			}
			want := ExitFailed
			if strings.Contains(tc.says, "Unknown whether") {
				want = ExitUnknown
			}
			if out, code := w.run(tc.to, output); code != want || !strings.Contains(out, tc.says) {
				t.Errorf("exit code %d, want %d, and %q does not say %q", code, want, out, tc.says)
			}
		})
	}
	// They may be left out of account.
	w := newWorld(t, "1.36")
	w.feature("HPAScaleToZero", v1alpha1.StateOff).Status.Uses = []v1alpha1.FeatureUse{{Component: "kubelet", Expected: 3}}
	if out, code := w.run("1.35", "", func(o *upgradeCheckOptions) { o.allowMissing = true }); code != ExitSafe {
		t.Errorf("exit code %d and %s", code, out)
	}
}

func TestFormats(t *testing.T) {
	w := newWorld(t, "1.36")
	w.feature("HPAConfigurableTolerance", v1alpha1.StateOn)
	w.feature("HPAScaleToZero", v1alpha1.StateTurningOff)
	for output, want := range map[string]string{
		"wide": `NAME                       STATE        SAFE    REASON         WHY
HPAConfigurableTolerance   On           True    Safe           1.35 can read what is stored
HPAScaleToZero             TurningOff   False   InTransition   the feature is TurningOff
Not safe to move from 1.36 to 1.35: 1 of 2 features are not safe, 0 unknown.
`,
		"yaml": `apiVersion: upgradecheck.features.k8s.io/v1alpha1
features:
- name: HPAConfigurableTolerance
  reason: Safe
  safe: "True"
  state: "On"
  why: 1.35 can read what is stored
- name: HPAScaleToZero
  next: wait until it is On or Off (kubectl get features -n kube-system HPAScaleToZero)
  reason: InTransition
  safe: "False"
  state: TurningOff
  why: the feature is TurningOff
from: "1.36"
kind: UpgradeCheck
message: 'Not safe to move from 1.36 to 1.35: 1 of 2 features are not safe, 0 unknown.'
safe: "False"
to: "1.35"
`,
	} {
		out, _ := w.run("1.35", output)
		if diff := cmp.Diff(want, out); diff != "" {
			t.Errorf("-o %s (-want +got):\n%s", output, diff)
		}
	}
	if out, _ := w.run("1.35", "json"); !strings.Contains(out, `"safe": "False"`) {
		t.Errorf("-o json: %s", out)
	}
}

// TestExitCodes of the command itself.
func TestExitCodes(t *testing.T) {
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"upgrade-check", "--help"}, ExitSafe, "Exit codes: 0"},
		{[]string{"help", "upgrade-check"}, ExitSafe, "Exit codes: 0"},
		{[]string{"help"}, ExitSafe, "Available Commands"},
		{[]string{"help", "nosuch"}, ExitFailed, `there is no command "nosuch"; kubectl feature --help lists all`},
		{[]string{"help", "list", "Name"}, ExitFailed, `there is no command "list Name"`},
		{[]string{"nosuch"}, ExitFailed, `unknown command "nosuch"`},
		{[]string{"list", "--help"}, ExitSafe, "kube-system, where those of Kubernetes are"},
		{[]string{"upgrade-check"}, ExitFailed, "kubectl feature upgrade-check needs --to; write it like --to=1.36"},
		{[]string{"upgrade-check", "--to=1.35", "-n", "other"}, ExitFailed, "third party"},
		{[]string{"upgrade-check", "--to=1.35", "extra"}, ExitFailed, "kubectl feature upgrade-check takes no names, and there is extra; kubectl feature describe extra is about one feature"},
		{[]string{"upgrade-check", "--to=1.35", "--kubeconfig", "testdata/none"}, ExitFailed, "testdata/none"},
	} {
		var out bytes.Buffer
		code := Run(tc.args, genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out})
		if code != tc.code || !strings.Contains(out.String(), tc.says) {
			t.Errorf("%s: exit code %d, want %d, and %q does not say %q", slices.Concat(tc.args), code, tc.code, out.String(), tc.says)
		}
	}
}
