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
	"context"
	"fmt"
	"io/fs"
	"strings"

	"k8s.io/kubernetes-features/hack/module"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/ahead"
)

const (
	kubernetesModule = "k8s.io/kubernetes"
	clientModule     = "k8s.io/client-go"
)

// fetch reads a version of Kubernetes out of the module cache, into which the go command
// downloads it.
func fetch(ctx context.Context, version string) (*ahead.Release, error) {
	rest, ok := strings.CutPrefix(version, "v1.")
	if !ok {
		return nil, fmt.Errorf("%q is no version of Kubernetes; write it like v1.38.0-beta.0", version)
	}
	r := &ahead.Release{}
	sources := map[string]fs.FS{}
	// Staging modules are published as v0.
	for _, m := range []ahead.Module{{Path: kubernetesModule, Version: version}, {Path: clientModule, Version: "v0." + rest}} {
		archive, sum, err := download(ctx, m.Path+"@"+m.Version)
		if err != nil {
			return nil, err
		}
		defer func() { _ = archive.Close() }() // Only read from.
		if sources[m.Path], err = fs.Sub(archive, m.Path+"@"+m.Version); err != nil {
			return nil, err
		}
		m.Sum = sum
		r.Modules = append(r.Modules, m)
	}
	var err error
	if r.Gates, err = read(sources[kubernetesModule], sources[clientModule]); err != nil {
		return nil, fmt.Errorf("%s: %w", version, err)
	}
	return r, r.Validate()
}

// download opens the archive of a module, and returns its hash. A module of a newer Go is not
// unpacked, since it cannot be built; nothing of it is built here.
func download(ctx context.Context, name string) (*zip.ReadCloser, string, error) {
	m, err := module.Download(ctx, name)
	if err != nil {
		return nil, "", err
	}
	archive, err := zip.OpenReader(m.Zip)
	if err != nil {
		return nil, "", fmt.Errorf("archive of %s: %w", name, err)
	}
	return archive, m.Sum, nil
}
