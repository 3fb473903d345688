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
	"encoding/json"
	"fmt"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
	"sigs.k8s.io/yaml"
)

func TestRules(t *testing.T) {
	p := withoutSpecs(t)
	type branch struct {
		Name         string `json:"name"`
		Dependencies []struct {
			Repository string `json:"repository"`
			Branch     string `json:"branch"`
		} `json:"dependencies"`
	}
	type rules struct {
		Rules []struct {
			Destination string   `json:"destination"`
			Branches    []branch `json:"branches"`
			Library     bool     `json:"library"`
		} `json:"rules"`
	}
	target := p.files["staging/publishing/rules.yaml"]
	var before, after rules
	for data, to := range map[string]*rules{string(target.base): &before, string(target.data): &after} {
		if err := yaml.Unmarshal([]byte(data), to); err != nil {
			t.Fatal(err)
		}
	}
	last := len(after.Rules) - 1
	if diff := cmp.Diff(before.Rules, after.Rules[:last]); diff != "" {
		t.Errorf("other rules changed:\n%s", diff)
	}
	got := after.Rules[last]
	if got.Destination != libraryName || !got.Library || len(got.Branches) != 2 {
		t.Fatalf("the rule is %+v", got)
	}
	var names []string
	for _, dependency := range got.Branches[1].Dependencies {
		names = append(names, dependency.Repository+" "+dependency.Branch)
	}
	minor, _, ok := strings.Cut(strings.TrimPrefix(p.base.version, "v1."), ".")
	if !ok {
		t.Fatalf("upstream's version is %q", p.base.version)
	}
	at := " release-1." + minor
	want := []string{"api" + at, "apimachinery" + at, "client-go" + at, "component-base" + at, "streaming" + at}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("dependencies (-want +got):\n%s", diff)
	}
	// The bot publishes in order.
	for _, name := range names {
		if !slices.ContainsFunc(before.Rules, func(r struct {
			Destination string   `json:"destination"`
			Branches    []branch `json:"branches"`
			Library     bool     `json:"library"`
		}) bool {
			return r.Destination == strings.TrimSuffix(name, at)
		}) {
			t.Errorf("%s has no rule before", name)
		}
	}
}

// TestRestrictions: the library imports nothing that upstream's check of import
// restrictions would refuse.
func TestRestrictions(t *testing.T) {
	p := withoutSpecs(t)
	var all []struct {
		BaseImportPath string   `json:"baseImportPath"`
		AllowedImports []string `json:"allowedImports"`
	}
	if err := yaml.Unmarshal(p.files["staging/publishing/import-restrictions.yaml"].data, &all); err != nil {
		t.Fatal(err)
	}
	own := all[len(all)-1]
	if own.BaseImportPath != "./"+libraryDir {
		t.Fatalf("the last restriction is %+v", own)
	}
	output, err := command(t.Context(), filepath.Join(root, libraryDir), nil, []string{"GOWORK=off"}, "go", "list", "-f", `{{join .Imports "\n"}}
{{join .TestImports "\n"}}
{{join .XTestImports "\n"}}`, "./...")
	if err != nil {
		t.Fatal(err)
	}
	for imported := range strings.FieldsSeq(string(output)) {
		if strings.HasPrefix(imported, "k8s.io/") && !slices.ContainsFunc(own.AllowedImports, func(allowed string) bool {
			return imported == allowed || strings.HasPrefix(imported, allowed+"/")
		}) {
			t.Errorf("the library imports %s, which the restrictions do not allow", imported)
		}
	}
}

// TestModules: the go command reads the edited files as they are meant.
func TestModules(t *testing.T) {
	p := withoutSpecs(t)
	for kind, file := range map[string]string{"mod": "go.mod", "work": "go.work"} {
		dir := t.TempDir()
		put(t, dir, map[string]string{file: string(p.files[file].data)})
		output, err := command(t.Context(), dir, nil, []string{"GOWORK=off"}, "go", kind, "edit", "-json", file)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Require []struct{ Path, Version string }
			Replace []struct{ Old, New struct{ Path string } }
			Use     []struct{ DiskPath string }
		}
		if err := json.Unmarshal(output, &got); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(got)
		want := []string{"{k8s.io/feature-lifecycle v0.0.0}", "{{k8s.io/feature-lifecycle} {./staging/src/k8s.io/feature-lifecycle}}"}
		if kind == "work" {
			want = []string{"{./staging/src/k8s.io/feature-lifecycle}"}
		}
		for _, w := range want {
			if strings.Count(text, w) != 1 {
				t.Errorf("%s has %s %d times", file, w, strings.Count(text, w))
			}
		}
		for _, direct := range []string{"go.etcd.io/etcd/server/v3 v", "github.com/moby/sys/mountinfo v"} {
			if _, line, ok := strings.Cut(string(p.files[file].data), "\t"+direct); kind == "mod" && (!ok || strings.Contains(strings.SplitN(line, "\n", 2)[0], "indirect")) {
				t.Errorf("landed packages import %s…, which is not a direct requirement", direct)
			}
		}
		added := strings.Count(string(p.files[file].data), "\n") - strings.Count(string(p.files[file].base), "\n")
		if added != len(want) {
			t.Errorf("%s has %d lines more, want %d", file, added, len(want))
		}
	}
	library := string(p.files[libraryDir+"/go.mod"].data)
	if !strings.HasPrefix(library, "// This is a generated file. Do not edit directly.\n\nmodule k8s.io/feature-lifecycle\n") {
		t.Errorf("the library's go.mod begins otherwise than those of other staging modules:\n%.100s", library)
	}
	if !strings.Contains(library, "k8s.io/streaming => ../streaming\n") {
		t.Errorf("the library does not replace what staging modules need:\n%s", library)
	}
	file, err := modfile.Parse("go.mod", []byte(library), nil)
	if err != nil {
		t.Fatal(err)
	}
	staging := 0
	for _, line := range file.Require {
		if _, ok := p.base.staging[line.Mod.Path]; !ok {
			continue
		}
		staging++
		if line.Mod.Version != "v0.0.0" {
			t.Errorf("the library still requires %s %s, as it is published", line.Mod.Path, line.Mod.Version)
		}
	}
	if staging < 4 {
		t.Errorf("the library requires %d staging modules only:\n%s", staging, library)
	}
}

