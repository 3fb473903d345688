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
		Debian: []Package{{
			Name: "amd64/libc6_2.41-12", Deb: "libc6", Version: "2.41-12+deb13u4", Arch: "amd64", Suite: "trixie", SHA256: strings.Repeat("1", 64),
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
		"k8s.io/kubernetes-features/hack/release": "v1.36.3+feature.1",
		"github.com/spdx/tools-golang":            "v0.",
		"stdlib":                                  "1.",
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
	if doc.CreationInfo.Created != "2026-11-21T01:02:03Z" {
		t.Errorf("made at %s", doc.CreationInfo.Created)
	}
	purls := map[string]bool{}
	for _, p := range doc.Packages {
		for _, r := range p.PackageExternalReferences {
			purls[r.Locator] = true
		}
	}
	if want := "pkg:deb/debian/libc6@2.41-12%2Bdeb13u4?arch=amd64&distro=trixie"; !purls[want] {
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
	if other, _ := parse(t, r); other.DocumentNamespace == one.DocumentNamespace {
		t.Error("two different bills have one namespace")
	}
}

// TestLicenses gives modules one licence that is known, two of their own and
// none.
func TestLicenses(t *testing.T) {
	r := sample(t)
	r.Apache = "Apache License\nVersion 2.0"
	r.Files[0].Modules = []Module{
		{Path: "a", Version: "v1.0.0", Licenses: []string{"  Apache   License\nVersion 2.0\n"}},
		{Path: "b", Version: "v1.0.0", Licenses: []string{"MIT License\nAnybody may", "Apache License Version 2.0"}},
		{Path: "c", Version: "v1.0.0", Licenses: []string{"MIT License\n\n  Anybody may"}},
		{Path: "d", Version: "v1.0.0"},
	}
	doc, _ := parse(t, r)
	if len(doc.OtherLicenses) != 1 || doc.OtherLicenses[0].LicenseName != "MIT License" || !strings.Contains(doc.OtherLicenses[0].ExtractedText, "Anybody may") {
		t.Fatalf("the bill has the texts %+v, want that of b and c once", doc.OtherLicenses)
	}
	own := doc.OtherLicenses[0].LicenseIdentifier
	got := map[string]string{}
	for _, p := range doc.Packages {
		got[p.PackageName] = p.PackageLicenseDeclared
	}
	for module, want := range map[string]string{"a": "Apache-2.0", "b": "Apache-2.0 AND " + own, "c": own, "d": "NOASSERTION"} {
		if got[module] != want {
			t.Errorf("%s declares %q, want %q", module, got[module], want)
		}
	}
}
