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
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"

	"k8s.io/kubernetes-features/hack/module"
)

const kubernetesModule = "k8s.io/kubernetes"

// release is a release of Kubernetes whose modules are read.
type release struct {
	// version is, for example, v1.37.2.
	version string
	// kubernetes is the module k8s.io/kubernetes.
	kubernetes tree
	// staging has the paths of the modules that upstream keeps below staging.
	staging []string
	// versions has the version of each staging module: that of the release, the nearest one that is
	// published, or "" where none is.
	versions map[string]string
	trees    map[string]tree
}

// tree has the files of a module.
type tree struct {
	fs.FS
	close func() error
}

// stagingModule matches a requirement of a staging module in upstream's go.mod.
var stagingModule = regexp.MustCompile(`(?m)^\s*(k8s\.io/[a-z-]+) v0\.0\.0(?: // indirect)?$`)

// open opens a release.
func open(ctx context.Context, version string) (*release, error) {
	if !strings.HasPrefix(version, "v1.") {
		return nil, fmt.Errorf("%q is no version of Kubernetes; write it like v1.37.2", version)
	}
	r := &release{version: version, versions: map[string]string{}, trees: map[string]tree{}}
	var err error
	if r.kubernetes, err = unpacked(ctx, kubernetesModule, version); err != nil {
		return nil, err
	}
	r.trees[kubernetesModule] = r.kubernetes
	mod, err := fs.ReadFile(r.kubernetes, "go.mod")
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	for _, match := range stagingModule.FindAllSubmatch(mod, -1) {
		r.staging = append(r.staging, string(match[1]))
	}
	r.resolve(ctx)
	return r, nil
}

func (r *release) close() error {
	var all []error
	for _, t := range r.trees {
		if t.close != nil {
			all = append(all, t.close())
		}
	}
	return errors.Join(all...)
}

// resolve chooses the version of each staging module. Modules that other projects use little are not always
// published for each patch release.
func (r *release) resolve(ctx context.Context) {
	own := "v0" + strings.TrimPrefix(r.version, "v1")
	for _, path := range r.staging {
		if _, err := goCommand(ctx, os.TempDir(), "list", "-m", path+"@"+own); err == nil {
			r.versions[path] = own
			continue
		}
		near := nearest(ctx, path, own)
		fmt.Fprintf(os.Stderr, "%s: %s is not published; taking %s\n", r.version, path+"@"+own, cmp.Or(near, "none"))
		r.versions[path] = near
	}
}

// nearest returns the newest version of the same minor version, "" if there is none.
func nearest(ctx context.Context, path, version string) string {
	output, err := goCommand(ctx, os.TempDir(), "list", "-m", "-versions", path)
	if err != nil {
		return ""
	}
	minor, _, _ := strings.Cut(strings.TrimPrefix(version, "v0."), ".")
	near := ""
	for _, v := range strings.Fields(string(output)) {
		if strings.HasPrefix(v, "v0."+minor+".") {
			near = v
		}
	}
	return near
}

// source returns the files of a package, and its directory in them; false for packages that are not of Kubernetes.
func (r *release) source(ctx context.Context, importPath string) (fs.FS, string, bool, error) {
	for path, version := range r.versions {
		dir, ok := below(importPath, path)
		if !ok {
			continue
		}
		if version == "" {
			return nil, "", false, nil
		}
		t, known := r.trees[path]
		if !known {
			t = r.readable(ctx, path, version)
			r.trees[path] = t
		}
		return t, dir, t.FS != nil, nil
	}
	dir, ok := below(importPath, kubernetesModule)
	return r.kubernetes, dir, ok, nil
}

// readable returns the files of a staging module: in the version, or the nearest one of which more than the go.mod
// is published. It is empty where there is none, and its packages are left out then.
func (r *release) readable(ctx context.Context, path, version string) tree {
	t, err := unpacked(ctx, path, version)
	if err == nil {
		return t
	}
	if near := nearest(ctx, path, version); near != "" && near != version {
		if t, err := unpacked(ctx, path, near); err == nil {
			fmt.Fprintf(os.Stderr, "%s: %s cannot be read; reading %s\n", r.version, path+"@"+version, near)
			return t
		}
	}
	fmt.Fprintf(os.Stderr, "%s: %s cannot be read; its packages are left out: %v\n", r.version, path+"@"+version, err)
	return tree{}
}

// below returns the directory of a package in a module.
func below(importPath, module string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// unpacked returns the files of a module. One of a newer Go is read from its archive.
func unpacked(ctx context.Context, modulePath, version string) (tree, error) {
	m, err := module.Download(ctx, modulePath+"@"+version)
	if err != nil {
		return tree{}, err
	}
	if dir, err := m.Dir(); err == nil {
		return tree{FS: os.DirFS(dir), close: func() error { return nil }}, nil
	}
	archive, err := zip.OpenReader(m.Zip)
	if err != nil {
		return tree{}, fmt.Errorf("archive of %s: %w", m.Name, err)
	}
	files, err := fs.Sub(archive, path.Clean(m.Name))
	return tree{FS: files, close: archive.Close}, err
}

// goCommand runs the go command outside of this repository's modules. Releases of a newer Go are built with
// that Go, which the go command fetches.
func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOTOOLCHAIN=auto", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return output, nil
}
