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

// ShellImage is an image of a busybox with its commands, which is in nodes after
// LoadOwnImages. No registry has it.
const ShellImage = "localhost/shell:v1"

// LoadOwnImages brings images of this repository's own into all nodes.
func (c *Cluster) LoadOwnImages() {
	c.t.Helper()
	files := list(os.Getenv(ownImagesVariable))
	if len(files) == 0 {
		c.t.Fatalf("%s names no archives of images; \"make kind-test\" makes them", ownImagesVariable)
	}
	c.load(files)
}

// InstallTrialPackages installs packages in a node that its image does not have: CRIU, and a
// bus for logind. Those that it has stay as they are.
func (c *Cluster) InstallTrialPackages(node string) {
	c.t.Helper()
	files := list(os.Getenv(trialPackagesVariable))
	if len(files) == 0 {
		c.t.Fatalf("%s names no packages; \"make kind-test\" fetches them", trialPackagesVariable)
	}
	const dir = "/kind/packages"
	c.Exec(node, "mkdir", "-p", dir)
	for _, file := range files {
		if err := show(c.t.Context(), c.t, "docker", "cp", file, node+":"+dir); err != nil {
			c.t.Fatalf("copying a package into %s: %v", node, err)
		}
	}
	const script = `for file in "$1"/*.deb; do
	status=$(dpkg-query --show --showformat='${db:Status-Status}' "$(dpkg-deb --field "$file" Package)" 2>/dev/null) || status=none
	[ "$status" = installed ] || set -- "$@" "$file"
done
dir=$1
shift
export DEBIAN_FRONTEND=noninteractive
[ $# = 0 ] || dpkg --install "$@"
rm -r "$dir"`
	c.t.Log(c.Exec(node, "sh", "-ec", script, "sh", dir))
}

// LoadTestImages brings images of upstream's tests, where they are made, into all
// nodes.
func (c *Cluster) LoadTestImages() {
	c.t.Helper()
	c.load(list(os.Getenv(testImagesVariable)))
}

// load brings images into all nodes.
func (c *Cluster) load(files []string) {
	c.t.Helper()
	for _, node := range c.Nodes() {
		for _, file := range files {
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