// TestSums: modules that upstream does not have come with all their lines,
// others stay at upstream's versions. A library that needs newer ones is
// refused.
func TestSums(t *testing.T) {
	p := withoutSpecs(t)
	target := p.files["go.sum"]
	var added []string
	for line := range strings.Lines(string(target.data)) {
		if !strings.Contains(string(target.base), line) {
			module, version := summed(line)
			added = append(added, module+" "+version)
		}
	}
	want := []string{"pgregory.net/rapid v1.3.0", "pgregory.net/rapid v1.3.0/go.mod"}
	if diff := cmp.Diff(want, added); diff != "" {
		t.Errorf("new sums (-want +got):\n%s", diff)
	}
	library := p.files[libraryDir+"/go.mod"]
	before := library.data
	for text, want := range map[string]string{
		"require github.com/spf13/pflag v1.99.0\n":     "requires newer modules than upstream " + p.base.version + ": github.com/spf13/pflag v1.99.0 (upstream's is v1.",
		"require github.com/spf13/pflag v0.0.1\n":      "",
		"require k8s.io/apimachinery v0.99.0\n":        "",
		"require (\n\tgithub.com/spf13/pflag nothing)": "go.mod",
	} {
		library.data = []byte("module x\n\n" + text)
		_, err := editSums(t.Context(), p, target.base)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("a library that says %q: %v, want %q", text, err, want)
		}
	}
	library.data = before
}

// TestDirect: no landed package imports what go.mod says only others do.
func TestDirect(t *testing.T) {
	p := withoutSpecs(t)
	target := p.files["go.mod"]
	for data, want := range map[string]int{string(target.base): 3, string(target.data): 0} {
		file, err := modfile.Parse("go.mod", []byte(data), nil)
		if err != nil {
			t.Fatal(err)
		}
		direct, err := p.imported(file)
		if err != nil {
			t.Fatal(err)
		}
		var indirect []string
		for _, line := range file.Require {
			if line.Indirect && direct[line.Mod.Path] {
				indirect = append(indirect, line.Mod.Path)
			}
		}
		if len(indirect) != want {
			t.Errorf("landed packages import %v, which are indirect requirements; want %d of them", indirect, want)
		}
	}
}

// TestOtherSystems: upstream type-checks all packages for Windows and macOS
// (hack/verify-typecheck.sh). Imports of landed files have a file there, too.
func TestOtherSystems(t *testing.T) {
	p := withoutSpecs(t)
	for _, system := range []string{"windows", "darwin"} {
		// Packages that have files for Linux only.
		linux := map[string]bool{}
		var files []*target
		for _, f := range p.files {
			if path.Ext(f.path) != ".go" || strings.Contains(f.path, "/testdata/") {
				continue
			}
			context := build.Default
			context.GOOS, context.CgoEnabled = system, false
			context.OpenFile = func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.data)), nil }
			matches, err := context.MatchFile(path.Dir(f.path), path.Base(f.path))
			if err != nil {
				t.Fatal(err)
			}
			if matches {
				files = append(files, f)
			}
			if name := theirs + "/" + path.Dir(f.path); !strings.HasSuffix(f.path, "_test.go") {
				if only, ok := linux[name]; !ok || only {
					linux[name] = !matches && !p.hasPackage(path.Dir(f.path))
				}
			}
		}
		for _, f := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), f.path, f.data, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range parsed.Imports {
				if imported := strings.Trim(spec.Path.Value, `"`); linux[imported] {
					t.Errorf("%s is for %s, too, and imports %s, which is for Linux only", f.path, system, imported)
				}
			}
		}
		if n := len(files); n < 300 || !linux[theirs+"/test/utils/localcluster/process"] {
			t.Errorf("only %d files are for %s, or the processes of local clusters are not for Linux only", n, system)
		}
	}
}
