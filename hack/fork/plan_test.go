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
	"bytes"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlanListsLandingFiles(t *testing.T) {
	for file, want := range map[string]bool{
		"pkg/apis/features/types.go":                                             true,
		"cmd/kube-apiserver/controlplane/apidocs/doc.go":                         true,
		"cmd/kube-apiserver/apiserver.go":                                        true,
		"pkg/features/kube_features.go":                                          false,
		"pkg/features/feature_lifecycle_test.go":                                 true,
		"test/e2e_features/framework/framework.go":                               true,
		"test/e2e_features/gates/gates_test.go":                                  true,
		"staging/src/k8s.io/feature-lifecycle/apis/OWNERS":                       true,
		"staging/src/k8s.io/feature-lifecycle/examples/everywhere/everywhere.go": true,
		"staging/src/k8s.io/feature-lifecycle/examples/widget-operator/main.go":  false,
		"test/e2e_features/api/readers/readers_test.go":                          false,
		"docs/keps/3920-finish-feature-flags/README.md":                          false,
		"hack/fork/mapping.go":                                                   false,
		"build/release/main.go":                                                  false,
		"pkg/generated/openapi/cmd/models-schema/main.go":                        false,
		"test/e2e_features/gates/lifecycle/lifecycle_test.go":                    true,
		"cmd/kubectl-feature/kubectl-feature.go":                                 true,
		"cmd/kubectl/kubectl.go":                                                 false,
		"test/utils/localcluster/kubemark/hollow.go":                             true,
		"test/e2e_features/versions/testdata/statefulset-before.yaml":            true,
	} {
		_, ok, err := lands(file)
		if err != nil {
			t.Error(err)
		}
		if ok != want {
			t.Errorf("%s lands: %t, want %t", file, ok, want)
		}
	}
	if _, _, err := lands("pkg/newcomer/newcomer.go"); err == nil || !strings.Contains(err.Error(), "no table says") {
		t.Errorf("a file that is in no table: %v", err)
	}
}

