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
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/ahead"
)

// newWorldAhead has a cluster of this build's version, and a beta of the next one with the
// same gates. Change changes gates there; a gate without specs is removed.
func newWorldAhead(t *testing.T, change map[featuregate.Feature]featuregate.VersionedSpecs) (w *world, from, to string) {
	t.Helper()
	known, err := buildGates()
	if err != nil {
		t.Fatal(err)
	}
	w = newWorld(t, known.highest.String())
	next := known.highest.AddMinor(1)
	w.gates.next = &nextGates{
		release: &ahead.Release{Modules: []ahead.Module{{Path: "k8s.io/kubernetes", Version: "v" + next.String() + ".0-beta.0"}}},
		specs:   maps.Clone(known.specs), dependences: known.dependences,
	}
	for name, specs := range change {
		if len(specs) == 0 {
			delete(w.gates.next.specs, name)
			continue
		}
		w.gates.next.specs[name] = specs
	}
	return w, known.highest.String(), next.String()
}

// gateAt is a gate with one spec.
func gateAt(version string, stage featuregate.FeatureSpec) featuregate.VersionedSpecs {
	stage.Version = utilversion.MustParse(version)
	return featuregate.VersionedSpecs{stage}
}

// TestCheckAheadByListOfGates moves a cluster to a version that the build knows by a list
// of gates: gates vanish, change their default and get locked there.
func TestCheckAheadByListOfGates(t *testing.T) {
	w, from, to := newWorldAhead(t, nil)
	alpha, beta := featuregate.FeatureSpec{PreRelease: featuregate.Alpha}, featuregate.FeatureSpec{PreRelease: featuregate.Beta, Default: true}
	ga := featuregate.FeatureSpec{PreRelease: featuregate.GA, Default: true, LockToDefault: true}
	for name, gate := range map[featuregate.Feature][2]featuregate.FeatureSpec{
		"Vanishes": {beta}, "VanishesGA": {ga}, "VanishesUnset": {alpha},
		"Flips": {alpha, beta}, "FlipsSet": {alpha, beta}, "FlipsUnused": {alpha, beta}, "Central": {beta, ga},
		"Locked": {beta, ga}, "LockedSame": {beta, ga}, "LockedUnset": {beta, ga}, "Same": {beta, beta}, "SameGA": {ga, ga},
	} {
		w.gates.specs[name] = gateAt(from, gate[0])
		delete(w.gates.next.specs, name)
		if !strings.HasPrefix(string(name), "Vanishes") {
			w.gates.next.specs[name] = gateAt(to, gate[1])
		}
		state := v1alpha1.StateOff
		if gate[0].Default {
			state = v1alpha1.StateOn
		}
		if name != "FlipsUnused" {
			w.feature(string(name), state)
		}
	}
	w.features["Locked"].Status.State, w.features["Locked"].Status.Configured.Value = v1alpha1.StateOff, false
	w.reports[0].Spec.Features = []v1alpha1.ReportedFeature{
		{Name: "FlipsSet", Explicit: true}, {Name: "Central", Enabled: true, Control: v1alpha1.ControlCentral},
	}
	w.process("kubelet", "node-1", from, "Vanishes=true", "VanishesGA=true", "Locked=false", "LockedSame=true")
	w.process("csi-driver", "d", "2.1", "SomethingElse=true")
	w.want(to, ExitNotSafe, strings.NewReplacer("FROM", from, "TO", to).Replace(`
Central: not safe (RefusesToStart)
  Why:  TO has the gate locked and its servers would refuse to start with it in --central-features or --dynamic-features: kube-apiserver/a has Central as Central
  Next: take Central out of --central-features and --dynamic-features of all servers, before they are restarted as TO
Locked: not safe (RefusesToStart)
  Why:  TO has the gate locked to true and its binaries would refuse to start: kubelet/node-1 sets Locked=false
  Next: take Locked out of --feature-gates, or of featureGates in the configuration file, before the binary is replaced
Vanishes: not safe (RefusesToStart)
  Why:  TO does not have the gate and its binaries would refuse to start: kubelet/node-1 sets Vanishes=true
  Next: take Vanishes out of --feature-gates, or of featureGates in the configuration file, before the binary is replaced
VanishesGA: not safe (RefusesToStart)
  Why:  TO does not have the gate and its binaries would refuse to start: kubelet/node-1 sets VanishesGA=true
  Next: take VanishesGA out of --feature-gates, or of featureGates in the configuration file, before the binary is replaced
Flips: changes
  Gate: alpha, off by default; in TO beta, on by default
  Here: the feature turns on
FlipsSet: changes
  Gate: alpha, off by default; in TO beta, on by default
  Here: the new default is hidden by the setting of kube-apiserver/a (false)
LockedSame: changes
  Gate: beta, on by default; in TO generally available, locked on
  Here: the setting has no effect, and is refused once the gate is removed; take it out of kubelet/node-1 (true)
Not known: TO itself: this plugin has the gates of vTO.0-beta.0, a beta, and no tasks for the boundary; check again with kubectl-feature of TO before any binary is replaced
Not known: how TO reads what is stored by features that are on and stay on, 3: LockedSame, LockedUnset, Same
Not safe to move from FROM to TO: 4 of 11 features are not safe, 3 unknown, by the gates of vTO.0-beta.0.
`))
	// Without the settings it is never safe, since a beta may change.
	w.reports = w.reports[:1]
	w.reports[0].Spec.Features = nil
	delete(w.features, "Locked")
	for _, name := range []string{"Central", "LockedSame", "LockedUnset", "Same", "Vanishes"} {
		delete(w.features, name)
	}
	out, code := w.run(to, "json")
	var got result
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if code != ExitUnknown || got.Safe != "Unknown" || got.GatesOf != "v"+to+".0-beta.0" || len(got.Unknown) != 1 {
		t.Errorf("exit code %d and\n%s", code, out)
	}
	changes := map[string]string{}
	for _, a := range got.Features {
		if a.Safe != "True" {
			t.Errorf("%s is %s", a.Name, a.Safe)
		}
		changes[a.Name] = strings.TrimSuffix(a.Change+"; "+a.Effect, "; ")
	}
	if diff := cmp.Diff(map[string]string{
		"Flips":         "alpha, off by default; in " + to + " beta, on by default; the feature turns on",
		"FlipsSet":      "alpha, off by default; in " + to + " beta, on by default; the feature turns on",
		"SameGA":        "",
		"VanishesGA":    "generally available, locked on; in " + to + " not there",
		"VanishesUnset": "alpha, off by default; in " + to + " not there",
	}, changes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestCheckAheadExaminesWhatTurnsOff: a feature that is on and off in the next version is
// not safe while objects use it, as in a move to a version that the build has.
func TestCheckAheadExaminesWhatTurnsOff(t *testing.T) {
	w, from, to := newWorldAhead(t, map[featuregate.Feature]featuregate.VersionedSpecs{"HPAScaleToZero": nil, "MemoryQoS": nil})
	for _, name := range []string{"HPAScaleToZero", "MemoryQoS"} {
		w.feature(name, v1alpha1.StateOn)
	}
	w.objects("HPAScaleToZero", "WaitForNone", "horizontalpodautoscalers", "autoscaling", "shop/web")
	out, code := w.run(to, "")
	want := "HPAScaleToZero: not safe (NotInAdjacentVersion)\n  Why:  the feature is on and is not in " + to + ", where what uses it (1 horizontalpodautoscalers.autoscaling: shop/web) may be lost"
	if code != ExitNotSafe || !strings.HasPrefix(out, want) || !strings.Contains(out, "MemoryQoS: changes\n") || !strings.Contains(out, "Here: the feature turns off\n") {
		t.Errorf("from %s: exit code %d and\n%s\nwant\n%s", from, code, out, want)
	}
}

// TestCheckAheadUsesItsDependencies: a gate of the list depends on another one, which
// this build's does not.
func TestCheckAheadUsesItsDependencies(t *testing.T) {
	w, from, to := newWorldAhead(t, nil)
	spec := featuregate.FeatureSpec{PreRelease: featuregate.Beta, Default: true}
	for _, name := range []featuregate.Feature{"Dependent", "Needed"} {
		w.gates.specs[name], w.gates.next.specs[name] = gateAt(from, spec), gateAt(from, spec)
		w.feature(string(name), v1alpha1.StateOn)
	}
	w.gates.next.dependences = versionskew.Dependencies{"Dependent": {"Needed"}}.Dependences()
	w.process("kubelet", "node-1", from, "Needed=false")
	out, code := w.run(to, "name")
	if want := "feature.features.k8s.io/Dependent\nfeature.features.k8s.io/Needed\n"; code != ExitNotSafe || out != want {
		t.Errorf("exit code %d and\n%s, want\n%s", code, out, want)
	}
}

// TestCheckAheadOfThisBuild moves a cluster with defaults to the version of the committed
// list, and one that sets each gate that the list does not have any more.
func TestCheckAheadOfThisBuild(t *testing.T) {
	known, err := buildGates()
	if err != nil {
		t.Fatal(err)
	}
	if known.next == nil {
		t.Fatal("this build knows nothing of the next version; run make update-ahead KUBE_VERSION=v1.N.0-beta.0")
	}
	to := known.next.release.Minor().String()
	w := newWorld(t, known.highest.String())
	for name := range known.specs {
		if name == "AllAlpha" || name == "AllBeta" {
			continue
		}
		state := v1alpha1.StateOff
		if versionskew.SpecAt(known.specs[name], known.highest).Default {
			state = v1alpha1.StateOn
		}
		w.feature(string(name), state)
	}
	out, code := w.run(to, "")
	if code != ExitUnknown || strings.Contains(out, "not safe (") || strings.Contains(out, "unknown (") || !strings.Contains(out, "this plugin has the gates of "+known.next.release.Version()) {
		t.Errorf("exit code %d and\n%s", code, out)
	}
	changes, err := known.next.release.Changes(known.specs, known.highest)
	if err != nil {
		t.Fatal(err)
	}
	var settings []string
	want := map[string]string{}
	for _, c := range changes {
		if !c.After.Known {
			settings = append(settings, fmt.Sprintf("%s=%t", c.Name, c.Before.Default))
			want[c.Name] = "RefusesToStart"
		}
	}
	if len(settings) == 0 {
		t.Fatal("the list has all gates of this build")
	}
	w.process("kube-controller-manager", "m", known.highest.String(), settings...)
	got := map[string]string{}
	out, code = w.run(to, "json")
	var r result
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	for _, a := range r.Features {
		if a.Safe == "False" {
			got[a.Name] = a.Reason
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || code != ExitNotSafe {
		t.Errorf("exit code %d, -want +got:\n%s", code, diff)
	}
}

// TestCheckRefusesVersionsAfterTheNext covers what the build knows nothing of.
func TestCheckRefusesVersionsAfterTheNext(t *testing.T) {
	w, from, to := newWorldAhead(t, nil)
	after := utilversion.MustParse(to).AddMinor(1)
	want := fmt.Sprintf("this plugin knows versions up to %s, and the gates of v%s.0-beta.0; use kubectl-feature of %s", from, to, after)
	if out, code := w.run(after.String(), ""); code != ExitFailed || !strings.Contains(out, want) {
		t.Errorf("exit code %d and %q does not say %q", code, out, want)
	}
	// A cluster of the next version is not this plugin's, whatever it moves to.
	w.reports[0].Spec.EmulationVersion = to
	want = fmt.Sprintf("the cluster has %s: this plugin knows versions up to %s", to, from)
	if out, code := w.run(from, ""); code != ExitFailed || !strings.Contains(out, want) {
		t.Errorf("exit code %d and %q does not say %q", code, out, want)
	}
}
