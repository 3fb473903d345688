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
	"context"
	"crypto/md5"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	vendorModules  = "vendor/modules.txt"
	vendorOwners   = "vendor/OWNERS"
	vendorLicenses = "LICENSES/vendor/"
)

// vendor renews vendor/ where the tree has one. It does so when files have landed,
// a new module is not in it, or an earlier attempt is unfinished. As upstream's
// hack/update-vendor.sh, it keeps OWNERS, which the go command removes, and adds
// licenses of new modules to LICENSES/vendor.
func (c checkout) vendor(ctx context.Context, brought map[string]string, landed bool) (bool, error) {
	has, err := c.hasVendor(ctx)
	if err != nil || !has {
		return false, err
	}
	state, err := c.vendoring(ctx)
	if err != nil {
		return false, err
	}
	if !landed && !state.Due {
		list, err := c.read(vendorModules)
		if err != nil || c.isVendored(list, brought) {
			return false, err
		}
	}
	owners, err := c.read(vendorOwners)
	if err == nil && owners == nil {
		owners, err = c.committed(ctx, vendorOwners)
	}
	if err != nil {
		return false, err
	}
	if err := c.vendoringBegins(ctx); err != nil {
		return false, err
	}
	err = c.renew(ctx, brought, owners)
	// Also after an interruption it has to be known what is whose.
	if noted := c.vendoringEnded(context.WithoutCancel(ctx), err != nil); err == nil {
		err = noted
	}
	if err != nil {
		return false, fmt.Errorf("the files have landed, but vendor/ could not be renewed; land again, or run hack/update-vendor.sh there: %w", err)
	}
	return true, nil
}

// renew has the go command write vendor/, and writes what belongs to it.
func (c checkout) renew(ctx context.Context, brought map[string]string, owners []byte) error {
	_, failed := command(ctx, c.dir, nil, []string{"GOWORK=" + filepath.Join(c.dir, "go.work")}, "go", "work", "vendor")
	if owners != nil {
		// Also when the go command failed, which it does after removing all.
		if _, err := c.write(context.WithoutCancel(ctx), []*target{{path: vendorOwners, data: owners}}); err != nil {
			return err
		}
	}
	if failed != nil {
		return failed
	}
	licenses, err := c.licenses(ctx, brought)
	if err != nil {
		return err
	}
	_, err = c.write(ctx, licenses)
	return err
}

// isVendored is true when vendor/ lists the new modules and they have licenses.
func (c checkout) isVendored(list []byte, brought map[string]string) bool {
	listed := vendored(list)
	for module, version := range brought {
		license, err := c.read(licenseOf(module))
		if listed[module] != version || license == nil || err != nil {
			return false
		}
	}
	return true
}

// licenses returns missing files for modules that vendor/ did not have in the
// last commit and for those that landing adds: earlier attempts may have left
// vendor/ without them.
func (c checkout) licenses(ctx context.Context, brought map[string]string) ([]*target, error) {
	after, err := c.read(vendorModules)
	if err != nil {
		return nil, err
	}
	committed, err := c.committed(ctx, vendorModules)
	if err != nil {
		return nil, err
	}
	known := vendored(committed)
	var files []*target
	for module := range vendored(after) {
		if known[module] != "" && brought[module] == "" {
			continue
		}
		have, err := c.read(licenseOf(module))
		if err != nil {
			return nil, err
		}
		if have != nil {
			continue
		}
		license, err := c.license(module)
		if err != nil {
			return nil, err
		}
		files = append(files, license)
	}
	return files, nil
}

// licenseOf returns the path at which upstream has the license of a vendored
// module.
func licenseOf(module string) string { return path.Join(vendorLicenses, module, "LICENSE") }

// vendored are the modules that vendor/modules.txt lists, with their versions.
func vendored(list []byte) map[string]string {
	modules := map[string]string{}
	for line := range strings.Lines(string(list)) {
		// Replaced modules are in the tree itself: "# path version => ./staging/…".
		if f := strings.Fields(line); len(f) == 3 && f[0] == "#" {
			modules[f[1]] = f[2]
		}
	}
	return modules
}

// licenseFile matches names of licenses, in both spellings.
var licenseFile = regexp.MustCompile(`(?i)^licen[cs]e`)

// license is the file for a vendored module in the form that upstream's
// hack/update-vendor-licenses.sh writes and verify-vendor-licenses.sh compares.
func (c checkout) license(module string) (*target, error) {
	dir := path.Join("vendor", module)
	files, err := os.ReadDir(filepath.Join(c.dir, filepath.FromSlash(dir)))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.IsDir() || !licenseFile.MatchString(f.Name()) {
			continue
		}
		file := path.Join(dir, f.Name())
		text, err := c.read(file)
		if err != nil {
			return nil, err
		}
		var data bytes.Buffer
		fmt.Fprintf(&data, "= %s licensed under: =\n\n%s\n= %s %x\n", dir, text, file, md5.Sum(text))
		return &target{path: licenseOf(module), data: data.Bytes()}, nil
	}
	return nil, fmt.Errorf("the new module %s in vendor/ has no license; see hack/update-vendor-licenses.sh there", module)
}
