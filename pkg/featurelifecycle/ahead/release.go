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
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
	"k8s.io/kubernetes-features/pkg/features"
)

//go:embed gates.json
var data []byte

// Release is a published version of Kubernetes with its gates.
type Release struct {
	// Modules are those that the gates were read from, Kubernetes itself first.
	Modules []Module `json:"modules"`
	// Gates are sorted by name.
	Gates []Gate `json:"gates"`
}

// Module is a Go module as the module proxy has it.
type Module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	// Sum is the hash of the module, as in go.sum.
	Sum string `json:"sum"`
}

// Gate is a gate of a Release.
type Gate struct {
	Name string `json:"name"`
	// Specs are those that can hold at the minor version of the Release: the newest one that
	// every binary of it has, and later ones that ask for a compatibility version.
	Specs []Spec `json:"specs"`
	// Needs are the gates that it depends on.
	Needs []string `json:"needs,omitempty"`
}

// Spec is featuregate.FeatureSpec as it is written to a file.
type Spec struct {
	// Version is the minor version since which the spec holds.
	Version string `json:"version"`
	Stage   string `json:"stage"`
	Default bool   `json:"default"`
	Locked  bool   `json:"locked,omitempty"`
	// MinCompatibilityVersion is the lowest compatibility version of binaries for which the
	// spec holds; empty for all.
	MinCompatibilityVersion string `json:"minCompatibilityVersion,omitempty"`
}

// Next returns the version whose gates this build has.
func Next() (*Release, error) {
	r, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("gates of the next version in pkg/featurelifecycle/ahead/gates.json: %w; write the file by make update-ahead", err)
	}
	return r, nil
}

// Parse reads what Marshal wrote, and fails for what no version can have.
func Parse(data []byte) (*Release, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	r := &Release{}
	if err := decoder.Decode(r); err != nil {
		return nil, err
	}
	return r, r.Validate()
}

// Validate returns what is wrong with a release.
func (r *Release) Validate() error {
	if len(r.Modules) == 0 || len(r.Gates) == 0 {
		return fmt.Errorf("%d modules and %d gates; there has to be one of each at least", len(r.Modules), len(r.Gates))
	}
	version, err := utilversion.ParseSemantic(r.Version())
	if err != nil {
		return fmt.Errorf("module %s: %w", r.Modules[0].Path, err)
	}
	target := utilversion.MajorMinor(version.Major(), version.Minor())
	var problems []error
	known := map[string]bool{}
	for _, g := range r.Gates {
		known[g.Name] = true
	}
	for i, g := range r.Gates {
		if i > 0 && r.Gates[i-1].Name >= g.Name {
			problems = append(problems, fmt.Errorf("gate %s comes after %s; sort them by name", g.Name, r.Gates[i-1].Name))
		}
		if len(g.Specs) == 0 {
			problems = append(problems, fmt.Errorf("gate %s has no specs", g.Name))
		}
		for _, s := range g.Specs {
			if since, err := s.spec(); err != nil {
				problems = append(problems, fmt.Errorf("gate %s: %w", g.Name, err))
			} else if since.Version.GreaterThan(target) {
				problems = append(problems, fmt.Errorf("gate %s has a spec of %s, which is newer than %s", g.Name, s.Version, r.Version()))
			}
		}
		for _, needed := range g.Needs {
			if !known[needed] {
				problems = append(problems, fmt.Errorf("gate %s depends on %s, which is no gate of %s", g.Name, needed, r.Version()))
			}
		}
	}
	return errors.Join(problems...)
}

// Marshal writes a release with one gate a line, so that differences can be read.
func (r *Release) Marshal() ([]byte, error) {
	modules, err := oneALine(r.Modules)
	if err != nil {
		return nil, err
	}
	gates, err := oneALine(r.Gates)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "{\n  \"modules\": [\n%s\n  ],\n  \"gates\": [\n%s\n  ]\n}\n", modules, gates), nil
}

func oneALine[T any](items []T) ([]byte, error) {
	lines := make([][]byte, len(items))
	for i, item := range items {
		line, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		lines[i] = append([]byte("    "), line...)
	}
	return bytes.Join(lines, []byte(",\n")), nil
}

// Version returns the version of Kubernetes, such as v1.38.0-beta.0.
func (r *Release) Version() string { return r.Modules[0].Version }

// Minor returns the minor version, such as 1.38.
func (r *Release) Minor() *utilversion.Version {
	v := utilversion.MustParseSemantic(r.Version())
	return utilversion.MajorMinor(v.Major(), v.Minor())
}

// Prerelease returns true for a version that may still change before it is released.
func (r *Release) Prerelease() bool {
	return utilversion.MustParseSemantic(r.Version()).PreRelease() != ""
}

// Kind returns a phrase for the kind of version that it is: "a beta" for v1.38.0-beta.0.
func (r *Release) Kind() string {
	kind, _, _ := strings.Cut(utilversion.MustParseSemantic(r.Version()).PreRelease(), ".")
	switch kind {
	case "":
		return "a release"
	case "alpha":
		return "an alpha"
	case "rc":
		return "a release candidate"
	default:
		return "a " + kind
	}
}

// Specs returns the gates' specs. Gates of this repository, which upstream does not have,
// are as in this build.
func (r *Release) Specs(build map[featuregate.Feature]featuregate.VersionedSpecs) (map[featuregate.Feature]featuregate.VersionedSpecs, error) {
	all := make(map[featuregate.Feature]featuregate.VersionedSpecs, len(r.Gates)+1)
	if own, ok := build[features.FeatureLifecycle]; ok {
		all[features.FeatureLifecycle] = own
	}
	for _, g := range r.Gates {
		for _, s := range g.Specs {
			spec, err := s.spec()
			if err != nil {
				return nil, fmt.Errorf("gate %s: %w", g.Name, err)
			}
			all[featuregate.Feature(g.Name)] = append(all[featuregate.Feature(g.Name)], spec)
		}
	}
	return all, nil
}

// Dependencies returns the dependencies between the gates.
func (r *Release) Dependencies() versionskew.Dependencies {
	all := versionskew.Dependencies{}
	for _, g := range r.Gates {
		for _, needed := range g.Needs {
			name := featuregate.Feature(g.Name)
			all[name] = append(all[name], featuregate.Feature(needed))
		}
	}
	return all
}

// stages are those of component-base by the names that upstream's list has for them, in
// specs, since their type is not exported.
var stages = map[string]featuregate.FeatureSpec{
	"Alpha":      {PreRelease: featuregate.Alpha},
	"Beta":       {PreRelease: featuregate.Beta},
	"GA":         {PreRelease: featuregate.GA},
	"Deprecated": {PreRelease: featuregate.Deprecated},
}

// spec returns what component-base has of a spec.
func (s Spec) spec() (featuregate.FeatureSpec, error) {
	spec, ok := stages[s.Stage]
	if !ok {
		return spec, fmt.Errorf("stage %q is none of %s", s.Stage, strings.Join(slices.Sorted(maps.Keys(stages)), ", "))
	}
	var err error
	if spec.Version, err = utilversion.ParseMajorMinor(s.Version); err != nil {
		return spec, fmt.Errorf("version of the spec: %w", err)
	}
	if s.MinCompatibilityVersion != "" {
		if spec.MinCompatibilityVersion, err = utilversion.ParseMajorMinor(s.MinCompatibilityVersion); err != nil {
			return spec, fmt.Errorf("minCompatibilityVersion of the spec: %w", err)
		}
	}
	spec.Default, spec.LockToDefault = s.Default, s.Locked
	return spec, nil
}
