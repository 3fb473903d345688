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

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// looking are the pages whose commands start a cluster of their own as the reader's, and
// then only look at it. They share one, since starting it takes longer than all else.
var looking = map[string]bool{
	"docs/metrics.md":           true,
	"docs/feature-consumers.md": true,
	"docs/security.md":          true,
	"docs/troubleshooting.md":   true,
}

// instead takes the place of local-up where the cluster runs already, and stays. Flags
// that local-up does not have are an error all the same.
const instead = `#!/bin/sh
case "$1" in
up | down) exec %[1]q "$@" --help ;;
*) echo "a page that only looks runs local-up $1" >&2; exit 1 ;;
esac
`

// look is a reader of a page that only looks, whose cluster is in a folder.
func look(t *testing.T, page, running string) *reader {
	t.Helper()
	r := &reader{t: t, page: page, dir: framework.DataDir(t)}
	bin := filepath.Join(r.dir, "_output", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(running, filepath.Join(r.dir, "_output", "local")); err != nil {
		t.Fatal(err)
	}
	binaries, err := os.ReadDir(framework.BinDir(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, binary := range binaries {
		from, to := filepath.Join(framework.BinDir(t), binary.Name()), filepath.Join(bin, binary.Name())
		if binary.Name() == "local-up" {
			err = os.WriteFile(to, fmt.Appendf(nil, instead, from), 0o755)
		} else {
			err = os.Symlink(from, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// sharedCluster starts the cluster of pages that only look, and returns its folder.
func sharedCluster(t *testing.T) string {
	t.Helper()
	return filepath.Dir(framework.Start(t, localcluster.Config{Nodes: 1}).Kubeconfig("admin"))
}
