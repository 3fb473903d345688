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
	"crypto/sha256"
	"debug/buildinfo"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"

	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/build"
	"k8s.io/kubernetes-features/build/release/rootfs"
	"k8s.io/kubernetes-features/build/release/targets"
)

// readBill reads the bill in a folder and checks its form.
func readBill(t *testing.T, dir string) billIndex {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, billFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var doc v2_3.Document
	if err := spdxjson.ReadInto(f, &doc); err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(&doc); err != nil {
		t.Error(err)
	}
	return newBillIndex(&doc)
}

// TestBillOfTheRelease looks up in the bill what the release has: each archive,
// each binary and what go says is in it, each image and what is in that, and its
// hashes.
func TestBillOfTheRelease(t *testing.T) {
	each(t, func(t *testing.T, r tree) {
		dir := os.Getenv("RELEASE_TARS")
		bill := readBill(t, dir)
		archives, err := filepath.Glob(filepath.Join(dir, "*.tar.gz"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range archives {
			bill.hashes(t, filepath.Base(file), file)
		}
		for _, b := range targets.Of(targets.Server) {
			checkBinary(t, bill, b, r)
		}
		lock, err := os.Open("debian.lock")
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		locked, err := rootfs.ReadLock(lock, r.arch)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range targets.Images() {
			name := "linux/" + r.arch + "/" + b.Name
			bill.hashes(t, name+".tar", r.bin(b.Name+".tar"))
			bill.has(t, name+".tar", "CONTAINS", name+"@"+string(r.version))
			for _, p := range locked.Packages {
				if b.Name == "kube-proxy" || rootfs.InStatic(p.Name) {
					bill.has(t, name+".tar", "CONTAINS", p.Name+"@"+p.Version)
				}
			}
		}
		bill.licensed(t)
	})
}

// checkBinary checks that the bill has a binary, and the modules in it.
func checkBinary(t *testing.T, bill billIndex, b targets.Binary, r tree) {
	t.Helper()
	name := "linux/" + r.arch + "/" + b.Name
	bill.hashes(t, name, r.bin(b.Name))
	bill.has(t, "kubernetes-server-linux-"+r.arch+".tar.gz", "CONTAINS", name+"@"+string(r.version))
	info, err := buildinfo.ReadFile(r.bin(b.Name))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		v := m.Version
		if m.Path == "k8s.io/feature-lifecycle" {
			v = string(r.version)
		}
		bill.has(t, name, "STATIC_LINK", m.Path+"@"+v)
	}
}

// billIndex is a bill by names.
type billIndex struct {
	doc   *v2_3.Document
	files map[string]*v2_3.Package
	// edges are "from RELATIONSHIP to@version".
	edges map[string]bool
}

func newBillIndex(doc *v2_3.Document) billIndex {
	b := billIndex{doc: doc, files: map[string]*v2_3.Package{}, edges: map[string]bool{}}
	byID := map[common.ElementID]*v2_3.Package{}
	for _, p := range doc.Packages {
		byID[p.PackageSPDXIdentifier] = p
		b.files[p.PackageName] = p
	}
	for _, r := range doc.Relationships {
		from, to := byID[r.RefA.ElementRefID], byID[r.RefB.ElementRefID]
		if from != nil && to != nil {
			b.edges[from.PackageName+" "+r.Relationship+" "+to.PackageName+"@"+to.PackageVersion] = true
		}
	}
	return b
}

// source returns what the release was built from: the commit, whether the tree
// differed, and the time.
func (b billIndex) source(t *testing.T) build.Source {
	t.Helper()
	created, err := time.Parse(time.RFC3339, b.doc.CreationInfo.Created)
	if err != nil {
		t.Fatal(err)
	}
	commit, dirty := strings.CutSuffix(strings.TrimPrefix(b.files["kubernetes"].PackageSourceInfo, "commit "), ", dirty")
	return build.Source{Commit: commit, Dirty: dirty, Time: created}
}

// hashes checks that the bill has the file and its hash.
func (b billIndex) hashes(t *testing.T, name, file string) {
	t.Helper()
	sum, err := archive.Sum(file, sha256.New())
	if err != nil {
		t.Fatal(err)
	}
	p := b.files[name]
	if p == nil || len(p.PackageChecksums) != 1 || p.PackageChecksums[0].Value != sum {
		t.Errorf("%s is not in the bill with the hash %s", name, sum)
	}
}

func (b billIndex) has(t *testing.T, from, relationship, to string) {
	t.Helper()
	if edge := from + " " + relationship + " " + to; !b.edges[edge] {
		t.Errorf("the bill lacks %s", edge)
	}
}

// licensed checks that each module and each package of Debian declares a license, and
// that the text of each which is not in SPDX's list is there.
func (b billIndex) licensed(t *testing.T) {
	t.Helper()
	texts := map[string]string{}
	for _, l := range b.doc.OtherLicenses {
		texts[l.LicenseIdentifier] = l.ExtractedText
	}
	declared := map[string]int{}
	for _, p := range b.doc.Packages {
		id := string(p.PackageSPDXIdentifier)
		if !strings.HasPrefix(id, "Go-") && !strings.HasPrefix(id, "Debian-") {
			continue
		}
		for license := range strings.SplitSeq(p.PackageLicenseDeclared, " AND ") {
			switch {
			case texts[license] != "":
				declared["by its text"]++
			case slices.Contains([]string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}, license):
				declared[license]++
			default:
				t.Errorf("%s declares the license %q, which the bill does not have", p.PackageName, license)
			}
		}
	}
	t.Logf("licenses: %v", declared)
}
