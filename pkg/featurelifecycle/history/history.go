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

package history

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed gates.json
var data []byte

// The components whose gates are recorded.
const (
	KubeAPIServer          = "kube-apiserver"
	KubeControllerManager  = "kube-controller-manager"
	KubeScheduler          = "kube-scheduler"
	Kubelet                = "kubelet"
	KubeProxy              = "kube-proxy"
	CloudControllerManager = "cloud-controller-manager"
	// ClientGo has the gates of clients such as kubectl, which environment variables set:
	// KUBE_FEATURE_<gate>. The servers above have these among their own gates.
	ClientGo = "client-go"
	// Kubeadm has the gates of ClusterConfiguration.featureGates and of "kubeadm init --feature-gates".
	Kubeadm = "kubeadm"
)

// History has all gates that a version since the first recorded one knows. Do not change what its methods return.
type History struct {
	// source has the release that was read, by minor version.
	source map[string]string
	// versions has the minor versions, oldest first.
	versions []string
	// gates are sorted by name.
	gates []Gate
}

// Gate is a feature gate in all versions. AllAlpha and AllBeta, which set the gates of a stage, are none.
type Gate struct {
	Name string `json:"name"`
	// Tracks has the components with the same history together. No component is in two of them.
	Tracks []Track `json:"tracks"`

	// versions are those of the History.
	versions []string `json:"-"`
}

// Track is the history of a gate in components that do not differ.
type Track struct {
	// Components are sorted by name.
	Components []string `json:"components"`
	// Changes are sorted by version. Each holds until the next one.
	Changes []Change `json:"changes"`
}

// Change is a version in which a gate became what it is.
type Change struct {
	// Version is a minor version, such as 1.37. The first one that is recorded stands for
	// itself and all versions before it.
	Version string `json:"version"`
	// Removed is true where components do not know the gate any more. Spec is nil then.
	Removed bool `json:"removed,omitempty"`
	*Spec
}

// Spec is what a component of a version has of a gate that it knows.
type Spec struct {
	// Stage is Alpha, Beta, GA or Deprecated.
	Stage   string `json:"stage"`
	Default bool   `json:"default"`
	// Locked is true when the gate can only be set to Default.
	Locked bool `json:"locked,omitempty"`
	// DependsOn has the gates without which this one cannot be on, sorted by name. Versions
	// before 1.35 do not declare dependencies.
	DependsOn []string `json:"dependsOn,omitempty"`
}

// document is the form of gates.json.
type document struct {
	Schema string            `json:"$schema"`
	Source map[string]string `json:"source"`
	Gates  []Gate            `json:"gates"`
}

// schema is the name of the schema's file, beside gates.json here and in a release.
const schema = "gates.schema.json"

var load = sync.OnceValue(func() *History {
	// The tests validate the same bytes.
	h, err := read(data)
	if err != nil {
		panic(fmt.Sprintf("pkg/featurelifecycle/history/gates.json: %v", err))
	}
	return h
})

// Load returns the history that this build has. It is parsed once.
func Load() *History { return load() }

// New returns a history of gates, sorted by name, or what is wrong with it. Source has the
// release that was read for each minor version.
func New(source map[string]string, gates []Gate) (*History, error) {
	h, err := index(source, gates)
	if err != nil {
		return nil, err
	}
	return h, h.validate()
}

// index makes a history whose gates are not validated.
func index(source map[string]string, gates []Gate) (*History, error) {
	h := &History{source: source, gates: gates}
	for version, release := range source {
		if minor(version) < 0 || !strings.HasPrefix(release, "v"+version+".") {
			return nil, fmt.Errorf("the source of version %q is %q; there has to be a release for a minor version", version, release)
		}
		h.versions = append(h.versions, version)
	}
	slices.SortFunc(h.versions, compareVersions)
	for i := range gates {
		gates[i].versions = h.versions
	}
	return h, nil
}

// Parse reads what Marshal wrote, or returns what is wrong with it.
func Parse(data []byte) (*History, error) {
	h, err := read(data)
	if err != nil {
		return nil, err
	}
	return h, h.validate()
}

// read parses a history and does not validate its gates.
func read(data []byte) (*History, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var doc document
	if err := decoder.Decode(&doc); err != nil {
		return nil, err
	}
	return index(doc.Source, doc.Gates)
}

// Marshal writes a history with one gate a line, so that differences can be read.
func (h *History) Marshal() ([]byte, error) {
	lines := make([][]byte, len(h.gates))
	for i, g := range h.gates {
		line, err := json.Marshal(g)
		if err != nil {
			return nil, err
		}
		lines[i] = append([]byte("    "), line...)
	}
	releases := make([]string, len(h.versions))
	for i, v := range h.versions {
		releases[i] = fmt.Sprintf("    %q: %q", v, h.source[v])
	}
	return fmt.Appendf(nil, "{\n  \"$schema\": %q,\n  \"source\": {\n%s\n  },\n  \"gates\": [\n%s\n  ]\n}\n",
		schema, strings.Join(releases, ",\n"), bytes.Join(lines, []byte(",\n"))), nil
}

// Versions returns the minor versions, oldest first.
func (h *History) Versions() []string { return h.versions }

// Source returns the release that was read for a minor version, "" for versions that are not recorded. It may be a
// pre-release, which may still change.
func (h *History) Source(version string) string { return h.source[version] }

// Components returns all components that have gates, sorted by name.
func (h *History) Components() []string {
	var all []string
	for _, g := range h.gates {
		for _, t := range g.Tracks {
			all = append(all, t.Components...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Gates returns all gates, sorted by name.
func (h *History) Gates() []Gate { return h.gates }

// Gate returns the gate of a name. It is false for a name that no component of any version knows.
func (h *History) Gate(name string) (Gate, bool) {
	i, ok := slices.BinarySearchFunc(h.gates, name, func(g Gate, name string) int { return strings.Compare(g.Name, name) })
	if !ok {
		return Gate{}, false
	}
	return h.gates[i], true
}

// Components returns the components that know the gate in any version, sorted by name.
func (g Gate) Components() []string {
	var all []string
	for _, t := range g.Tracks {
		all = append(all, t.Components...)
	}
	slices.Sort(all)
	return all
}

// At returns what a component of a minor version has of the gate. It is false where the component does not
// know the gate, and for versions that are not recorded.
func (g Gate) At(component, version string) (Spec, bool) {
	if !slices.Contains(g.versions, version) {
		return Spec{}, false
	}
	var holds *Spec
	for _, c := range g.changes(component) {
		if compareVersions(c.Version, version) > 0 {
			break
		}
		holds = c.Spec
	}
	if holds == nil {
		return Spec{}, false
	}
	return *holds, true
}

// Added returns the first version in which a component knows the gate, "" if none does. The first version that is recorded
// may have the gate from an earlier one.
func (g Gate) Added(component string) string {
	if changes := g.changes(component); len(changes) > 0 {
		return changes[0].Version
	}
	return ""
}

// Removed returns the first version in which a component does not know the gate any more, "" if there is none.
func (g Gate) Removed(component string) string {
	changes := g.changes(component)
	if last := len(changes) - 1; last >= 0 && changes[last].Removed {
		return changes[last].Version
	}
	return ""
}

// changes returns those of the track that has a component.
func (g Gate) changes(component string) []Change {
	for _, t := range g.Tracks {
		if slices.Contains(t.Components, component) {
			return t.Changes
		}
	}
	return nil
}
