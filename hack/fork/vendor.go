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
	"bytes"
	"context"
	"crypto/md5"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const (
	vendorModules  = "vendor/modules.txt"
	vendorOwners   = "vendor/OWNERS"
	vendorLicenses = "LICENSES/vendor/"
)

// vendor renews vendor/ where the tree has one, and does to the rest of it what
// upstream's hack/update-vendor.sh does: it keeps OWNERS, which the go command
// removes, and gives new modules their licences in LICENSES/vendor.
func (c checkout) vendor(ctx context.Context) (bool, error) {
	before, err := c.read(vendorModules)
	if err != nil || before == nil {
		return false, err
	}
	owners, err := c.read(vendorOwners)
	if err != nil {
		return false, err
	}
	if _, err := command(ctx, c.dir, nil, []string{"GOWORK=" + filepath.Join(c.dir, "go.work")}, "go", "work", "vendor"); err != nil {
		return false, fmt.Errorf("the files have landed, but vendor/ could not be renewed; run hack/update-vendor.sh there: %w", err)
	}
	var files []*target
	if owners != nil {
		files = append(files, &target{path: vendorOwners, data: owners})
	}
	after, err := c.read(vendorModules)
	if err != nil {
		return false, err
	}
	known := map[string]bool{}
	for _, module := range vendored(before) {
		known[module] = true
	}
	for _, module := range vendored(after) {
		if known[module] {
			continue
		}
		license, err := c.license(module)
		if err != nil {
			return false, err
		}
		files = append(files, license)
	}
	_, _, err = c.write(files)
	return true, err
}

// vendored are the modules that vendor/modules.txt lists.
func vendored(list []byte) []string {
	var modules []string
	for line := range strings.Lines(string(list)) {
		// Replaced modules are in the tree itself: "# path version => ./staging/…".
		if f := strings.Fields(line); len(f) == 3 && f[0] == "#" {
			modules = append(modules, f[1])
		}
	}
	return modules
}

// license is the file for a vendored module in the form that upstream's
// hack/update-vendor-licenses.sh writes and verify-vendor-licenses.sh compares.
func (c checkout) license(module string) (*target, error) {
	dir := path.Join("vendor", module)
	files, err := os.ReadDir(filepath.Join(c.dir, filepath.FromSlash(dir)))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		name := strings.ToLower(f.Name())
		if f.IsDir() || !strings.HasPrefix(name, "license") && !strings.HasPrefix(name, "licence") {
			continue
		}
		file := path.Join(dir, f.Name())
		text, err := c.read(file)
		if err != nil {
			return nil, err
		}
		var data bytes.Buffer
		fmt.Fprintf(&data, "= %s licensed under: =\n\n%s\n= %s %x\n", dir, text, file, md5.Sum(text))
		return &target{path: path.Join(vendorLicenses, module, "LICENSE"), data: data.Bytes()}, nil
	}
	return nil, fmt.Errorf("the files have landed, but the new module %s in vendor/ has no licence; see hack/update-vendor-licenses.sh there", module)
}
