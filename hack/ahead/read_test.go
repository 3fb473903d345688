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
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/version"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/ahead"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/pkg/features"
)

// source returns the source of a module that this build is made of.
func source(t *testing.T, module string) fs.FS {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	return os.DirFS(strings.TrimSpace(string(output)))
}

// TestReadOfThisVersion reads the source of the version that this build has. It has to
// find what the gates of the build themselves have: all gates, specs and dependencies.
func TestReadOfThisVersion(t *testing.T) {
	gates, err := read(source(t, kubernetesModule), source(t, clientModule))
	if err != nil {
		t.Fatal(err)
	}
	build, err := catalog.Gates()
	if err != nil {
		t.Fatal(err)
	}
	r := &ahead.Release{Modules: []ahead.Module{{Path: kubernetesModule, Version: "v1.99.0"}}, Gates: gates}
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	want := build.GetAllVersioned()
	read, err := r.Specs(want)
	if err != nil {
		t.Fatal(err)
	}
	// They are settings of component-base for all gates of a stage.
	delete(want, "AllAlpha")
	delete(want, "AllBeta")
	for name, specs := range want {
		if len(specs) < len(read[name]) || len(read[name]) == 0 {
			t.Errorf("%s: the source has %v, and the build %v", name, read[name], specs)
			continue
		}
		if name != features.FeatureLifecycle {
			specs = specs[len(specs)-len(read[name]):]
		}
		if diff := cmp.Diff(texts(specs), texts(read[name])); diff != "" {
			t.Errorf("%s: (-build +source):\n%s", name, diff)
		}
		delete(read, name)
	}
	for name := range read {
		t.Errorf("%s is in the source and not in the build", name)
	}
	needs := map[featuregate.Feature][]featuregate.Feature{}
	for name, others := range build.Dependencies() {
		if len(others) > 0 {
			needs[name] = others
		}
	}
	if diff := cmp.Diff(needs, map[featuregate.Feature][]featuregate.Feature(r.Dependencies())); diff != "" || len(needs) == 0 {
		t.Errorf("%d gates have dependencies (-build +source):\n%s", len(needs), diff)
	}
}

// texts are specs that can be compared.
func texts(specs featuregate.VersionedSpecs) []string {
	var all []string
	for _, s := range specs {
		text := s.Version.String() + " " + string(s.PreRelease)
		if s.Default {
			text += " on"
		}
		if s.LockToDefault {
			text += " locked"
		}
		if s.MinCompatibilityVersion != nil {
			text += " from " + s.MinCompatibilityVersion.String()
		}
		all = append(all, text)
	}
	return all
}

// sources are a small version of upstream's files.
func sources() (kubernetes, client fstest.MapFS) {
	return fstest.MapFS{
			listFile: {Data: []byte(`# generated
- name: Old
  versionedSpecs:
  - default: false
    lockToDefault: false
    preRelease: Alpha
    version: "1.36"
  - default: false
    lockToDefault: false
    preRelease: Beta
    version: "1.38"
  - default: true
    lockToDefault: false
    preRelease: Beta
    version: "1.38"
    minCompatibilityVersion: "1.38"
`)},
			dependenciesFile: {Data: []byte(`package features
var defaultKubernetesFeatureGateDependencies = map[featuregate.Feature][]featuregate.Feature{
	genericfeatures.Old: {featuregate.Feature(clientfeatures.Client)},
}
`)},
		}, fstest.MapFS{
			clientFile: {Data: []byte(`package features
var defaultVersionedKubernetesFeatureGates = map[Feature]VersionedSpecs{
	Client: {
		{Version: version.MustParse("1.30"), Default: false, PreRelease: Alpha},
		{Version: version.MustParse("1.38"), Default: true, PreRelease: GA, LockToDefault: true},
	},
}
`)},
		}
}

