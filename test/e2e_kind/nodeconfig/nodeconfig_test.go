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

package nodeconfig

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/yaml"
)

// manifest is what kubeadm writes for a component, cut to what matters.
const manifest = `apiVersion: v1
kind: Pod
metadata:
  annotations:
    kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint: 172.18.0.2:6443
  creationTimestamp: null
  name: kube-apiserver
spec:
  containers:
  - command:
    - kube-apiserver
    - --allow-privileged=true
    - --feature-gates=A=true,AB=false
    - --secure-port=6443
    image: registry.k8s.io/kube-apiserver:v1.37.2_feature.1
    livenessProbe:
      failureThreshold: 8
      httpGet: {path: /livez, port: 6443}
  priorityClassName: system-node-critical
status: {}
`

// kubelet and clusterConfiguration are of kubeadm, too.
const (
	kubelet = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHard: {nodefs.available: 0%}
failCgroupV1: false
imageGCHighThresholdPercent: 100
`
	clusterConfiguration = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
apiServer:
  certSANs: [localhost]
  extraArgs:
  - {name: runtime-config, value: ""}
  - {name: feature-gates, value: A=true}
controllerManager: {}
kubernetesVersion: v1.36.3
`
)

// replace returns a text with the first of two strings replaced by the other.
func replace(t *testing.T, text, old, by string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("%q is not in:\n%s", old, text)
	}
	return strings.Replace(text, old, by, 1)
}

// TestEditsChangeOneSettingOnly compares what is written with what is wanted as objects.
func TestEditsChangeOneSettingOnly(t *testing.T) {
	const gates = "--feature-gates=A=true,AB=false"
	for about, c := range map[string]struct {
		edit func() ([]byte, error)
		want string
	}{
		"a gate of a manifest that is set": {
			func() ([]byte, error) { return SetGateFlag([]byte(manifest), "A", false) },
			replace(t, manifest, gates, "--feature-gates=A=false,AB=false"),
		},
		"a gate of a manifest whose name begins another's": {
			func() ([]byte, error) { return SetGateFlag([]byte(manifest), "AB", true) },
			replace(t, manifest, gates, "--feature-gates=A=true,AB=true"),
		},
		"another gate of a manifest": {
			func() ([]byte, error) { return SetGateFlag([]byte(manifest), "B", true) },
			replace(t, manifest, gates, gates+",B=true"),
		},
		"the first gate of a manifest": {
			func() ([]byte, error) {
				return SetGateFlag([]byte(replace(t, manifest, "    - "+gates+"\n", "")), "B", true)
			},
			replace(t, replace(t, manifest, "    - "+gates+"\n", ""), "--secure-port=6443\n", "--secure-port=6443\n    - --feature-gates=B=true\n"),
		},
		"a flag of a manifest": {
			func() ([]byte, error) { return SetFlag([]byte(manifest), "secure-port", "443") },
			replace(t, manifest, "--secure-port=6443", "--secure-port=443"),
		},
		"a flag of a manifest that goes": {
			func() ([]byte, error) { return SetFlag([]byte(manifest), "secure-port", "") },
			replace(t, manifest, "    - --secure-port=6443\n", ""),
		},
		"a flag of a manifest that goes and is not there": {
			func() ([]byte, error) { return SetFlag([]byte(manifest), "emulated-version", "") },
			manifest,
		},
		"the first gate of a kubelet": {
			func() ([]byte, error) { return SetGate([]byte(kubelet), "A", true) },
			kubelet + "featureGates: {A: true}\n",
		},
		"another gate of a kubelet": {
			func() ([]byte, error) { return SetGate([]byte(kubelet+"featureGates: {A: true}\n"), "B", false) },
			kubelet + "featureGates: {A: true, B: false}\n",
		},
		"the first gate of kube-proxies": {
			func() ([]byte, error) { return SetGate([]byte("featureGates: null\nmode: nftables\n"), "A", true) },
			"mode: nftables\nfeatureGates: {A: true}\n",
		},
		"an extra argument of a component that has nothing": {
			func() ([]byte, error) {
				return SetExtraArg([]byte("apiServer: {extraArgs: null}\nscheduler: null\n"), "scheduler", "v", "4")
			},
			"apiServer: {extraArgs: null}\nscheduler: {extraArgs: [{name: v, value: '4'}]}\n",
		},
		"an extra argument": {
			func() ([]byte, error) {
				return SetExtraArg([]byte(clusterConfiguration), "controllerManager", "emulated-version", "1.36")
			},
			replace(t, clusterConfiguration, "controllerManager: {}", "controllerManager: {extraArgs: [{name: emulated-version, value: '1.36'}]}"),
		},
		"an extra argument that goes": {
			func() ([]byte, error) {
				return SetExtraArg([]byte(clusterConfiguration), "apiServer", "runtime-config", "")
			},
			replace(t, clusterConfiguration, "  - {name: runtime-config, value: \"\"}\n", ""),
		},
		"a gate among extra arguments": {
			func() ([]byte, error) { return SetGateArg([]byte(clusterConfiguration), "apiServer", "B", true) },
			replace(t, clusterConfiguration, "value: A=true", "value: 'A=true,B=true'"),
		},
		"a gate of a component without extra arguments": {
			func() ([]byte, error) { return SetGateArg([]byte(clusterConfiguration), "scheduler", "B", true) },
			clusterConfiguration + "scheduler: {extraArgs: [{name: feature-gates, value: B=true}]}\n",
		},
	} {
		t.Run(about, func(t *testing.T) {
			got, err := c.edit()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parse(t, c.want), parse(t, string(got))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// parse reads an object.
func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return object
}

// TestNumbersStayAsTheyAre: kubelet refuses "1e+06" for a port or a percentage.
func TestNumbersStayAsTheyAre(t *testing.T) {
	got, err := SetGate([]byte("a: 10250\nb: 1048576\nc: 100\nd: 2147483647\n"), "A", true)
	if want := "a: 10250\nb: 1048576\nc: 100\nd: 2147483647\nfeatureGates:\n  A: true\n"; err != nil || string(got) != want {
		t.Errorf("%v: %q, want %q", err, got, want)
	}
}

// TestManifestsWithoutAContainer are refused, and so is what is no YAML.
func TestManifestsWithoutAContainer(t *testing.T) {
	for text, want := range map[string]string{
		"kind: Pod\n":                           "no container",
		"spec: {containers: [text]}\n":          "the first container is string",
		"spec: {containers: [{command: text}]}": "command",
		"spec: {containers: text}\n":            "containers",
		"{":                                     "reading YAML",
	} {
		if _, err := SetFlag([]byte(text), "v", "4"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", text, err, want)
		}
	}
}

func TestSetField(t *testing.T) {
	config := []byte("kind: KubeletConfiguration\nserverTLSBootstrap: false\n")
	set, err := SetField(config, true, "serverTLSBootstrap")
	if want := "kind: KubeletConfiguration\nserverTLSBootstrap: true\n"; err != nil || string(set) != want {
		t.Errorf("got %q, %v, want %q", set, err, want)
	}
	removed, err := SetField(set, nil, "serverTLSBootstrap")
	if want := "kind: KubeletConfiguration\n"; err != nil || string(removed) != want {
		t.Errorf("got %q, %v, want %q", removed, err, want)
	}
}
