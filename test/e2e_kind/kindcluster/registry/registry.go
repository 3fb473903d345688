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

package registry

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
)

// Media types of what images consist of.
const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

// nameAnnotation has the name of an image in the index of an archive, as containerd
// reads it.
const nameAnnotation = "io.containerd.image.name"

// maxManifest bounds what is read into memory: manifests and indexes.
const maxManifest = 4 << 20

// Registry has images. Images are added before it serves.
type Registry struct {
	// tags has the digests of manifests by the names of images, each with its registry
	// unless it is this one, and with its tag.
	tags map[string]string
	// blobs has manifests, configurations and layers by their digests.
	blobs map[string]blob
}

// blob is a part of an archive, or data.
type blob struct {
	file         string
	offset, size int64
	data         []byte
}

// descriptor refers to a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// manifest is that of an image or, with manifests, an index.
type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        *descriptor  `json:"config,omitempty"`
	Layers        []descriptor `json:"layers,omitempty"`
	Manifests     []descriptor `json:"manifests,omitempty"`
}

// New returns a registry without images.
func New() *Registry { return &Registry{tags: map[string]string{}, blobs: map[string]blob{}} }

// Registries are those whose images the registry has, other than itself.
func (r *Registry) Registries() []string {
	found := map[string]bool{}
	for name := range r.tags {
		// The first part is a registry if it cannot be a folder.
		if host, _, ok := strings.Cut(name, "/"); ok && strings.ContainsAny(host, ".:") {
			found[host] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// AddFiles adds an image of one layer with these files for machines like this one. Its
// name has a tag and no registry.
func (r *Registry) AddFiles(name string, files map[string]string) error {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: file, Mode: 0o644, Size: int64(len(files[file]))}); err != nil {
			return err
		}
		if _, err := io.WriteString(w, files[file]); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	layers := r.addData(layerType, layer.Bytes())
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "rootfs": map[string]any{"type": "layers", "diff_ids": []string{layers.Digest}},
	})
	if err != nil {
		return err
	}
	described := r.addData(configType, config)
	data, err := json.Marshal(manifest{SchemaVersion: 2, MediaType: manifestType, Config: &described, Layers: []descriptor{layers}})
	if err != nil {
		return err
	}
	r.tags[name] = r.addData(manifestType, data).Digest
	return nil
}

// addData adds a blob and describes it.
func (r *Registry) addData(mediaType string, data []byte) descriptor {
	d := descriptor{MediaType: mediaType, Digest: digest(data), Size: len(data)}
	r.blobs[d.Digest] = blob{data: data, size: int64(len(data))}
	return d
}

func digest(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

// AddArchive adds the images of an archive in OCI's layout, such as "docker save" writes.
// The archive has to stay where it is: layers are read when they are pulled.
func (r *Registry) AddArchive(file string) error {
	index, blobs, err := readArchive(file)
	if err != nil {
		return fmt.Errorf("%s is no archive of images: %w", file, err)
	}
	all := maps.Clone(r.blobs)
	maps.Copy(all, blobs)
	added := map[string]string{}
	for _, d := range index.Manifests {
		name := d.Annotations[nameAnnotation]
		if name == "" {
			return fmt.Errorf("the archive %s does not say the name of %s", file, d.Digest)
		}
		if err := complete(all, d.Digest); err != nil {
			return fmt.Errorf("the archive %s lacks a part of %s: %w", file, name, err)
		}
		added[name] = d.Digest
	}
	if len(added) == 0 {
		return fmt.Errorf("the archive %s has no image", file)
	}
	r.blobs = all
	maps.Copy(r.tags, added)
	return nil
}

// readArchive finds the index and the blobs of an archive.
func readArchive(file string) (index manifest, blobs map[string]blob, err error) {
	f, err := os.Open(file)
	if err != nil {
		return index, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	blobs = map[string]blob{}
	found := false
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return index, nil, err
		}
		switch dir, base := path.Split(path.Clean(h.Name)); {
		case h.Typeflag != tar.TypeReg:
		case dir == "" && base == "index.json":
			if err := json.NewDecoder(io.LimitReader(r, maxManifest)).Decode(&index); err != nil {
				return index, nil, fmt.Errorf("index.json: %w", err)
			}
			found = true
		case dir == "blobs/sha256/":
			// The reader has read the header and nothing of the content.
			offset, err := f.Seek(0, io.SeekCurrent)
			if err != nil {
				return index, nil, err
			}
			blobs["sha256:"+base] = blob{file: file, offset: offset, size: h.Size}
		}
	}
	if !found {
		return index, nil, errors.New("there is no index.json in it")
	}
	return index, blobs, nil
}

// complete returns an error unless all is there that a manifest refers to.
func complete(blobs map[string]blob, digest string) error {
	b, ok := blobs[digest]
	if !ok {
		return fmt.Errorf("there is no manifest %s", digest)
	}
	m, _, err := b.manifest()
	if err != nil {
		return fmt.Errorf("the manifest %s: %w", digest, err)
	}
	for _, d := range m.Manifests {
		if err := complete(blobs, d.Digest); err != nil {
			return err
		}
	}
	parts := m.Layers
	if m.Config != nil {
		parts = append(slices.Clone(parts), *m.Config)
	}
	for _, d := range parts {
		if _, ok := blobs[d.Digest]; !ok {
			return fmt.Errorf("there is no %s of %s", d.Digest, d.MediaType)
		}
	}
	return nil
}

// manifest reads a blob as one, and returns its bytes, too.
func (b blob) manifest() (m manifest, data []byte, err error) {
	if b.size > maxManifest {
		return m, nil, fmt.Errorf("%d bytes are too many", b.size)
	}
	content, closer, err := b.open()
	if err != nil {
		return m, nil, err
	}
	data, err = io.ReadAll(content)
	if err := errors.Join(err, closer.Close()); err != nil {
		return m, nil, err
	}
	err = json.Unmarshal(data, &m)
	// OCI's manifests may leave their own type out.
	if m.MediaType == "" {
		m.MediaType = manifestType
		if len(m.Manifests) > 0 {
			m.MediaType = indexType
		}
	}
	return m, data, err
}

// open returns the content, and what to close after it was read.
func (b blob) open() (io.ReadSeeker, io.Closer, error) {
	if b.file == "" {
		return bytes.NewReader(b.data), io.NopCloser(nil), nil
	}
	f, err := os.Open(b.file)
	if err != nil {
		return nil, nil, err
	}
	return io.NewSectionReader(f, b.offset, b.size), f, nil
}
