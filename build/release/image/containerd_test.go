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
	"os"
	"testing"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/images/archive"
	"github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/containerd/platforms"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// TestContainerdImports imports an archive as "ctr images import" does, with
// containerd's own code and without a daemon.
func TestContainerdImports(t *testing.T) {
	store, err := local.NewStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(save(t, apiserver(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	index, err := archive.ImportIndex(t.Context(), store, f)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	layers := 0
	visit := func(ctx context.Context, d ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		if name := d.Annotations[images.AnnotationImageName]; name != "" {
			found = append(found, name)
		}
		if images.IsLayerType(d.MediaType) {
			layers++
		}
		// Everything that is named has to have been in the archive.
		if _, err := content.ReadBlob(ctx, store, d); err != nil {
			return nil, err
		}
		return images.Children(ctx, store, d)
	}
	if err := images.Walk(t.Context(), images.HandlerFunc(visit), index); err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0] != ref || layers != 3 {
		t.Errorf("containerd finds the images %v with %d layers, want %s with 3", found, layers, ref)
	}
	config, err := images.Config(t.Context(), store, index, platforms.Only(ocispec.Platform{OS: "linux", Architecture: "amd64"}))
	if err != nil {
		t.Fatal(err)
	}
	if config.MediaType != ocispec.MediaTypeImageConfig {
		t.Errorf("the image for linux/amd64 has a config of %s", config.MediaType)
	}
}
