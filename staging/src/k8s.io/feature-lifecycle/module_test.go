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

package featurelifecycle

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// requirement is a module that the library may require directly.
type requirement struct {
	// why the library cannot do without it.
	why string
	// tests is true for what only tests import: programs that use the library never
	// link it.
	tests bool
}

// requirements is reviewed: who uses the library gets these modules into go.mod, at
// these versions or newer ones.
var requirements = map[string]requirement{
	"github.com/cockroachdb/datadriven":    {"scripts with golden output, in tests of the controller", true},
	"github.com/go-logr/logr":              {"a logger that keeps what is logged", true},
	"github.com/google/go-cmp":             {"differences of objects, which lifecycletest tells its callers", false},
	"github.com/spf13/pflag":               {"flags, as component-base has them", false},
	"gopkg.in/evanphx/json-patch.v4":       {"what kube-apiserver makes of the patches of tasks", true},
	"k8s.io/api":                           {"Leases of processes, Nodes of kubelets, rules of RBAC, Pod templates", false},
	"k8s.io/apimachinery":                  {"the API's types are objects", false},
	"k8s.io/client-go":                     {"clients, informers, queues", false},
	"k8s.io/component-base":                {"the feature gates that featuregate wraps, and metrics", false},
	"k8s.io/klog/v2":                       {"contextual logging", false},
	"k8s.io/utils":                         {"clocks that tests set, pointers, and a cache of bounded size", false},
	"pgregory.net/rapid":                   {"models in tests", true},
	"sigs.k8s.io/structured-merge-diff/v6": {"generated apply configurations", false},
}

// forbidden are modules that the library has to work without (KEP-3920): what they
// bring is for API servers alone, and k8s.io/kubernetes is not meant to be imported.
var forbidden = []string{"k8s.io/kubernetes", "k8s.io/kubernetes-features", "k8s.io/apiserver"}

// module is what "go mod edit -json" says of go.mod.
type module struct {
	Module  struct{ Path string }
	Require []required
}

type required struct {
	Path, Version string
	Indirect      bool
}

// beside is true in a checkout of kubernetes/kubernetes, where staging modules are
// required as v0.0.0. Packages come from vendor there, for the workspace only.
func (m module) beside() bool {
	return slices.Contains(m.Require, required{Path: "k8s.io/apimachinery", Version: "v0.0.0"})
}

func readModule(t *testing.T) module {
	t.Helper()
	var m module
	if err := json.Unmarshal([]byte(run(t, "mod", "edit", "-json")), &m); err != nil {
		t.Fatal(err)
	}
	if m.Module.Path != "k8s.io/feature-lifecycle" || len(m.Require) == 0 {
		t.Fatalf("go.mod is read as %+v", m)
	}
	return m
}

// alone runs the go command on the module as third parties build it.
func (m module) alone(t *testing.T, args ...string) []string {
	t.Helper()
	if !m.beside() {
		t.Setenv("GOWORK", "off")
	}
	return strings.Fields(run(t, args...))
}

func run(t *testing.T, args ...string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, exit.Stderr)
		}
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return string(output)
}

// packages are the folders with packages. Reading them makes the go command run the
// tests of this file again when a file was added or changed: it does not notice what
// the commands read that a test starts.
func packages(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), "_")) {
			return filepath.SkipDir
		}
		// An example with more requirements is a module of its own.
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && entry.IsDir() && path != "." {
			return filepath.SkipDir
		}
		if dir := filepath.ToSlash(filepath.Dir(path)); strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && dir != "." && !slices.Contains(found, dir) {
			found = append(found, dir)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// in is true for a module and what is below it: packages, and other modules.
func in(path, module string) bool {
	return path == module || strings.HasPrefix(path, module+"/")
}

// TestRequirements: a new direct dependency is decided about, not slipped in.
func TestRequirements(t *testing.T) {
	packages(t)
	m := readModule(t)
	direct := map[string]bool{}
	for _, r := range m.Require {
		if !r.Indirect {
			direct[r.Path] = true
			if requirements[r.Path].why == "" {
				t.Errorf("go.mod requires %s, and so does everybody who uses the library from now on: do without it, or add it to requirements in module_test.go with the reason", r.Path)
			}
		}
	}
	imported := m.alone(t, "list", "-f", `{{join .Imports "\n"}}`, "./...")
	for path, r := range requirements {
		if !direct[path] {
			t.Errorf("go.mod no longer requires %s: remove it from requirements in module_test.go", path)
		}
		used := slices.ContainsFunc(imported, func(name string) bool { return in(name, path) })
		switch {
		case used && r.tests:
			t.Errorf("code besides tests imports %s, so programs that use the library link it: move that into a test, or say in requirements in module_test.go why it has to be", path)
		case !used && !r.tests:
			t.Errorf("only tests import %s: say so in requirements in module_test.go", path)
		}
	}
}

// TestWithoutKubernetes: no package and no test imports Kubernetes itself or its
// server library, and no requirement brings them.
func TestWithoutKubernetes(t *testing.T) {
	packages(t)
	m := readModule(t)
	names := m.alone(t, "list", "-deps", "-test", "-f", "{{.ImportPath}}", "./...")
	if !slices.Contains(names, "k8s.io/feature-lifecycle/lifecycle/controller") || !slices.Contains(names, "k8s.io/apimachinery/pkg/runtime") {
		t.Fatalf("go list finds %d packages, and not those that are there", len(names))
	}
	for _, r := range m.Require {
		names = append(names, r.Path)
	}
	// The graph of modules beside is that of the whole checkout.
	if !m.beside() {
		for _, edge := range m.alone(t, "mod", "graph") {
			path, _, _ := strings.Cut(edge, "@")
			names = append(names, path)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		for _, module := range forbidden {
			if in(name, module) {
				t.Errorf("the library needs %s, and has to work without %s: ask \"GOWORK=off go mod why -m %[2]s\" and \"go list -deps -test ./...\" who imports it, and take what it is for as a parameter", name, module)
			}
		}
	}
}

// row is a line of the table in doc.go: a package, its tier, and what it is for.
var row = regexp.MustCompile(`(?m)^//\t(\S+) +(api|operator|part|example|internal)  +\S.*$`)

// TestTiers: doc.go says of each package what may be expected of it.
func TestTiers(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	tiers := map[string]string{}
	for _, match := range row.FindAllStringSubmatch(string(text), -1) {
		if tiers[match[1]] != "" {
			t.Errorf("the table in doc.go has %s twice", match[1])
		}
		tiers[match[1]] = match[2]
	}
	found := map[string]bool{}
	for _, name := range packages(t) {
		want := ""
		switch {
		case in(name, "client"):
			name, want = "client", "api"
		case in(name, "examples"):
			want = "example"
		case slices.Contains(strings.Split(name, "/"), "internal"):
			want = "internal"
		}
		found[name] = true
		tier := tiers[name]
		switch {
		case tier == "":
			t.Errorf("the table in doc.go lacks %s: add it with its tier and what it is for, or move it below internal", name)
		case want != "" && tier != want, want == "" && (tier == "example" || tier == "internal"):
			t.Errorf("the table in doc.go has %s as %s, which does not go with where it is", name, tier)
		}
	}
	for name := range tiers {
		if !found[name] {
			t.Errorf("the table in doc.go has %s, which is no package: remove it", name)
		}
	}
}
