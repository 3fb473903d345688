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
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
)

// TestGateChangesOfTheVersionAreDocumented compares docs/upgrade.md with the gates whose
// stage, default or lock the release changes. Gates that are added in pkg/features do not
// count.
func TestGateChangesOfTheVersionAreDocumented(t *testing.T) {
	emulated := emulatedVersions(t)
	before, after := emulated[1], emulated[0]
	added := addedGates(t)
	var differing, flipped []string
	all := knownGates(t).GetAllVersioned()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if slices.Contains(added, name) {
			continue
		}
		was, is := versionskew.SpecAt(all[name], before), versionskew.SpecAt(all[name], after)
		if was != is {
			differing = append(differing, string(name))
		}
		if was.Default != is.Default {
			flipped = append(flipped, string(name))
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "upgrade.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("Between %s and %s, %d gates differ, and %d of them have another default.", before, after, len(differing), len(flipped)); !strings.Contains(string(page), want) {
		t.Errorf("docs/upgrade.md does not say %q; these differ: %s\nand these have another default: %s", want, strings.Join(differing, ", "), strings.Join(flipped, ", "))
	}
}

// addedGates returns those that this repository adds to the release, as its file declares
// them.
func addedGates(t *testing.T) []featuregate.Feature {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "features", "kube_features.go"), nil, parser.SkipObjectResolution)
	if errors.Is(err, fs.ErrNotExist) {
		// In a fork they are among the others.
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(maps.Values(constantsOf(file)))
}

// TestVersionBoundariesAreWithinReach checks that version boundaries can be
// crossed. This binary never crosses one above its version, and no binary one
// below all that it can emulate.
func TestVersionBoundariesAreWithinReach(t *testing.T) {
	emulated := emulatedVersions(t)
	lowest, highest := emulated[len(emulated)-1].SubtractMinor(1), emulated[0]
	boundaries := 0
	for _, e := range All() {
		for _, v := range e.Versions {
			boundaries++
			at := utilversion.MustParse(v.At)
			if at.GreaterThan(highest) || !at.GreaterThan(lowest) {
				t.Errorf("%s declares the boundary %s; this binary passes those above %s up to %s", e.Name, v.At, lowest, highest)
			}
		}
	}
	if boundaries == 0 {
		t.Error("no entry declares a boundary")
	}
	if problem := lifecycle.Validate(Features()); problem != nil {
		t.Error(problem)
	}
}
