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

package programs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNodeProgramsHaveFilesOfTheirOwn(t *testing.T) {
	names := map[string]string{}
	for at, p := range Node {
		if filepath.IsAbs(at) {
			t.Errorf("%s is absolute, want a path below the image", at)
		}
		if other, ok := names[p.Name]; ok {
			t.Errorf("%s and %s are both built as %s", at, other, p.Name)
		}
		names[p.Name] = at
		if p.Module.Path != "" && !strings.HasPrefix(p.Module.Sum, "h1:") {
			t.Errorf("%s is not pinned by a hash: %q", p, p.Module.Sum)
		}
	}
}

func TestModuleWithAnotherHashIsRefused(t *testing.T) {
	// It is in the cache: this test depends on it.
	m := Module{Path: "github.com/google/go-cmp", Version: "v0.7.0", Sum: "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}
	_, err := fetch(t.Context(), m)
	if err == nil || !strings.Contains(err.Error(), "do not use it") {
		t.Fatalf("got the error %v, want a refusal", err)
	}
}

func TestUnknownModuleIsNamed(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	_, err := fetch(t.Context(), Module{Path: "example.com/none", Version: "v1.0.0"})
	if err == nil || !strings.Contains(err.Error(), "example.com/none@v1.0.0") {
		t.Fatalf("got the error %v, want one that names the module", err)
	}
}

func TestProgramIsBuiltOnce(t *testing.T) {
	var lines []string
	b := Builder{Root: t.TempDir(), Dir: t.TempDir(), Arch: "amd64", Log: func(format string, _ ...any) { lines = append(lines, format) }}
	p := Program{Name: "p", Module: Module{Path: "example.com/none", Version: "v1.0.0", Sum: "h1:x"}, Package: "."}
	compiler, err := Compiler(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"p": "binary", "p.from": b.Stamp(p, compiler)} {
		if err := os.WriteFile(filepath.Join(b.Dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Build(t.Context(), p); err != nil || len(lines) > 0 {
		t.Fatalf("got the error %v and lines %q, want neither: it is built already", err, lines)
	}
	t.Setenv("GOPROXY", "off")
	p.Module.Sum = "h1:y"
	if err := b.Build(t.Context(), p); err == nil || len(lines) != 1 {
		t.Fatalf("got the error %v and lines %q, want that it is built again: its hash changed", err, lines)
	}
}

// TestStampCoversInputs changes what a program is built from, one thing after another.
func TestStampCoversInputs(t *testing.T) {
	b, compiler := Builder{Arch: "amd64"}, "go1.26.0"
	p := Program{Name: "p", Module: Module{Path: "example.com/none", Version: "v1.0.0", Sum: "h1:x"}, Package: "."}
	seen := map[string]string{}
	for _, step := range []struct {
		name   string
		change func()
	}{
		{"nothing", func() {}},
		{"the version", func() { p.Module.Version = "v1.0.1" }},
		{"the hash", func() { p.Module.Sum = "h1:y" }},
		{"the package", func() { p.Package = "./cmd/p" }},
		{"the tags", func() { p.Tags = []string{"a"} }},
		{"one more tag", func() { p.Tags = []string{"a", "b"} }},
		{"the linker's flags", func() { p.Flags = "-X a=b" }},
		{"C", func() { p.Cgo = true }},
		{"the architecture", func() { b.Arch = "arm64" }},
		{"the version of Go", func() { compiler = "go1.26.1" }},
	} {
		step.change()
		stamp := b.Stamp(p, compiler)
		if other, ok := seen[stamp]; ok {
			t.Errorf("the stamp after a change of %s is that after a change of %s", step.name, other)
		}
		seen[stamp] = step.name
	}
}

func TestProgramOfTheCheckout(t *testing.T) {
	b := Builder{Root: t.TempDir(), Dir: t.TempDir(), Arch: "amd64"}
	for name, content := range map[string]string{"go.mod": "module example.com/m\n\ngo 1.26.0\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(b.Root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := Program{Name: "m", Module: Module{Dir: "."}, Package: "."}
	if err := b.Build(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(b.File(p)); err != nil {
		t.Fatal(err)
	}
	p.Package = "./none"
	if err := b.Build(t.Context(), p); err == nil || !strings.Contains(err.Error(), "cannot build m") {
		t.Fatalf("got the error %v, want one that names the program", err)
	}
}

// TestEtcdIsThatOfTheCheckout holds the tag of the image against the module's version.
func TestEtcdIsThatOfTheCheckout(t *testing.T) {
	files := map[Module]string{root: "../../../go.mod", previous: "../../../hack/previous/go.mod"}
	for tag, p := range Etcd {
		content, err := os.ReadFile(files[p.Module])
		if err != nil {
			t.Fatal(err)
		}
		version, _, _ := strings.Cut(tag, "-")
		if want := "go.etcd.io/etcd/server/v3 v" + version; !strings.Contains(string(content), want) {
			t.Errorf("the image with the tag %s is built of %s, whose go.mod does not require %s", tag, p.Module.Dir, want)
		}
	}
}
