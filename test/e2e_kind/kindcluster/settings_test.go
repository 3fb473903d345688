//go:build linux

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

package kindcluster

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// TestClusterOfRunIsThatOfTests holds the name in the Makefile, whose containers kind-build
// removes, against the one here.
func TestClusterOfRunIsThatOfTests(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(framework.Root(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(content), "\nkind-test:")
	found := regexp.MustCompile(`-fresh -cluster (\S+)[,)]`).FindStringSubmatch(recipe)
	if found == nil || found[1] != name {
		t.Errorf("the target kind-test has the cluster %q, want %s", found, name)
	}
}

// TestImagesAreNotNamedAsOthersAre checks names under which something else would be pulled.
func TestImagesAreNotNamedAsOthersAre(t *testing.T) {
	if image := unchangedName("v1.36.3"); !strings.HasPrefix(image, "localhost/") || !strings.HasSuffix(image, ":v1.36.3") {
		t.Errorf("the image of upstream's binaries is %s, want a name that no registry has", image)
	}
}

// TestOwnImageIsMade holds the name of the image against those that kind-build makes.
func TestOwnImageIsMade(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(framework.Root(t), "build", "kind", "base", "images.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(content), "\nvar OwnImages = ")
	list, _, _ := strings.Cut(table, "}")
	if !strings.Contains(list, strconv.Quote(ShellImage)) {
		t.Errorf("kind-build makes the images %q, want %s among them", list, ShellImage)
	}
}
