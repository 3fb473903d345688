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

package gatefiles

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lines are what a result has, a setting or a document that is not read in each.
func lines(result Result) []string {
	var all []string
	for _, s := range result.Settings {
		all = append(all, fmt.Sprintf("%d %s %s=%t", s.Line, s.Process.Component, s.Gate, s.Enabled))
	}
	for _, u := range result.Unread {
		all = append(all, fmt.Sprintf("%d unread (%t): %s", u.Line, u.Matters, u.Why))
	}
	for _, p := range result.Problems {
		all = append(all, "problem "+p.Error())
	}
	return all
}

// container has one container, with lines of its own.
const container = "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: registry.k8s.io/kube-apiserver:v1.36.0\n"

// TestOddFiles: files that are valid, and written in a way that is not the usual one.
func TestOddFiles(t *testing.T) {
	const capi = "apiVersion: controlplane.cluster.x-k8s.io/v1beta1\nkind: KubeadmControlPlane\nspec:\n  kubeadmConfigSpec:\n    files:\n    - path: /etc/kubernetes/patches/kubeletconfiguration0+merge.yaml\n"
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"underscores in a flag": {container + "    command: [kube-apiserver, --feature_gates=A=true]\n", []string{"6 kube-apiserver A=true"}},
		"underscores, and the value in the next argument": {
			container + "    command: [kube-apiserver, --feature_gates, A=true]\n", []string{"6 kube-apiserver A=true"},
		},
		"underscores in extraArgs": {
			"apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nscheduler:\n  extraArgs: [{name: feature_gates, value: A=true}]\n", []string{"4 kube-scheduler A=true"},
		},
		"underscores in an unknown kind": {
			"apiVersion: example.com/v1\nkind: Machine\nspec:\n  run: kubelet --feature_gates=A=true\n", []string{"4 unread (true): kind Machine has spec.run, and no format that is known"},
		},
		"a program of another name in the image": {container + "    command: [/start, --feature-gates=A=true]\n", []string{"6 kube-apiserver A=true"}},
		"a script with a comment and spaces in quotes": {
			container + "    command: [sh, -c]\n    args:\n    - |\n      # it's kube-apiserver --feature-gates=Old=true\n      exec kube-apiserver --feature-gates=\"A=true, B=false\" --v=2\n",
			[]string{"10 kube-apiserver A=true", "10 kube-apiserver B=false"},
		},
		"a script with an open quote": {
			container + "    command: [sh, -c, \"echo it's; kube-apiserver --feature-gates=A=true\"]\n", []string{"6 kube-apiserver A=true"},
		},
		"the first of several merged maps wins": {
			"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\na: &a {A: true}\nb: &b {A: false}\nfeatureGates:\n  <<: [*a, *b]\n",
			[]string{"4 kubelet A=false", "3 kubelet A=true"},
		},
		"operations of a ClusterClass": {
			"apiVersion: cluster.x-k8s.io/v1beta1\nkind: ClusterClass\nspec:\n  patches:\n  - definitions:\n    - jsonPatches:\n      - {op: remove, path: /x/feature-gates}\n" +
				"      - op: add\n        path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/extraArgs/feature-gates\n        value: A=true\n",
			[]string{"9 unread (true): kind ClusterClass has spec.patches[0].definitions[0].jsonPatches[1].value, and no format that is known"},
		},
		"operations of a patch": {
			"- op: replace\n  path: /spec/kubernetes/kubelet/featureGates/A\n  value: true\n", []string{"2 unread (true): this document has [0].value, and no format that is known"},
		},
		"a file in base64": {capi + "      encoding: base64\n      content: ZmVhdHVyZUdhdGVzOiB7QTogdHJ1ZX0K\n", []string{"8 kubelet A=true"}},
		"a file in base64 that is none": {
			capi + "      encoding: base64\n      content: '{A: true}'\n",
			[]string{"problem -:8: the content of /etc/kubernetes/patches/kubeletconfiguration0+merge.yaml is no base64; write it in base64, or leave out encoding"},
		},
		"a compressed file": {
			capi + "      encoding: gzip+base64\n      content: H4sIAAAA\n", []string{"8 unread (true): the content of /etc/kubernetes/patches/kubeletconfiguration0+merge.yaml is compressed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := Reader{In: strings.NewReader(tc.text)}
			if diff := cmp.Diff(tc.want, lines(r.Read([]string{Stdin}))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLinksInDirectories: a volume of a ConfigMap has nothing but links, and one that leads nowhere is named.
func TestLinksInDirectories(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "..data"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfeatureGates: {A: true}\n"
	if err := os.WriteFile(filepath.Join(root, "..data", "kubelet.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"kubelet.yaml": "..data/kubelet.yaml", "gone.yaml": "nowhere", "loop.yaml": "."} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	r := Reader{}
	result := r.Read([]string{root})
	if diff := cmp.Diff([]string{"3 kubelet A=true", "problem " + filepath.Join(root, "gone.yaml") + ": no such file or directory"}, lines(result)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := lines(r.Read([]string{""})); !slices.Equal(got, []string{"problem -f: it has no name; name a file, a directory, or - for the standard input"}) {
		t.Errorf("without a name: %q", got)
	}
}