func TestReadOfSources(t *testing.T) {
	gates, err := read(sources())
	if err != nil {
		t.Fatal(err)
	}
	want := []ahead.Gate{
		{Name: "Client", Specs: []ahead.Spec{{Version: "1.38", Stage: "GA", Default: true, Locked: true}}},
		{Name: "Old", Needs: []string{"Client"}, Specs: []ahead.Spec{
			{Version: "1.38", Stage: "Beta"}, {Version: "1.38", Stage: "Beta", Default: true, MinCompatibilityVersion: "1.38"},
		}},
	}
	if diff := cmp.Diff(want, gates); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestReadRefusesOtherForms: what upstream writes in another way is an error, never a
// gate that is missing or has another value.
func TestReadRefusesOtherForms(t *testing.T) {
	for want, tc := range map[string]struct{ file, old, replacement string }{
		"unknown field":                        {listFile, "preRelease", "stage"},
		"there is no table default":            {dependenciesFile, dependenciesVar, "others"},
		"Other has dependencies and is not":    {dependenciesFile, "genericfeatures.Old:", "Other:"},
		"a *ast.BasicLit is no constant":       {dependenciesFile, "featuregate.Feature(clientfeatures.Client)", `"Client"`},
		"Old: the value is a *ast.Ident":       {dependenciesFile, "{featuregate.Feature(clientfeatures.Client)}", "none"},
		"an entry is a *ast.Ident":             {clientFile, "Client: {", "Other, Client: {"},
		"field Stage: hack/ahead":              {clientFile, "PreRelease: Alpha", "Stage: Alpha"},
		"field Version: a *ast.SelectorExpr":   {clientFile, `version.MustParse("1.30")`, "version.Zero"},
		"field Default: strconv.ParseBool":     {clientFile, "Default: false", "Default: no"},
		"a spec has a *ast.CallExpr, not":      {clientFile, "Version: ", ""},
		"Client: a spec is a *ast.Ident":       {clientFile, "\t\t{Version: version.MustParse(\"1.30\"), Default: false, PreRelease: Alpha},", "\t\tspec,"},
		"expected 'package'":                   {clientFile, "package", "pkg"},
		"client-go's " + clientFile + ": open": {clientFile, "", ""},
	} {
		t.Run(want, func(t *testing.T) {
			kubernetes, client := sources()
			for _, files := range []fstest.MapFS{kubernetes, client} {
				if f := files[tc.file]; f != nil {
					if tc.old == "" {
						delete(files, tc.file)
						continue
					}
					changed := bytes.Replace(f.Data, []byte(tc.old), []byte(tc.replacement), 1)
					if bytes.Equal(changed, f.Data) {
						t.Fatalf("%s has no %q", tc.file, tc.old)
					}
					f.Data = changed
				}
			}
			if _, err := read(kubernetes, client); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want an error with %q", err, want)
			}
		})
	}
}

// TestListAgainstTheCatalog lists a version that has the gates of this build, but for a
// few.
func TestListAgainstTheCatalog(t *testing.T) {
	build, err := catalog.Gates()
	if err != nil {
		t.Fatal(err)
	}
	gates, err := read(source(t, kubernetesModule), source(t, clientModule))
	if err != nil {
		t.Fatal(err)
	}
	r := &ahead.Release{Modules: []ahead.Module{{Path: kubernetesModule, Version: "v" + version.DefaultKubeBinaryVersion + ".99-beta.0"}}}
	entry := catalog.All()[0].Name
	for _, g := range gates {
		if g.Name != string(entry) {
			r.Gates = append(r.Gates, g)
		}
	}
	r.Gates = append(r.Gates, ahead.Gate{Name: "ZZNew", Specs: []ahead.Spec{{Version: version.DefaultKubeBinaryVersion, Stage: "Alpha"}}})
	if _, has := build.GetAllVersioned()["ZZNew"]; has {
		t.Fatal("the build has the gate")
	}
	var out strings.Builder
	if err := list(&out, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n" + string(entry) + " ", "entry will have no gate: leaves ", "\nZZNew ", "needs an entry\n",
		".99-beta.0, a beta, against 1.", ": 1 gates are new, 1 gone, 0 changed\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the list lacks %q:\n%s", want, out.String())
		}
	}
	broken := errors.New("broken pipe")
	if err := list(writer{broken}, r); !errors.Is(err, broken) {
		t.Errorf("a list that cannot be written: %v", err)
	}
}

type writer struct{ err error }

func (w writer) Write([]byte) (int, error) { return 0, w.err }

func TestOnlyVersionsOfKubernetesAreFetched(t *testing.T) {
	if err := run(t.Context(), io.Discard, "1.38", true); err == nil || !strings.Contains(err.Error(), "write it like v1.38.0-beta.0") {
		t.Errorf("unexpected error: %v", err)
	}
}
