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

package kindcluster

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// read reads a file of the checkout.
func read(t *testing.T, elements ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{framework.Root(t)}, elements...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestClusterOfRunIsThatOfTests holds the name in the Makefile, whose containers kind-build
// removes, against the one here.
func TestClusterOfRunIsThatOfTests(t *testing.T) {
	for _, target := range []string{"kind-test", "kind-conformance"} {
		_, recipe, _ := strings.Cut(read(t, "Makefile"), "\n"+target+":")
		// The next target begins after an empty line.
		recipe, _, _ = strings.Cut(recipe, "\n\n")
		found := regexp.MustCompile(`-fresh -cluster ([^\s,)]+)`).FindStringSubmatch(recipe)
		if found == nil || found[1] != name {
			t.Errorf("the target %s has the cluster %q, want %s", target, found, name)
		}
	}
}

// TestOnlyUpgradesBuildPrevious holds the list of tests in the Makefile that do without
// upstream's minor version before, and those on the page, against the tests themselves.
func TestOnlyUpgradesBuildPrevious(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(framework.Root(t), "test", "e2e_kind", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	begin := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{$`)
	var without, all []string
	for _, file := range files {
		content := read(t, "test", "e2e_kind", filepath.Base(file))
		for _, found := range begin.FindAllStringSubmatchIndex(content, -1) {
			body, _, _ := strings.Cut(content[found[1]:], "\n}\n")
			if !strings.Contains(body, "kindcluster.Create(") {
				continue
			}
			test := content[found[2]:found[3]]
			all = append(all, test)
			if !strings.Contains(body, "PreviousImage(") {
				without = append(without, test)
			}
		}
	}
	slices.Sort(without)
	list := regexp.MustCompile(`(?m)^kind_without_previous := (.*)$`).FindStringSubmatch(read(t, "Makefile"))
	if list == nil || !slices.Equal(strings.Fields(list[1]), without) || len(without) == len(all) {
		t.Errorf("the Makefile has %q, want %q of the tests %q", list, without, all)
	}
	slices.Sort(all)
	if names := `{"` + strings.Join(all, `", "`) + `"}`; !strings.Contains(read(t, "test", "e2e_kind", "main_test.go"), names) {
		t.Errorf("nodeTests of test/e2e_kind/main_test.go has to be %s", names)
	}
	page := read(t, "docs", "kind.md")
	for _, test := range all {
		if !strings.Contains(page, "`"+test+"`") {
			t.Errorf("docs/kind.md does not name %s", test)
		}
	}
}

// TestRunWithoutNodesNamesTests checks that a run in which no test started nodes says what
// was selected, and what can be.
func TestRunWithoutNodesNamesTests(t *testing.T) {
	said := nothingRan("Typo", []string{"TestA", "TestB"})
	for _, text := range []string{"WHAT=Typo ", "TestA, TestB"} {
		if !strings.Contains(said, text) || strings.Contains(said, "\n") {
			t.Errorf("it says %q, want one line with %q", said, text)
		}
	}
}

// TestImagesAreNotNamedAsOthersAre checks names under which something else would be pulled.
func TestImagesAreNotNamedAsOthersAre(t *testing.T) {
	if image := unchangedName("v1.36.3"); !strings.HasPrefix(image, "localhost/") || !strings.HasSuffix(image, ":v1.36.3") {
		t.Errorf("the image of upstream's binaries is %s, want a name that no registry has", image)
	}
}

// TestOwnImageIsMade holds the name of the image against those that kind-build makes.
func TestOwnImageIsMade(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(framework.Root(t), "build", "kind", "base", "images.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(content), "\nvar OwnImages = ")
	list, _, _ := strings.Cut(table, "}")
	if !strings.Contains(list, strconv.Quote(ShellImage)) {
		t.Errorf("kind-build makes the images %q, want %s among them", list, ShellImage)
	}
}
