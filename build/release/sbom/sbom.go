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
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// File is a file of the release.
type File struct {
	// Name is unique within the release, such as linux/amd64/kubectl.
	Name string
	// SHA256 is its hash in hexadecimal digits.
	SHA256 string
	// Modules are those linked into a binary; empty for others.
	Modules []Module
	// Contains are names of other files in an image or archive, and of Debian
	// packages in an image.
	Contains []string
}

// Stdlib is the name of Go's standard library as a module.
const Stdlib = "stdlib"

// Module is a Go module, or the standard library.
type Module struct {
	Path, Version string
	// Licenses are the texts of its license files.
	Licenses []string
}

// Package is a Debian package.
type Package struct {
	// Name is unique within the release; Deb, Version and Arch are Debian's, and
	// Distro is its release as in debian-13.
	Name, Deb, Version, Arch, Distro, SHA256 string
	// Copyright is the text of its licenses.
	Copyright string
}

// Release describes the release that the bill covers.
type Release struct {
	Version string
	Created time.Time
	// Source describes which sources it was built from, Go by which version of Go.
	Source, Go string
	Files      []File
	Debian     []Package
}

// Modules reads from a binary what is linked into it. The modules of the source
// itself have no version of their own and get version.
func Modules(binary, version string) ([]Module, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("cannot read which modules are in %s: %w", binary, err)
	}
	found := []Module{{Path: Stdlib, Version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Replace != nil && m.Replace.Version != "" {
			m = m.Replace
		}
		v := m.Version
		if v == "" || v == "(devel)" || m.Replace != nil {
			v = version
		}
		found = append(found, Module{Path: m.Path, Version: v})
	}
	return found, nil
}

// Write writes the bill as JSON. The same release gives the same bytes.
func Write(w io.Writer, r Release) error {
	doc, err := document(r)
	if err == nil {
		err = spdxjson.Write(doc, w, spdxjson.Indent(" "))
	}
	if err != nil {
		return fmt.Errorf("cannot write the bill of materials: %w", err)
	}
	return nil
}

const root = common.ElementID("Release")

// document gathers packages and relationships; each is there once, in the order
// of names.
func document(r Release) (*v2_3.Document, error) {
	b := &builder{
		packages: map[common.ElementID]*v2_3.Package{}, relationships: map[[3]string]bool{},
		licenses: newLicenses(),
	}
	b.add(root, v2_3.Package{
		PackageName: "kubernetes", PackageVersion: r.Version, PrimaryPackagePurpose: "APPLICATION", PackageSourceInfo: r.Source,
	}, "")
	for _, p := range r.Debian {
		b.add(id("Debian", p.Name), v2_3.Package{
			PackageName: p.Deb, PackageVersion: p.Version, PackageChecksums: checksum(p.SHA256),
			PackageLicenseDeclared: b.licenses.own("Debian-"+notInID.ReplaceAllString(p.Deb, "-")+"-", p.Copyright),
		}, fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s&distro=%s", p.Deb, url.QueryEscape(p.Version), p.Arch, p.Distro))
	}
	for _, f := range r.Files {
		if err := b.file(f, r); err != nil {
			return nil, err
		}
	}
	b.relate("DOCUMENT", common.TypeRelationshipDescribe, root)
	doc := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName: "kubernetes-" + r.Version,
		CreationInfo: &v2_3.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "build-release-" + r.Version}, {CreatorType: "Tool", Creator: r.Go}},
			Created:  r.Created.UTC().Format(time.RFC3339),
		},
	}
	for _, key := range slices.Sorted(maps.Keys(b.packages)) {
		doc.Packages = append(doc.Packages, b.packages[key])
	}
	doc.OtherLicenses = b.licenses.others()
	compare := func(x, y [3]string) int { return slices.Compare(x[:], y[:]) }
	for _, key := range slices.SortedFunc(maps.Keys(b.relationships), compare) {
		doc.Relationships = append(doc.Relationships, &v2_3.Relationship{
			RefA:         common.MakeDocElementID("", key[0]),
			Relationship: key[1],
			RefB:         common.MakeDocElementID("", key[2]),
		})
	}
	// A namespace identifies one document: it changes with any of the content.
	content, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	doc.DocumentNamespace = "https://features.k8s.io/spdx/" + url.PathEscape(doc.DocumentName) + "-" + hex.EncodeToString(sum[:])
	return doc, nil
}

// builder gathers what a document has.
type builder struct {
	packages      map[common.ElementID]*v2_3.Package
	relationships map[[3]string]bool
	licenses      *licenses
}

func (b *builder) file(f File, r Release) error {
	this := id("File", f.Name)
	b.add(this, v2_3.Package{PackageName: f.Name, PackageVersion: r.Version, PackageChecksums: checksum(f.SHA256)}, "")
	b.relate(root, common.TypeRelationshipContains, this)
	for _, m := range f.Modules {
		module := id("Go", m.Path+"@"+m.Version)
		license, err := b.licenses.expression(m.Licenses)
		if err != nil {
			return fmt.Errorf("cannot judge the license of %s: %w", m.Path, err)
		}
		// Addresses of packages (purl) have Go's modules in lower case.
		b.add(module, v2_3.Package{PackageName: m.Path, PackageVersion: m.Version, PackageLicenseDeclared: license},
			"pkg:golang/"+strings.ToLower(m.Path)+"@"+url.QueryEscape(m.Version))
		b.relate(this, common.TypeRelationshipStaticLink, module)
	}
	for _, name := range f.Contains {
		part := id("File", name)
		if slices.ContainsFunc(r.Debian, func(p Package) bool { return p.Name == name }) {
			part = id("Debian", name)
		}
		b.relate(this, common.TypeRelationshipContains, part)
	}
	return nil
}

// add adds a package with the fields that every one needs.
func (b *builder) add(id common.ElementID, p v2_3.Package, purl string) {
	const unknown = "NOASSERTION"
	p.PackageSPDXIdentifier = id
	p.PackageDownloadLocation = cmp.Or(p.PackageDownloadLocation, unknown)
	p.PackageLicenseConcluded, p.PackageCopyrightText = unknown, unknown
	p.PackageLicenseDeclared = cmp.Or(p.PackageLicenseDeclared, unknown)
	p.IsFilesAnalyzedTagPresent = true
	if purl != "" {
		p.PackageExternalReferences = []*v2_3.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: purl,
		}}
	}
	b.packages[id] = &p
}

func (b *builder) relate(from common.ElementID, kind string, to common.ElementID) {
	b.relationships[[3]string{string(from), kind, string(to)}] = true
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]`)

// id makes an identifier of a name. Characters that SPDX does not allow become
// "-", therefore the beginning of a hash keeps names apart.
func id(kind, name string) common.ElementID {
	sum := sha256.Sum256([]byte(name))
	return common.ElementID(kind + "-" + notInID.ReplaceAllString(name, "-") + "-" + hex.EncodeToString(sum[:4]))
}

func checksum(sha256 string) []common.Checksum {
	return []common.Checksum{{Algorithm: common.SHA256, Value: sha256}}
}
