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
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/build"
	"k8s.io/kubernetes-features/build/release/sbom"
	"k8s.io/kubernetes-features/build/release/targets"
)

var (
	// licenseFile matches what has to go along with a binary, licenseText what of
	// it is a license of code: LICENSE.docs is of none that is linked.
	licenseFile = regexp.MustCompile(`(?i)^(licen[cs]es?|copying|notice|copyright|unlicense|patents)([.-].*)?$`)
	licenseText = regexp.MustCompile(`(?i)^(licen[cs]es?|copying|unlicense)([.-].*)?$`)
)

// licenses returns kubernetes/LICENSES: upstream's own, and in vendor/ those of
// every module that the component's binaries say they contain. Upstream keeps
// the latter in its tree; its module does not have them.
func (r *release) licenses(c targets.Component, p targets.Platform) ([]archive.Entry, error) {
	entries, err := filesBelow("kubernetes/LICENSES", filepath.Join(r.modules[p]["k8s.io/kubernetes"].dir, "LICENSES"))
	if err != nil {
		return nil, err
	}
	found, err := r.licensesOfModules(c, p)
	return append(entries, found...), err
}

// licensesOfModules returns the licenses of every module that a component's binaries
// say they contain.
func (r *release) licensesOfModules(c targets.Component, p targets.Platform) ([]archive.Entry, error) {
	var entries []archive.Entry
	for _, module := range r.modulesOf(c, p) {
		found, err := r.licensesOf(module, p)
		if err != nil {
			return nil, err
		}
		entries = append(entries, found...)
	}
	return entries, nil
}

// licensesOf returns the licenses of a module in p's binaries.
func (r *release) licensesOf(name string, p targets.Platform) ([]archive.Entry, error) {
	m, ok := r.modules[p][name]
	if !ok {
		return nil, fmt.Errorf("the module %s is in a binary, but \"go list -deps\" of the binaries for %s does not have it", name, p)
	}
	var found []archive.Entry
	var err error
	if m.main {
		found, err = r.ownLicenses(name, m.dir)
	} else {
		found, err = moduleLicenses(name, m.dir)
	}
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the module %s has no license in its folder %s", name, m.dir)
	}
	return found, nil
}

// license reads the licenses of modules into them, for the bill.
func (r *release) license(modules []sbom.Module, p targets.Platform) error {
	for i, m := range modules {
		found, err := r.licensesOf(m.Path, p)
		if err != nil {
			return err
		}
		for _, e := range found {
			// Notices and grants of patents are no licenses.
			if !licenseText.MatchString(path.Base(e.Name)) || path.Ext(e.Name) == ".docs" {
				continue
			}
			text, err := content(e)
			if err != nil {
				return err
			}
			modules[i].Licenses = append(modules[i].Licenses, string(text))
		}
	}
	return nil
}

// modulesOf returns the modules in a component's binaries, sorted.
func (r *release) modulesOf(c targets.Component, p targets.Platform) []string {
	var modules []string
	for _, f := range r.bill.Files {
		name, ok := strings.CutPrefix(f.Name, p.String()+"/")
		if !ok || !slices.ContainsFunc(targets.Of(c), func(b targets.Binary) bool { return b.Name == name }) {
			continue
		}
		for _, m := range f.Modules {
			modules = append(modules, m.Path)
		}
	}
	slices.Sort(modules)
	return slices.Compact(modules)
}

// ownLicenses returns the licenses of a module of this tree, which are in its
// folder or else in the root. They are those of the sources.
func (r *release) ownLicenses(name, dir string) ([]archive.Entry, error) {
	root, err := filepath.EvalSymlinks(r.root)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	below, err := filepath.Rel(root, dir)
	if err != nil {
		return nil, err
	}
	for _, folder := range []string{filepath.ToSlash(below), "."} {
		var entries []archive.Entry
		for _, e := range r.sources {
			if base := path.Base(e.Name); path.Dir(e.Name) == folder && e.Link == "" && licenseFile.MatchString(base) {
				e.Name = path.Join(licensesFolder, name, base)
				entries = append(entries, e)
			}
		}
		if len(entries) > 0 {
			slices.SortFunc(entries, func(a, b archive.Entry) int { return strings.Compare(a.Name, b.Name) })
			return entries, nil
		}
	}
	return nil, nil
}

// licensesFolder has the licenses of modules in archives.
const licensesFolder = "kubernetes/LICENSES/vendor"

// moduleLicenses returns the licenses in the root of a module.
func moduleLicenses(module, dir string) ([]archive.Entry, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var entries []archive.Entry
	for _, f := range files {
		if f.Type().IsRegular() && licenseFile.MatchString(f.Name()) {
			entries = append(entries, archive.Entry{
				Name: path.Join(licensesFolder, module, f.Name()), Path: filepath.Join(dir, f.Name()),
			})
		}
	}
	return entries, nil
}

// module is where a module is.
type module struct {
	dir string
	// main is set for modules of this tree.
	main bool
}

// findModules returns where the modules of p's binaries are, and Go itself for
// its standard library. Packages are asked, since upstream's staging modules keep
// "go list -m all" from working in any module but upstream's.
func (r *release) findModules(ctx context.Context, p targets.Platform) (map[string]module, error) {
	args := append([]string{"list", "-deps", "-tags=" + targets.Tags, "-f", "{{with .Module}}{{.Path}}\t{{.Dir}}\t{{.Main}}{{end}}"}, build.Packages(r.components(p))...)
	out, err := r.goOutput(ctx, p, args...)
	if err != nil {
		return nil, fmt.Errorf("cannot list the modules of the binaries for %s: %w", p, err)
	}
	modules := map[string]module{}
	for line := range strings.Lines(out) {
		// Packages of the standard library are in none.
		if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 3 {
			modules[f[0]] = module{dir: f[1], main: f[2] == "true"}
		}
	}
	goroot, err := r.goOutput(ctx, p, "env", "GOROOT")
	modules[sbom.Stdlib] = module{dir: strings.TrimSpace(goroot)}
	return modules, err
}

// goOutput runs the go command as for a build and returns what it prints.
func (r *release) goOutput(ctx context.Context, p targets.Platform, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.root
	cmd.Env = r.source.Go.Env(r.root, p)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// filesBelow returns the files below dir under prefix.
func filesBelow(prefix, dir string) ([]archive.Entry, error) {
	var entries []archive.Entry
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		entries = append(entries, archive.Entry{Name: path.Join(prefix, name), Path: filepath.Join(dir, name)})
		return nil
	})
	return entries, err
}
