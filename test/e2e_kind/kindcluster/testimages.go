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
	"path"
	"path/filepath"
	"strings"
)

// LoadTestImages brings images of upstream's tests, where they are made, into all
// nodes.
func (c *Cluster) LoadTestImages() {
	c.t.Helper()
	for _, node := range c.Nodes() {
		for _, file := range list(os.Getenv(testImagesVariable)) {
			in := path.Join("/kind", filepath.Base(file))
			if err := show(c.t.Context(), c.t, "docker", "cp", file, node+":"+in); err != nil {
				c.t.Fatalf("copying an image into %s: %v", node, err)
			}
			c.Exec(node, "ctr", "--namespace=k8s.io", "images", "import", in)
			c.Exec(node, "rm", in)
		}
	}
}

// CopyFrom copies a file out of a node.
func (c *Cluster) CopyFrom(node, file, to string) {
	c.t.Helper()
	if err := show(c.t.Context(), c.t, "docker", "cp", node+":"+file, to); err != nil {
		c.t.Fatalf("copying %s out of %s: %v", file, node, err)
	}
}

// MissingImages are the images that upstream's tests ask for and that nodes of this
// run neither have nor can pull.
func MissingImages() []string { return list(os.Getenv(noImagesVariable)) }

// list are the values of a variable.
func list(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' })
}
