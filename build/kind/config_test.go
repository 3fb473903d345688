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
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const permitted = `kubeadmConfigPatches:
  - |
    kind: KubeletConfiguration
    failCgroupV1: false
`

func TestDescriptionForCgroupV1(t *testing.T) {
	const begin = "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n"
	for name, test := range map[string]struct{ described, want string }{
		"one node": {begin, begin + permitted},
		"gates and nodes, with comments": {
			begin + "featureGates: # alpha\n  A: true\nnodes:\n  - role: control-plane\n    kubeadmConfigPatches:\n      - 'kind: KubeletConfiguration'\n",
			begin + "featureGates: # alpha\n  A: true\nnodes:\n  - role: control-plane\n    kubeadmConfigPatches:\n      - 'kind: KubeletConfiguration'\n" + permitted,
		},
		"patches of the user's, of which one refuses cgroup v1": {
			begin + "kubeadmConfigPatches:\n  - |\n    kind: KubeletConfiguration\n    failCgroupV1: true\n  - '{kind: InitConfiguration}'\nname: other\n",
			begin + permitted + "  - |\n    kind: KubeletConfiguration\n    failCgroupV1: true\n  - '{kind: InitConfiguration}'\nname: other\n",
		},
		"patches in one line": {
			begin + "kubeadmConfigPatches: ['{kind: InitConfiguration}']\n",
			begin + "kubeadmConfigPatches: [\"kind: KubeletConfiguration\\nfailCgroupV1: false\\n\", '{kind: InitConfiguration}']\n",
		},
		"no patches": {begin + "kubeadmConfigPatches:\n", begin + permitted},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := permitCgroupV1([]byte(test.described))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDescriptionThatIsNone(t *testing.T) {
	for described, want := range map[string]string{
		"":                            "describes no cluster",
		"- kind: Cluster":             "describes no cluster",
		"kubeadmConfigPatches: patch": "line 1: kubeadmConfigPatches is no list",
		"kind: [":                     "yaml:",
	} {
		if got, err := permitCgroupV1([]byte(described)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q and the error %v, want one with %q", described, got, err, want)
		}
	}
}

func TestCopyOfDescription(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kind")
	mine := filepath.Join(t.TempDir(), "kind.yaml")
	if err := os.WriteFile(mine, []byte("kind: Cluster\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"cgroup1", "-dir", dir}, oneNode + permitted},
		{[]string{"cgroup1", "-dir", dir, mine}, "kind: Cluster\n" + permitted},
	} {
		if err := run(t.Context(), test.args); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(dir, "config.yaml"))
		if err != nil || string(content) != test.want {
			t.Errorf("kind-build %q writes %q, %v, want %q", test.args, content, err, test.want)
		}
	}
	if content, err := os.ReadFile(mine); err != nil || string(content) != "kind: Cluster\n" {
		t.Errorf("the user's file is %q, %v", content, err)
	}
	if err := run(t.Context(), []string{"cgroup1", "-dir", dir, mine + "-none"}); err == nil || !strings.Contains(err.Error(), "kind.yaml-none") {
		t.Errorf("got the error %v, want one that names the file", err)
	}
}