// TestTables: each entry of the tables of what lands, stays and is worded
// otherwise is about a file that is there.
func TestTables(t *testing.T) {
	listed, err := command(t.Context(), root, nil, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Split(strings.TrimRight(string(listed), "\x00"), "\x00")
	entries := slices.Collect(maps.Keys(stays))
	entries = slices.AppendSeq(entries, maps.Keys(wordings))
	for _, part := range parts {
		entries = append(entries, part.paths...)
	}
	for _, entry := range entries {
		if !slices.ContainsFunc(files, func(file string) bool { return below(file, entry) }) {
			t.Errorf("no file is or is below %s, which a table of hack/fork/mapping.go or wordings.go has", entry)
		}
	}
}

func TestRewriting(t *testing.T) {
	const before = `package x

import (
	"k8s.io/kubernetes-features/cmd/kube-apiserver/controlplane"
	"k8s.io/kubernetes-features/cmd/kube-apiserver/controlplane/apidocs"
	"k8s.io/kubernetes-features/pkg/features" // the gates
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes/cmd/kubelet/app"
)

const module = "k8s.io/kubernetes-features/" // and k8s.io/kubernetes-features.
`
	const want = `package x

import (
	"k8s.io/kubernetes/cmd/kube-apiserver/controlplane"
	"k8s.io/kubernetes/cmd/kube-apiserver/controlplane/apidocs"
	"k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/pkg/features" // the gates
	"k8s.io/kubernetes/test/e2e_features/framework"
)

const module = "k8s.io/kubernetes/" // and k8s.io/kubernetes.
`
	got, err := rewrite("x.go", []byte(before))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	binary := []byte("k8s.io/kubernetes-features/\x00")
	if got, err := rewrite("x", binary); err != nil || string(got) != string(binary) {
		t.Errorf("a file that is no text became %q, %v", got, err)
	}
}

// TestMains checks that only the license and documentation of upstream's main
// are left.
func TestMains(t *testing.T) {
	const license = "/*\nCopyright 2014\n*/\n\n"
	const theirs = license + `// The daemon.
package main

import (
	"os"
	_ "time/tzdata" // for CronJobs

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
)

func main() {
	command := app.NewCommand()
	code := cli.Run(command)
	os.Exit(code)
}
`
	const ours = "/*\n2026\n*/\n\n// Package main is ours.\npackage main\n\nimport (\n\t_ \"k8s.io/component-base/logs/json/register\"\n\t_ \"time/tzdata\"\n)\n\nfunc main() { ours() }\n"
	got, err := replaceMain("main.go", []byte(theirs), []byte(ours))
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(ours, "package main")
	if diff := cmp.Diff(license+"// The daemon.\npackage main"+code, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, test := range []struct{ replace, with, want string }{
		{"\t_ \"time/tzdata\" // for CronJobs\n", "", "for their effects"},
		{"cli\"\n", "cli\"\n\t_ \"k8s.io/new\"\n", "upstream imports k8s.io/component-base/logs/json/register, k8s.io/new, time/tzdata for their effects"},
		{"\tos.Exit(code)\n", "\tflush()\n\tos.Exit(code)\n", "does something else"},
		{"\tos.Exit(code)\n}\n", "\tos.Exit(code)\n}\n\nfunc init() { more() }\n", "does something else"},
		{"func main", "func init() {}\n\nfunc main", "does something else"},
		{"package main", "package x y", "no package clause"},
	} {
		if _, err := replaceMain("main.go", []byte(strings.Replace(theirs, test.replace, test.with, 1)), []byte(ours)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("upstream's main with %q for %q: %v, want %q", test.with, test.replace, err, test.want)
		}
	}
	got, err = besidePackage("x.go", []byte("/*\n2026\n*/\n\n// Package features has ours.\npackage features\n\nvar x int\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("/*\n2026\n*/\n\npackage features\n\nvar x int\n", string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestImportsAreThere: every package of the fork that a landed file imports is
// upstream's or has landed, and no part needs a later one.
func TestImportsAreThere(t *testing.T) {
	p := withoutSpecs(t)
	packages := map[string]int{}
	for _, f := range p.files {
		if dir := path.Dir(f.path); path.Ext(f.path) == ".go" && !strings.HasSuffix(f.path, "_test.go") && !strings.HasPrefix(dir, "staging/") {
			if number, ok := packages[dir]; !ok || f.part < number {
				packages[dir] = f.part
			}
		}
	}
	imports := 0
	for _, f := range p.files {
		if path.Ext(f.path) != ".go" {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.path, f.data, parser.ImportsOnly)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(imported, ours) {
				t.Errorf("%s still imports %s", f.path, imported)
			}
			dir, ok := strings.CutPrefix(imported, theirs+"/")
			if !ok || p.hasPackage(dir) && packages[dir] == 0 {
				continue
			}
			imports++
			number, landed := packages[dir]
			switch {
			case !landed && !p.hasPackage(dir):
				t.Errorf("%s imports %s, which is neither upstream's nor ours", f.path, imported)
			case number > f.part && !strings.HasSuffix(f.path, "_test.go"):
				t.Errorf("%s of part %d imports %s of part %d; the series would not build in between", f.path, f.part+1, imported, number+1)
			}
		}
	}
	if imports < 100 {
		t.Errorf("only %d imports were looked at", imports)
	}
}

// TestNoLandedFileIgnored: upstream's .gitignore would keep an ignored file out of
// the fork's commit.
func TestNoLandedFileIgnored(t *testing.T) {
	identity(t)
	p := withoutSpecs(t)
	ignore, err := p.base.read(".gitignore")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put(t, dir, map[string]string{".gitignore": string(ignore), "_output/x": ""})
	git(t, dir, "init", "-q")
	var names strings.Builder
	for name := range p.files {
		names.WriteString(name + "\n")
	}
	names.WriteString("_output/x\n")
	output, err := command(t.Context(), dir, strings.NewReader(names.String()), nil, "git", "check-ignore", "--stdin")
	if err != nil {
		t.Fatal(err)
	}
	if string(output) != "_output/x\n" {
		t.Errorf("ignored, of which only _output/x should be:\n%s", output)
	}
}

// TestNames: landed files name no pages, scripts and make targets that a fork does
// not have.
func TestNames(t *testing.T) {
	p := withoutSpecs(t)
	makefile, err := p.base.read("build/root/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool {
		if p.files[name] != nil || p.files[libraryDir+"/"+name] != nil {
			return true
		}
		_, err := os.Stat(filepath.Join(p.base.dir, filepath.FromSlash(name)))
		return err == nil
	}
	files := regexp.MustCompile(`(^|[^\w/.-])((docs|hack|test|api|cmd)/[\w./-]*\w\.(md|sh|go|mod|yaml))([^\w.]|\.?$|\.\s)`)
	targets := regexp.MustCompile("[\"`]make ([a-z-]+)")
	for _, f := range p.files {
		if f.base != nil || bytes.IndexByte(f.data, 0) >= 0 || strings.Contains(f.path, "/testdata/") {
			continue
		}
		for line := range strings.Lines(string(f.data)) {
			for _, match := range files.FindAllStringSubmatch(line, -1) {
				// Paths are from the root, or from the package.
				if name := match[2]; !has(name) && !has(path.Join(path.Dir(f.path), name)) {
					t.Errorf("%s names %s, which a fork does not have: %s", f.path, name, strings.TrimSpace(line))
				}
			}
			for _, match := range targets.FindAllStringSubmatch(line, -1) {
				if !strings.Contains(string(makefile), "\n"+match[1]+":") {
					t.Errorf("%s names a target that upstream's Makefile does not have: %s", f.path, strings.TrimSpace(line))
				}
			}
		}
	}
}
