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

package image

import (
	"bytes"
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"k8s.io/kubernetes-features/build/release/archive"
)

// Runner is the path of the entry point in images. The manifests of kubeadm and
// of GCE start components through it or by their own path.
const Runner = "/go-runner"

// Layer is one layer of an image.
type Layer struct {
	// Comment describes the layer in the image's history.
	Comment string
	// Entries are its files.
	Entries []archive.Entry
}

// Spec describes what an image consists of.
type Spec struct {
	// Name is the binary's name and the image's title.
	Name string
	// Layers are the layers, the lowest one first.
	Layers []Layer
	// Entrypoint is the program that runs, and Command its arguments if a container
	// sets none.
	Entrypoint, Command []string
	// User is the numeric user that it runs as.
	User int
	// Arch is the architecture as the go command names it; the system is always
	// linux.
	Arch string
	// Version is the release's version and Revision the commit it was built from;
	// an empty one is left out.
	Version, Revision string
	// Source is the address of the repository.
	Source string
	// Created is the time in the image and of all files in it.
	Created time.Time
}

// Component returns the layers of a component's image on top of its base:
// upstream's build/server-image has the binary in /usr/local/bin, and beside it
// the runner that is the entry point. xattrs are those of the binary.
func Component(name, binary, runner string, xattrs map[string]string) []Layer {
	return []Layer{
		{Comment: name, Entries: []archive.Entry{{Name: "usr/local/bin/" + name, Path: binary, Mode: 0o755, Xattrs: xattrs}}},
		{Comment: "kube-log-runner", Entries: []archive.Entry{{Name: Runner[1:], Path: runner, Mode: 0o755}}},
	}
}

// What labels say of every image.
const (
	url           = "https://www.kubernetes.dev/resources/keps/3920/"
	documentation = "https://github.com/kubernetes/enhancements/issues/3920"
	vendor        = "The Kubernetes Authors"
)

// SourceLabel is the label with the address of the repository.
const SourceLabel = "org.opencontainers.image.source"

// Labels returns the annotations of the OCI image specification, which the image
// has as labels and its manifest as annotations. There is none of licenses: an
// image is under those of some hundred modules and, for kube-proxy, of Debian's
// programs, which its files and the bill of materials have.
func (s Spec) Labels() map[string]string {
	const prefix = "org.opencontainers.image."
	labels := map[string]string{
		prefix + "title":         s.Name,
		prefix + "description":   s.Name + " of Kubernetes with feature lifecycle (KEP-3920)",
		prefix + "version":       s.Version,
		prefix + "created":       s.Created.UTC().Format(time.RFC3339),
		prefix + "url":           url,
		prefix + "documentation": documentation,
		prefix + "vendor":        vendor,
	}
	if s.Revision != "" {
		labels[prefix+"revision"] = s.Revision
	}
	if s.Source != "" {
		labels[SourceLabel] = s.Source
	}
	return labels
}

// Build makes the image. All of it is in memory.
func Build(s Spec) (v1.Image, error) {
	created := v1.Time{Time: s.Created.UTC().Truncate(time.Second)}
	img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	img = mutate.ConfigMediaType(img, types.OCIConfigJSON)
	for _, l := range s.Layers {
		var content bytes.Buffer
		if err := archive.Write(&content, l.Entries, s.Created); err != nil {
			return nil, fmt.Errorf("cannot make the layer %q of the image %s: %w", l.Comment, s.Name, err)
		}
		var err error
		img, err = mutate.Append(img, mutate.Addendum{
			// Not compressed: the archive is inside of a compressed one.
			Layer:   static.NewLayer(content.Bytes(), types.OCIUncompressedLayer),
			History: v1.History{Created: created, CreatedBy: "build/release", Comment: l.Comment},
		})
		if err != nil {
			return nil, fmt.Errorf("cannot add the layer %q to the image %s: %w", l.Comment, s.Name, err)
		}
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", s.Arch, created
	config.Config = v1.Config{
		User:       fmt.Sprint(s.User),
		WorkingDir: "/",
		Entrypoint: s.Entrypoint,
		Cmd:        s.Command,
		Labels:     s.Labels(),
		Env: []string{
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
			"SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
		},
	}
	img, err = mutate.ConfigFile(img, config)
	if err != nil {
		return nil, err
	}
	annotated, ok := mutate.Annotations(img, s.Labels()).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("the image %s takes no annotations", s.Name)
	}
	return annotated, nil
}
