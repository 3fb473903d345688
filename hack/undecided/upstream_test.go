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

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// decideNothing are tests that read upstream and leave no finding to a person, with the
// reason.
var decideNothing = map[string]string{
	"cmd/kube-apiserver/controlplane.TestFieldIsFoundInEncryptedObjects":         "upstream's objects are input",
	"cmd/kube-apiserver/controlplane.TestPrioritiesThatDiffer":                   "changes a copy of upstream's priorities, to see what the comparison finds",
	"cmd/kube-apiserver/controlplane.TestRemovedFieldsInNewerBytes":              "upstream's objects are input",
	"cmd/kube-apiserver/controlplane.TestRemovedFieldsInStoredBytes":             "upstream's objects are input",
	"cmd/kube-apiserver/controlplane.TestServerSideApplyKeepsItsModels":          "upstream's definitions are input",
	"cmd/kube-apiserver/controlplane.TestUnreadableBytesAreNoAnswer":             "upstream's objects are input",
	"cmd/kube-apiserver/controlplane/apidocs.TestCutsAreThoseOfANaiveTwin":       "upstream's definitions are input",
	"cmd/kube-apiserver/controlplane/apidocs.TestDefinitionsKeptWhileGatesAreOn": "upstream's definitions are input",
	"cmd/kube-apiserver/controlplane/apidocs.TestDefinitionsStayComplete":        "upstream's definitions are input",
	"cmd/kube-apiserver/controlplane/apidocs.TestOtherDefinitionsKept":           "upstream's definitions are input",
	"cmd/kube-apiserver/controlplane/apidocs.TestParametersAnywhere":             "upstream's definitions are input",
	"cmd/kube-apiserver/controlplane/apidocs.TestRequestFields":                  "upstream's definitions are input",
	"docs.TestAllFilesMappedInFork":                                              "is about files of this repository; upstream's are left out",
	"hack/ahead.TestListAgainstTheCatalog":                                       "changes a copy of the gates, to see what is listed",
	"pkg/featurelifecycle/history.TestCatalogGatesAreRecorded":                   "compares the data that make update writes",
	"hack/fork.TestAFork":                                 "lands in a whole checkout: make test-fork",
	"hack/gates.TestNeedsOfFinishedAPIs":                  "compares two functions of the generator; the page itself is generated",
	"pkg/featurelifecycle/catalog.TestNotServed":          "has entries of its own",
	"pkg/kubectl/feature.TestUpstreamRefusalsAreReported": "compares two programs, which agree at each version or have a defect",
}

// source are the top-level functions and variables of the tests of a package.
type source struct {
	// uses has the names in each of them.
	uses map[string]map[string]bool
	// reads has those that read upstream: they get a directory from the go command, call a
	// program of upstream's or its definitions, or take all gates.
	reads map[string]bool
}

// readSource reads the tests in a directory.
func readSource(t *testing.T, dir string) source {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	s := source{uses: map[string]map[string]bool{}, reads: map[string]bool{}}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		imports := map[string]string{}
		for _, spec := range file.Imports {
			of, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			imports[path.Base(of)] = of
			if spec.Name != nil {
				imports[spec.Name.Name] = of
			}
		}
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				s.add(decl.Name.Name, decl.Body, imports, file.Name.Name)
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					if values, ok := spec.(*ast.ValueSpec); ok {
						for _, name := range values.Names {
							for _, value := range values.Values {
								s.add(name.Name, value, imports, file.Name.Name)
							}
						}
					}
				}
			}
		}
	}
	return s
}

// add takes a function or a variable.
func (s source) add(name string, node ast.Node, imports map[string]string, pkg string) {
	if s.uses[name] == nil {
		s.uses[name] = map[string]bool{}
	}
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			literals := map[string]bool{}
			for _, arg := range n.Args {
				if literal, ok := arg.(*ast.BasicLit); ok {
					literals[literal.Value] = true
				}
			}
			s.reads[name] = s.reads[name] || literals[`"go"`] && literals[`"list"`]
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				from := imports[x.Name]
				s.reads[name] = s.reads[name] || strings.HasPrefix(from, "k8s.io/kubernetes/cmd/") || strings.HasPrefix(from, "k8s.io/kubernetes/pkg/generated/") ||
					strings.HasSuffix(from, "/"+catalog) && n.Sel.Name == "Gates"
			}
		case *ast.Ident:
			s.uses[name][n.Name] = true
			s.reads[name] = s.reads[name] || pkg == path.Base(catalog) && n.Name == "Gates"
		}
		return true
	})
}

