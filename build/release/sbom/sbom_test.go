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

package sbom

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"
)

// program builds this module's program: the binary of a test does not say which
// modules it contains.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sbom-")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "release")
	out, err := exec.Command("go", "build", "-o", file, "..").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return file, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if file, err := program(); err == nil {
		if err := os.RemoveAll(filepath.Dir(file)); err != nil {
			panic(err)
		}
	}
	os.Exit(code)
}

func sample(t *testing.T) Release {
	t.Helper()
	file, err := program()
	if err != nil {
		t.Fatal(err)
	}
	modules, err := Modules(file, "v1.36.3+feature.1")
	if err != nil {
		t.Fatal(err)
	}
	return Release{
		Version: "v1.36.3+feature.1",
		Created: time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC),
		Source:  "commit 0123abc", Go: "go1.26.8",
		Debian: []Package{{
			Name: "amd64/libc6_2.41-12", Deb: "libc6", Version: "2.41-12+deb13u4", Arch: "amd64", Distro: "debian-13", SHA256: strings.Repeat("1", 64),
			Copyright: "LGPL-2.1-or-later, and more",
		}},
		Files: []File{
			{Name: "linux/amd64/kube-proxy", SHA256: strings.Repeat("2", 64), Modules: modules},
			{Name: "linux/amd64/kube-proxy.tar", SHA256: strings.Repeat("3", 64), Contains: []string{"linux/amd64/kube-proxy", "amd64/libc6_2.41-12"}},
		},
	}
}

func parse(t *testing.T, r Release) (*v2_3.Document, []byte) {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, r); err != nil {
		t.Fatal(err)
	}
	var doc v2_3.Document
	if err := spdxjson.ReadInto(bytes.NewReader(out.Bytes()), &doc); err != nil {
		t.Fatal(err)
	}
	return &doc, out.Bytes()
}

func TestModulesOfABinary(t *testing.T) {
	modules := sample(t).Files[0].Modules
	for path, version := range map[string]string{
		"k8s.io/kubernetes-features/build/release": "v1.36.3+feature.1",
		"github.com/spdx/tools-golang":             "v0.",
		"stdlib":                                   "1.",
	} {
		if !slices.ContainsFunc(modules, func(m Module) bool { return m.Path == path && strings.HasPrefix(m.Version, version) }) {
			t.Errorf("%s %s is not among %v", path, version, modules)
		}
	}
	if _, err := Modules(os.DevNull, ""); err == nil {
		t.Error("a file that is no binary has modules")
	}
}

func TestDocumentIsValid(t *testing.T) {
	doc, _ := parse(t, sample(t))
	if err := spdxlib.ValidateDocument(doc); err != nil {
		t.Error(err)
	}
	if c := doc.CreationInfo.Creators; len(c) != 2 || c[1].Creator != "go1.26.8" {
		t.Errorf("made by %v, want the version of Go, too", c)
	}
	if doc.CreationInfo.Created != "2026-11-21T01:02:03Z" {
		t.Errorf("made at %s", doc.CreationInfo.Created)
	}
	purls := map[string]bool{}
	for _, p := range doc.Packages {
		for _, r := range p.PackageExternalReferences {
			purls[r.Locator] = true
		}
	}
	if want := "pkg:deb/debian/libc6@2.41-12%2Bdeb13u4?arch=amd64&distro=debian-13"; !purls[want] {
		t.Errorf("%s is not in the bill: %v", want, purls)
	}
}

func TestRelationships(t *testing.T) {
	doc, _ := parse(t, sample(t))
	kinds := map[string]int{}
	for _, r := range doc.Relationships {
		kinds[r.Relationship]++
	}
	modules := len(sample(t).Files[0].Modules)
	for kind, want := range map[string]int{"DESCRIBES": 1, "CONTAINS": 4, "STATIC_LINK": modules} {
		if kinds[kind] != want {
			t.Errorf("%d relationships are %s, want %d", kinds[kind], kind, want)
		}
	}
}

func TestBytesAreTheSame(t *testing.T) {
	one, first := parse(t, sample(t))
	r := sample(t)
	slices.Reverse(r.Files)
	_, second := parse(t, r)
	if !bytes.Equal(first, second) {
		t.Error("another order of files gives another bill")
	}
	r.Files[0].SHA256 = strings.Repeat("4", 64)
	for what, change := range map[string]func(){
		"another file":    func() {},
		"another license": func() { r.Debian[0].Copyright = "other" },
		"another relationship": func() {
			i := slices.IndexFunc(r.Files, func(f File) bool { return len(f.Contains) > 0 })
			r.Files[i].Contains = r.Files[i].Contains[:1]
		},
	} {
		before, _ := parse(t, r)
		change()
		if after, _ := parse(t, r); after.DocumentNamespace == one.DocumentNamespace || what != "another file" && after.DocumentNamespace == before.DocumentNamespace {
			t.Errorf("%s: two different bills have one namespace", what)
		}
	}
}

// license reads a license of the module cache or of this tree.
func license(t *testing.T, file ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(file...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestLicenses gives modules licenses that are known, one of their own, and none.
func TestLicenses(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	bsd := license(t, strings.TrimSpace(string(dir)), "LICENSE")
	apache := license(t, "..", "..", "..", "LICENSE")
	const own = "License of Mine\n\n  Anybody may"
	r := sample(t)
	r.Files[0].Modules = []Module{
		{Path: "example.com/A", Version: "v1.0.0", Licenses: []string{apache}},
		{Path: "b", Version: "v1.0.0", Licenses: []string{own, apache}},
		{Path: "c", Version: "v1.0.0", Licenses: []string{"License of Mine\nAnybody   may"}},
		{Path: "d", Version: "v1.0.0"},
		{Path: "e", Version: "v1.0.0", Licenses: []string{bsd}},
		{Path: "f", Version: "v1.0.0", Licenses: []string{apache + "\n---\n" + bsd}},
	}
	doc, _ := parse(t, r)
	if len(doc.OtherLicenses) != 2 {
		t.Fatalf("the bill has the texts %+v, want that of b and c once, and that of Debian's package", doc.OtherLicenses)
	}
	// The first is Debian's.
	theirs, mine := doc.OtherLicenses[0], doc.OtherLicenses[1]
	if strings.HasPrefix(mine.LicenseIdentifier, "LicenseRef-Debian") {
		theirs, mine = mine, theirs
	}
	if mine.LicenseName != "License of Mine" || !strings.Contains(mine.ExtractedText, "may") || theirs.ExtractedText != "LGPL-2.1-or-later, and more" {
		t.Errorf("the texts are %+v and %+v", mine, theirs)
	}
	got := map[string]string{}
	for _, p := range doc.Packages {
		got[p.PackageName] = p.PackageLicenseDeclared
		for _, r := range p.PackageExternalReferences {
			got[r.Locator] = "there"
		}
	}
	for name, want := range map[string]string{
		"example.com/A": "Apache-2.0", "b": "Apache-2.0 AND " + mine.LicenseIdentifier, "c": mine.LicenseIdentifier, "d": "NOASSERTION",
		"e": "BSD-3-Clause", "f": "Apache-2.0 AND BSD-3-Clause", "libc6": theirs.LicenseIdentifier, "pkg:golang/example.com/a@v1.0.0": "there",
	} {
		if got[name] != want {
			t.Errorf("%s declares %q, want %q", name, got[name], want)
		}
	}
}
