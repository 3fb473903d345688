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

package reporting

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestArgumentsAreParsedBesideBinary(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want arguments
	}{
		"none":                        {nil, arguments{}},
		"with an equals sign":         {[]string{"--kubeconfig=k", "--secure-port=1"}, arguments{kubeconfig: "k", securePort: "1"}},
		"as two words":                {[]string{"--kubeconfig", "k", "--config", "c"}, arguments{kubeconfig: "k", config: "c"}},
		"between flags of the binary": {[]string{"--v=2", "--kubeconfig=k", "--leader-elect", "--hostname-override=n"}, arguments{kubeconfig: "k", nodeName: "n"}},
		"with underscores":            {[]string{"--secure_port=1", "--hostname_override", "n"}, arguments{securePort: "1", nodeName: "n"}},
		"of a hollow node":            {[]string{"--morph=proxy", "--name=n"}, arguments{morph: "proxy", hollowName: "n"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := parseArguments(tc.args)
			got.args, got.kubelet = nil, kubeletArguments{}
			if diff := cmp.Diff(&tc.want, got, cmp.AllowUnexported(arguments{}, kubeletArguments{})); diff != "" {
				t.Errorf("unexpected arguments (-want +got):\n%s", diff)
			}
		})
	}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	data, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "kubeconfig", string(data))
}

// TestAgentUsesConnectionOfBinary covers precedence: upstream's components disagree
// about which of flag and file goes first, and about the default without a value in
// the file.
func TestAgentUsesConnectionOfBinary(t *testing.T) {
	first, second := kubeconfig(t, "https://first"), kubeconfig(t, "https://second")
	file := write(t, "config", "kind: KubeSchedulerConfiguration\nclientConnection:\n  kubeconfig: "+second+"\n")
	plain := write(t, "config", "clientConnection: {}\n")
	const inCluster = "in-cluster"
	for name, tc := range map[string]struct {
		args []string
		want map[string]string
	}{
		"a kubeconfig": {[]string{"--kubeconfig=" + first}, map[string]string{
			"kube-scheduler": "https://first", "kube-proxy": "https://first", "kube-controller-manager": "https://first", "kubelet": "https://first"}},
		"one named in a file": {[]string{"--config=" + file}, map[string]string{
			"kube-scheduler": "https://second", "kube-proxy": "https://second"}},
		"the file's before the flag's": {[]string{"--kubeconfig=" + first, "--config=" + file}, map[string]string{
			"kube-scheduler": "https://second", "kube-proxy": "https://second", "kubelet": "https://first"}},
		"the flag's beside a file that has none": {[]string{"--kubeconfig=" + first, "--config=" + plain}, map[string]string{
			"kube-scheduler": inCluster, "kube-proxy": inCluster, "kubelet": "https://first"}},
		"a flag's that is not there beside a file": {[]string{"--kubeconfig=" + first + ".not", "--config=" + file}, map[string]string{
			"kube-scheduler": "https://second", "kube-proxy": "https://second"}},
		"an address before the kubeconfig's": {[]string{"--kubeconfig=" + first, "--master=https://third"}, map[string]string{
			"kube-scheduler": "https://third", "kube-proxy": "https://third", "kube-controller-manager": "https://third"}},
		"an address beside a file that has none": {[]string{"--kubeconfig=" + first, "--config=" + plain, "--master=https://third"}, map[string]string{
			"kube-scheduler": "https://third", "kube-proxy": "https://third"}},
		"none": {nil, map[string]string{"kube-scheduler": inCluster, "kube-proxy": inCluster, "kube-controller-manager": inCluster}},
	} {
		for component, want := range tc.want {
			t.Run(name+" of "+component, func(t *testing.T) {
				config, err := parseArguments(tc.args).clientConfig(component)
				if want == inCluster {
					if !errors.Is(err, rest.ErrNotInCluster) {
						t.Errorf("got %+v, %v; want it to look for a cluster around it", config, err)
					}
					return
				}
				if err != nil || config.Host != want {
					t.Errorf("got %+v, %v; want %s", config, err, want)
				}
			})
		}
	}
	for name, args := range map[string][]string{
		"a kubeconfig that is not there": {"--kubeconfig=" + first + ".not"},
		"a file that is not there":       {"--config=" + file + ".not"},
		"a file that is no YAML":         {"--config=" + write(t, "config", "{")},
		"none, outside of a cluster":     nil,
	} {
		if _, err := parseArguments(args).clientConfig("kube-proxy"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestInstanceNames(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host = strings.ToLower(host)
	override := write(t, "config", "hostnameOverride: FromFile\n")
	for name, tc := range map[string]struct {
		component string
		args      []string
		want      string
	}{
		"the host's name":                      {"kubelet", nil, host},
		"an overridden one":                    {"kubelet", []string{"--hostname-override=Node-1"}, "node-1"},
		"a proxy's from a file":                {"kube-proxy", []string{"--config=" + override}, "fromfile"},
		"a proxy's from a flag, before a file": {"kube-proxy", []string{"--hostname-override=Node-1", "--config=" + override}, "node-1"},
		"a kubelet has none in a file":         {"kubelet", []string{"--config=" + override}, host},
		"a hollow node's":                      {"kubelet", []string{"--name=hollow"}, "hollow"},
	} {
		if got, err := parseArguments(tc.args).node(tc.component); err != nil || got != tc.want {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, tc.want)
		}
	}
	first, err := parseArguments([]string{"--secure-port=1"}).instance()
	if err != nil {
		t.Fatal(err)
	}
	second, err := parseArguments([]string{"--secure-port=2"}).instance()
	if err != nil || first == second || !strings.HasSuffix(second, "-2") {
		t.Errorf("two processes on one host are %q and %q, %v", first, second, err)
	}
}