// reaches returns true for what reads upstream, or uses what does. Names stand for
// functions and variables of the package, also where something local has one: such a test
// is in decideNothing.
func (s source) reaches(name string, seen map[string]bool) bool {
	if seen[name] || s.uses[name] == nil {
		return false
	}
	seen[name] = true
	if s.reads[name] {
		return true
	}
	for used := range s.uses[name] {
		if s.reaches(used, seen) {
			return true
		}
	}
	return false
}

// TestTestsThatReadUpstreamBelongToAQuestion finds tests of the root module that compare
// with upstream and are in no question: what they find would not be listed after a move.
// Tests with real processes have no questions, nor have other modules.
func TestTestsThatReadUpstreamBelongToAQuestion(t *testing.T) {
	const root = "../.."
	found, unlisted := map[string]bool{}, map[string]bool{}
	for _, top := range []string{"cmd", "docs", "hack", "pkg", "test/utils"} {
		err := filepath.WalkDir(filepath.Join(root, filepath.FromSlash(top)), func(dir string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			relative, err := filepath.Rel(root, dir)
			if err != nil {
				return err
			}
			s, relative := readSource(t, dir), filepath.ToSlash(relative)
			for name := range s.uses {
				if !strings.HasPrefix(name, "Test") || name == "TestMain" || !s.reaches(name, map[string]bool{}) {
					continue
				}
				found[relative+"."+name] = true
				if decideNothing[relative+"."+name] == "" && !inQuestion(relative, name) {
					unlisted[relative+"."+name] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(unlisted) > 0 {
		t.Errorf("these read upstream, and no question has them: %q; add them to questions in hack/undecided/main.go, or to decideNothing with the reason", slices.Sorted(maps.Keys(unlisted)))
	}
	for name := range decideNothing {
		if !found[name] {
			t.Errorf("%s reads upstream no more, or is gone; take it out of decideNothing", name)
		}
	}
	if len(found) < 2*len(decideNothing) {
		t.Errorf("only %d tests read upstream; teach this test how they do it now", len(found))
	}
}

// inQuestion returns true for a test of a question.
func inQuestion(dir, name string) bool {
	return slices.ContainsFunc(questions, func(q question) bool {
		return q.pkg == dir && slices.ContainsFunc(q.tests, func(pattern string) bool { return len(matching([]string{name}, pattern)) > 0 })
	})
}

// TestSource finds what reads upstream in tests, by what they call.
func TestSource(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"a_test.go": `package a

import (
	"os/exec"
	"testing"

	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	options "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/features"
)

var directory = func() string { out, _ := exec.Command("go", "list", "-m", "x").Output(); return string(out) }

func source(t *testing.T) string { return directory() }

type reader struct{}

func (reader) gates() { _, _ = catalog.Gates() }

func TestByAVariable(t *testing.T) { source(t) }

func TestByAMethod(t *testing.T) { reader{}.gates() }

func TestFlags(t *testing.T) { options.NewServerRunOptions() }

func TestNames(t *testing.T) { t.Log(features.HPAScaleToZero, catalog.All()) }

func TestList(t *testing.T) { exec.Command("kubectl", "list") }
`})
	s := readSource(t, dir)
	var found []string
	for name := range s.uses {
		if strings.HasPrefix(name, "Test") && s.reaches(name, map[string]bool{}) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	if diff := cmp.Diff([]string{"TestByAMethod", "TestByAVariable", "TestFlags"}, found); diff != "" {
		t.Errorf("unexpected tests (-want +got):\n%s", diff)
	}
}
