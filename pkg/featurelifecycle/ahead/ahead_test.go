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

package ahead

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/version"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
	"k8s.io/kubernetes-features/pkg/features"
)

// TestCommittedGates holds the committed data to be of the version after this build's.
func TestCommittedGates(t *testing.T) {
	next, err := Next()
	if err != nil {
		t.Fatal(err)
	}
	build := utilversion.MustParse(version.DefaultKubeBinaryVersion)
	if want := build.AddMinor(1); !next.Minor().EqualTo(want) {
		t.Errorf("the data is of %s, and the version after this build's is %s: run make update-ahead KUBE_VERSION=v%s.0-alpha.1, or the newest of it", next.Version(), want, want)
	}
	written, err := next.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(data), string(written)); diff != "" {
		t.Errorf("the file is not as it is written (-file +written):\n%s", diff)
	}
	for _, m := range next.Modules {
		if !strings.HasPrefix(m.Sum, "h1:") {
			t.Errorf("%s has the hash %q", m.Path, m.Sum)
		}
	}
	if len(next.Gates) < 200 {
		t.Errorf("%d gates", len(next.Gates))
	}
}

// beta is v1.38.0-beta.0 with some gates.
func beta(gates ...Gate) *Release {
	return &Release{Modules: []Module{{Path: "k8s.io/kubernetes", Version: "v1.38.0-beta.0", Sum: "h1:x"}}, Gates: gates}
}

func TestChangesBetweenVersions(t *testing.T) {
	at := utilversion.MustParse("1.37")
	alpha := featuregate.VersionedSpecs{{Version: at, PreRelease: featuregate.Alpha}}
	on := featuregate.VersionedSpecs{{Version: at, PreRelease: featuregate.Beta, Default: true}}
	build := map[featuregate.Feature]featuregate.VersionedSpecs{
		"AllAlpha": alpha, "Flips": alpha, "GetsLocked": on, "Same": on, "Vanishes": alpha, "WaitsForCompatibility": alpha,
		features.FeatureLifecycle: on,
	}
	changes, err := beta(
		Gate{Name: "Flips", Specs: []Spec{{Version: "1.38", Stage: "Beta", Default: true}}},
		Gate{Name: "GetsLocked", Specs: []Spec{{Version: "1.38", Stage: "GA", Default: true, Locked: true}}},
		Gate{Name: "New", Specs: []Spec{{Version: "1.38", Stage: "Alpha"}}},
		Gate{Name: "Same", Specs: []Spec{{Version: "1.37", Stage: "Beta", Default: true}}},
		Gate{Name: "WaitsForCompatibility", Specs: []Spec{
			{Version: "1.38", Stage: "Beta"}, {Version: "1.38", Stage: "Beta", Default: true, MinCompatibilityVersion: "1.38"},
		}},
	).Changes(build, at)
	if err != nil {
		t.Fatal(err)
	}
	wasAlpha := versionskew.Spec{Known: true, Stage: v1alpha1.StageAlpha}
	wasOn := versionskew.Spec{Known: true, Stage: v1alpha1.StageBeta, Default: true}
	want := []Change{
		{"Flips", wasAlpha, wasOn},
		{"GetsLocked", wasOn, versionskew.Spec{Known: true, Stage: v1alpha1.StageGA, Default: true, Locked: true}},
		{"New", versionskew.Spec{}, wasAlpha},
		{"Vanishes", wasAlpha, versionskew.Spec{}},
		{"WaitsForCompatibility", wasAlpha, versionskew.Spec{Known: true, Stage: v1alpha1.StageBeta}},
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var described []string
	for _, c := range changes[:4] {
		described = append(described, Describe(c.Before)+" > "+Describe(c.After))
	}
	if diff := cmp.Diff([]string{
		"alpha, off by default > beta, on by default",
		"beta, on by default > generally available, locked on",
		"not there > alpha, off by default",
		"alpha, off by default > not there",
	}, described); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDependenciesOfRelease(t *testing.T) {
	spec := []Spec{{Version: "1.38", Stage: "Alpha"}}
	r := beta(Gate{Name: "A", Specs: spec, Needs: []string{"B"}}, Gate{Name: "B", Specs: spec})
	if err := r.Validate(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(versionskew.Dependencies{"A": {"B"}}, r.Dependencies()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestParseRefusesWhatNoVersionHas(t *testing.T) {
	spec := []Spec{{Version: "1.38", Stage: "Alpha"}}
	for says, r := range map[string]*Release{
		"1 modules and 0 gates":                                beta(),
		"gate A comes after B":                                 beta(Gate{Name: "B", Specs: spec}, Gate{Name: "A", Specs: spec}),
		"gate A has no specs":                                  beta(Gate{Name: "A"}),
		`stage "ALPHA" is none of Alpha, Beta, Deprecated, GA`: beta(Gate{Name: "A", Specs: []Spec{{Version: "1.38", Stage: "ALPHA"}}}),
		"gate A: version of the spec":                          beta(Gate{Name: "A", Specs: []Spec{{Version: "next", Stage: "GA"}}}),
		"gate A: minCompatibilityVersion of the spec":          beta(Gate{Name: "A", Specs: []Spec{{Version: "1.38", Stage: "GA", MinCompatibilityVersion: "x"}}}),
		"gate A has a spec of 1.39, which is newer than v1.38": beta(Gate{Name: "A", Specs: []Spec{{Version: "1.39", Stage: "GA"}}}),
		"gate A depends on B, which is no gate":                beta(Gate{Name: "A", Specs: spec, Needs: []string{"B"}}),
		"module k8s.io/kubernetes":                             {Modules: []Module{{Path: "k8s.io/kubernetes", Version: "next"}}, Gates: []Gate{{Name: "A", Specs: spec}}},
	} {
		written, err := r.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(written); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
	if _, err := Parse([]byte(`{"owners": []}`)); err == nil {
		t.Error("an unknown field is read")
	}
}

func TestKindOfVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.38.0-alpha.1": "an alpha", "v1.38.0-beta.0": "a beta", "v1.38.0-rc.1": "a release candidate", "v1.38.2": "a release",
	} {
		r := &Release{Modules: []Module{{Version: version}}}
		if got := r.Kind(); got != want || r.Minor().String() != "1.38" || r.Prerelease() != (want != "a release") {
			t.Errorf("%s is %s of %s, want %s of 1.38", version, got, r.Minor(), want)
		}
	}
}
