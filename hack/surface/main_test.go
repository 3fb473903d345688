/*
Copyright 2026 The Kubernetes Authors.

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
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// put writes the files of a module and returns its folder.
func put(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.com/lib\n\ngo 1.26\n"
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestSurface: all that others can name is in the record, and nothing else.
func TestSurface(t *testing.T) {
	dir := put(t, map[string]string{
		"lib.go": `package lib

import "example.com/lib/part"

const Limit, low = 10, 1

var Each func(name string, parts ...part.Part) map[string]func(n int) error

func Do(first, second int) (sum int, err error) { return }

func Map[K comparable, V any](m map[K]V) []K { return nil }

func hidden() {}

type (
	Alias = part.Part
	Names []string
	Set[T comparable] struct{ elements map[T]bool }
	Options struct {
		part.Part
		base
		Name    string
		secret  string
	}
	base struct{ Depth int }
	Gate interface {
		error
		Enabled(name string) bool
		sealed()
	}
)

func (Names) Len() int { return 0 }

func (*Set[T]) Add(element T) {}

func (*base) Down() {}

func (*Options) hidden() {}
`,
		"zz_other.go":              "package lib\n\nfunc (Names) Same() {}\n",
		"zz_generated.deepcopy.go": "package lib\n\nfunc (in Names) DeepCopy() Names { return in }\n",
		"part/part.go":             "package part\n\ntype Part struct { Size int8 }\n\nfunc (p *Part) Grow() {}\n",
		"part/internal/x/x.go":     "package x\n\nfunc X() {}\n",
		"internal/x.go":            "package internal\n\nfunc X() {}\n",
		"examples/shop/shop.go":    "package shop\n\nfunc X() {}\n",
		"cmd/main.go":              "package main\n\nfunc main() {}\n\nfunc X() {}\n",
		"client/typed/typed.go":    "package typed\n\nfunc X() {}\n",
	})
	want := `pkg .
pkg ., const Limit untyped int = 10
pkg ., func Do(int, int) (int, error)
pkg ., func Map[K comparable, V any](map[K]V) []K
pkg ., method (*Options) Down()
pkg ., method (*Set) Add(T)
pkg ., method (Names) Len() int
pkg ., method (Names) Same()
pkg ., type Alias = part.Part
pkg ., type Gate interface
pkg ., type Gate interface, Enabled(string) bool
pkg ., type Gate interface, embeds error
pkg ., type Gate interface, sealed()
pkg ., type Names []string
pkg ., type Options struct
pkg ., type Options struct, Depth int
pkg ., type Options struct, Name string
pkg ., type Options struct, comparable
pkg ., type Options struct, embedded part.Part
pkg ., type Set[T comparable] struct
pkg ., var Each func(string, ...part.Part) map[string]func(int) error
pkg client/typed, generated clients
pkg part
pkg part, method (*Part) Grow()
pkg part, type Part struct
pkg part, type Part struct, Size int8
pkg part, type Part struct, comparable`
	got, err := surface(dir, "example.com/lib")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), got); diff != "" {
		t.Errorf("unexpected lines (-want +got):\n%s", diff)
	}
}

// TestSurfaceFails: a library that does not build or has nothing is no empty record.
func TestSurfaceFails(t *testing.T) {
	for source, want := range map[string]string{
		"package lib\n\nvar X int = missing\n": "undefined: missing",
		"package main\n\nfunc main() {}\n":     "no package that exports",
	} {
		if _, err := surface(put(t, map[string]string{"lib.go": source}), "example.com/lib"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", source, err, want)
		}
	}
}

// TestRecord: api/surface.txt says what the library exports today.
func TestRecord(t *testing.T) {
	t.Chdir("../..")
	// What another process reads is no input of a test that go may remember; what is opened
	// here is.
	err := filepath.WalkDir("staging/src/"+library, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		_, err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := run(true); err != nil {
		t.Error(err)
	}
}

// TestCompare: what breaks others is told from what is added.
func TestCompare(t *testing.T) {
	const incompatible, compatible = "\nIncompatible, removed or changed; this breaks who uses it:", "\nCompatible, added:"
	for name, tc := range map[string]struct {
		recorded, now []string
		want          string
	}{
		"the same":            {[]string{"pkg a, func F()"}, []string{"pkg a, func F()"}, ""},
		"function added":      {[]string{"pkg a, func F()"}, []string{"pkg a, func F()", "pkg b, func F()"}, compatible + "\n  +pkg b, func F()"},
		"function removed":    {[]string{"pkg a, func F()", "pkg a, func FF()"}, []string{"pkg a, func FF()"}, incompatible + "\n  -pkg a, func F()"},
		"function changed":    {[]string{"pkg a, func F()"}, []string{"pkg a, func E()", "pkg a, func F(int)"}, incompatible + "\n  -pkg a, func F()\n  +pkg a, func F(int)" + compatible + "\n  +pkg a, func E()"},
		"constant changed":    {[]string{"pkg a, const C untyped int = 1"}, []string{"pkg a, const C untyped int = 2"}, incompatible + "\n  -pkg a, const C untyped int = 1\n  +pkg a, const C untyped int = 2"},
		"receiver changed":    {[]string{"pkg a, method (T) M()"}, []string{"pkg a, method (*T) M()"}, incompatible + "\n  -pkg a, method (T) M()\n  +pkg a, method (*T) M()"},
		"field added":         {[]string{"pkg a, type T struct"}, []string{"pkg a, type T struct", "pkg a, type T struct, F int"}, compatible + "\n  +pkg a, type T struct, F int"},
		"struct with maps":    {[]string{"pkg a, type T struct", "pkg a, type T struct, comparable"}, []string{"pkg a, type T struct"}, incompatible + "\n  -pkg a, type T struct, comparable"},
		"interface has more":  {[]string{"pkg a, type T[A any, B []A] interface"}, []string{"pkg a, type T[A any, B []A] interface", "pkg a, type T[A any, B []A] interface, M()"}, incompatible + "\n  +pkg a, type T[A any, B []A] interface, M()"},
		"interface of a kind": {nil, []string{"pkg a, type T interface", "pkg a, type T interface, M()"}, compatible + "\n  +pkg a, type T interface\n  +pkg a, type T interface, M()"},
		"package renamed":     {[]string{"pkg a", "pkg a, func F()"}, []string{"pkg b", "pkg b, func F()"}, incompatible + "\n  -pkg a\n  -pkg a, func F()" + compatible + "\n  +pkg b\n  +pkg b, func F()"},
		"clients are gone":    {[]string{"pkg client/a, generated clients"}, nil, incompatible + "\n  -pkg client/a, generated clients"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := compare(tc.recorded, tc.now); err != nil {
				got = err.Error()
			}
			_, found, _ := strings.Cut(got, record+" says")
			found, advice, _ := strings.Cut(found, "\nIf that is meant, ")
			if diff := cmp.Diff(tc.want, found); diff != "" {
				t.Errorf("unexpected findings (-want +got):\n%s", diff)
			}
			if (got != "") != strings.HasPrefix(advice, "run make update") {
				t.Errorf("does not say what to do:\n%s", got)
			}
		})
	}
}
