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
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"k8s.io/kubernetes-features/build/release/archive"
)

// Save writes img under the name ref, registry/name:tag, as the archive that
// "docker save" of Docker 25 and later writes: an OCI layout that containerd
// reads by index.json, with the manifest.json that older readers and kind look
// for.
//
// It is not go-containerregistry that writes it: its package tarball writes the
// older form without index.json, in which containerd finds neither annotations
// nor OCI's media types; its package layout writes a folder without manifest.json
// and repositories, which kind reads. Both leave times and the order of files to
// the moment.
func Save(ctx context.Context, file string, img v1.Image, ref string, mtime time.Time) error {
	entries, err := saved(img, ref)
	if err != nil {
		return fmt.Errorf("cannot save the image %s: %w", ref, err)
	}
	return archive.WriteFile(ctx, file, entries, mtime)
}

// dockerManifest is an element of manifest.json in Docker's image
// specification 1.2.
type dockerManifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func saved(img v1.Image, ref string) ([]archive.Entry, error) {
	colon := strings.LastIndexByte(ref, ':')
	if colon < strings.LastIndexByte(ref, '/') {
		return nil, fmt.Errorf("the name has no tag")
	}
	repository, tag := ref[:colon], ref[colon+1:]
	s := &saver{blobs: map[v1.Hash]bool{}}
	docker := dockerManifest{RepoTags: []string{ref}}
	layers, err := img.Layers()
	if err != nil {
		return nil, err
	}
	last := ""
	for _, l := range layers {
		digest, err := l.Digest()
		if err != nil {
			return nil, err
		}
		r, err := l.Compressed()
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			return nil, err
		}
		docker.Layers = append(docker.Layers, s.blob(digest, content))
		last = digest.Hex
	}
	if docker.Config, err = s.config(img); err != nil {
		return nil, err
	}
	index, err := s.index(img, ref, tag)
	if err != nil {
		return nil, err
	}
	for _, f := range []struct {
		name    string
		content any
	}{
		{"index.json", index},
		{"manifest.json", []dockerManifest{docker}},
		{"oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}},
		{"repositories", map[string]map[string]string{repository: {tag: last}}},
	} {
		content, err := json.Marshal(f.content)
		if err != nil {
			return nil, err
		}
		s.entries = append(s.entries, archive.Entry{Name: f.name, Data: content})
	}
	return s.entries, nil
}

// saver gathers the files of an archive.
type saver struct {
	entries []archive.Entry
	blobs   map[v1.Hash]bool
}

// blob adds content once and returns its name in the archive.
func (s *saver) blob(digest v1.Hash, content []byte) string {
	name := path.Join("blobs", digest.Algorithm, digest.Hex)
	if !s.blobs[digest] {
		s.blobs[digest] = true
		s.entries = append(s.entries, archive.Entry{Name: name, Data: content})
	}
	return name
}

func (s *saver) config(img v1.Image) (string, error) {
	digest, err := img.ConfigName()
	if err != nil {
		return "", err
	}
	content, err := img.RawConfigFile()
	if err != nil {
		return "", err
	}
	return s.blob(digest, content), nil
}

// index adds the manifest and returns the index that names it, in the
// annotations of which containerd finds the image's name.
func (s *saver) index(img v1.Image, ref, tag string) (*v1.IndexManifest, error) {
	digest, err := img.Digest()
	if err != nil {
		return nil, err
	}
	manifest, err := img.RawManifest()
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	s.blob(digest, manifest)
	return &v1.IndexManifest{
		SchemaVersion: 2,
		MediaType:     types.OCIImageIndex,
		Manifests: []v1.Descriptor{{
			MediaType: types.OCIManifestSchema1,
			Digest:    digest,
			Size:      int64(len(manifest)),
			Platform:  &v1.Platform{OS: config.OS, Architecture: config.Architecture},
			Annotations: map[string]string{
				"io.containerd.image.name":          ref,
				"org.opencontainers.image.ref.name": tag,
			},
		}},
	}, nil
}
