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

package catalog

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
	lifecyclefeatures "k8s.io/kubernetes-features/pkg/features"
)

func TestDeclarationsAreValidAndSorted(t *testing.T) {
	features := Features()
	if err := lifecycle.Validate(features); err != nil {
		t.Error(err)
	}
	known, open := knownGates(t).GetAll(), openGates(t)
	var names []string
	for _, f := range features {
		names = append(names, string(f.Name))
		if _, ok := known[f.Name]; !ok {
			t.Errorf("%s is declared and no gate has that name", f.Name)
		} else if _, ok := open[f.Name]; !ok {
			t.Errorf("%s is declared and the gate is finished at every version that can be emulated: it cannot be turned off", f.Name)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("declarations are not sorted: %v", names)
	}
}

// TestEveryOpenGateHasAVerdict: one, and none for gates that are not open.
func TestEveryOpenGateHasAVerdict(t *testing.T) {
	entries := map[featuregate.Feature]bool{}
	for _, e := range All() {
		if entries[e.Name] {
			t.Errorf("%s has two verdicts; merge them", e.Name)
		}
		entries[e.Name] = true
		if err := e.validate(); err != nil {
			t.Error(err)
		}
	}
	open := openGates(t)
	for _, name := range slices.Sorted(maps.Keys(open)) {
		if !entries[name] {
			t.Errorf("gate %s is %s, open and without verdict; add an Entry to the file of its SIG in pkg/featurelifecycle/catalog, and a fixture testdata/%s.yaml if it stores something (docs/feature-authors.md)", name, open[name].Stage, name)
		}
	}
	known := knownGates(t).GetAll()
	for name := range entries {
		if spec, ok := known[name]; !ok {
			t.Errorf("the verdict on %s names no gate of this version; remove it", name)
		} else if _, ok := open[name]; !ok {
			t.Errorf("the verdict on %s names a gate that is %s and locked=%v, and was so at every version that can be emulated; remove it", name, spec.PreRelease, spec.LockToDefault)
		}
	}
}

// withoutFixture are entries that store something and have no fixture, with the reason.
var withoutFixture = map[featuregate.Feature]string{
	lifecyclefeatures.FeatureLifecycle: "it is what every cluster of this fork does; TestEveryGate needs it",
}

// TestStoredFieldsHaveFixtures checks that each feature with stored fields has a fixture.
// Without one a test uses nothing of the feature, and nothing is left over. A fixture
// without an entry would not be used.
func TestStoredFieldsHaveFixtures(t *testing.T) {
	fixtures := map[string]bool{}
	files, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		fixtures[strings.TrimSuffix(filepath.Base(file), ".yaml")] = true
	}
	for _, e := range All() {
		_, excepted := withoutFixture[e.Name]
		has, stores := fixtures[string(e.Name)], e.Stateless == ""
		switch {
		case stores && !has && !excepted:
			t.Errorf("gate %s stores something and has no fixture; write pkg/featurelifecycle/catalog/testdata/%s.yaml, objects that use all that its Entry names (docs/feature-authors.md)", e.Name, e.Name)
		case has && (excepted || !stores):
			t.Errorf("gate %s has the fixture pkg/featurelifecycle/catalog/testdata/%s.yaml and stores nothing; remove it, or say in the Entry what it stores", e.Name, e.Name)
		}
		delete(fixtures, string(e.Name))
	}
	for name := range fixtures {
		t.Errorf("pkg/featurelifecycle/catalog/testdata/%s.yaml is of no gate that has an Entry; remove it, or add the Entry", name)
	}
}

// TestRemaindersWithAnotherGate: the gate that a Remainder names has to need
// this one, so that both go off together, and its entry has to have the field.
func TestRemaindersWithAnotherGate(t *testing.T) {
	entries := map[featuregate.Feature]Entry{}
	for _, e := range All() {
		entries[e.Name] = e
	}
	dependencies := knownGates(t).Dependencies()
	for _, e := range All() {
		for _, r := range e.Retained {
			if r.With == "" {
				continue
			}
			if !slices.Contains(dependencies[r.With], e.Name) {
				t.Errorf("%s: %s %s remains with %s, which may stay on when %s goes off; say in Why what becomes of it, without With", e.Name, r.Resource, r.Path, r.With, e.Name)
			}
			if !slices.Contains(entries[r.With].Stores(), r.Field) {
				t.Errorf("%s: %s %s remains with %s, whose entry does not have it; add a task or a Remainder there", e.Name, r.Resource, r.Path, r.With)
			}
		}
	}
}
