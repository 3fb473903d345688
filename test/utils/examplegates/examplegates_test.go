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

package examplegates

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

const next = "choose another gate for it, as doc.go describes"

// TestExamplesAreOffByDefault holds each gate against the specs of this build.
func TestExamplesAreOffByDefault(t *testing.T) {
	gates, err := catalog.Gates()
	if err != nil {
		t.Fatal(err)
	}
	specs := gates.GetAll()
	for _, name := range All() {
		spec, known := specs[featuregate.Feature(name)]
		switch {
		case !known:
			t.Errorf("no gate of this build is called %s: %s", name, next)
		case spec.Default || spec.LockToDefault:
			t.Errorf("%s is on by default or locked: %s", name, next)
		case spec.PreRelease != featuregate.Alpha:
			t.Errorf("%s is %s and may be on by default in the next version: %s", name, spec.PreRelease, next)
		case gates.Enabled(featuregate.Feature(name)):
			t.Errorf("%s is on in this process", name)
		}
	}
}

// TestEmulatedVersionsKnowTheGates: local-up names Dynamic and Central on the command
// line of kube-apiserver, which refuses a gate that its emulation version lacks.
func TestEmulatedVersionsKnowTheGates(t *testing.T) {
	gates, err := catalog.Gates()
	if err != nil {
		t.Fatal(err)
	}
	now := gates.EmulationVersion()
	for minor := now.Minor() - catalog.EmulatedMinors; minor <= now.Minor(); minor++ {
		emulated := version.MajorMinor(now.Major(), minor)
		for _, name := range []string{Dynamic, Central} {
			spec := versionskew.SpecAt(gates.GetAllVersioned()[featuregate.Feature(name)], emulated)
			if !spec.Known || spec.Default {
				t.Errorf("%s is unknown or on at %s (%+v): %s", name, emulated, spec, next)
			}
		}
	}
}

// TestExamplesDeclareWhatTheyNeed holds each gate against its entry in the catalog.
func TestExamplesDeclareWhatTheyNeed(t *testing.T) {
	declared := map[string]lifecycle.Feature{}
	for _, feature := range catalog.Features() {
		declared[string(feature.Name)] = feature
	}
	for name, control := range map[string]v1alpha1.FeatureControl{Dynamic: lifecycle.Dynamic, Central: lifecycle.Central, Cleared: lifecycle.Central} {
		if got := declared[name].Control; got != control {
			t.Errorf("the control of %s is %q, want %q: %s", name, got, control, next)
		}
	}
	names := func(feature string) []string {
		var names []string
		for _, task := range declared[feature].OnDisable {
			names = append(names, task.Name)
		}
		return names
	}
	if got := names(Cleared); len(got) == 0 || slices.ContainsFunc(got, func(task string) bool { return !strings.HasPrefix(task, "ClearField/") }) {
		t.Errorf("turning off %s has the tasks %q, want those that clear fields alone: %s", Cleared, got, next)
	}
	const waits = "WaitForNone/statefulsets.apps/"
	if got := names(Dynamic); !slices.ContainsFunc(got, func(task string) bool { return strings.HasPrefix(task, waits) }) {
		t.Errorf("turning off %s has the tasks %q, want one that waits for StatefulSets: %s", Dynamic, got, next)
	}
}
