/*
Copyright 2026 The Kubernetes Authors.

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
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestArgumentsAreReadBesideTheBinarysOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want arguments
	}{
		"none":                        {nil, arguments{}},
		"with an equals sign":         {[]string{"--kubeconfig=k", "--secure-port=1"}, arguments{kubeconfig: "k", securePort: "1"}},
		"as two words":                {[]string{"--kubeconfig", "k", "--config", "c"}, arguments{kubeconfig: "k", config: "c"}},
		"between flags of the binary": {[]string{"--v=2", "--kubeconfig=k", "--leader-elect", "--hostname-override=n"}, arguments{kubeconfig: "k", nodeName: "n"}},
		"of a hollow node":            {[]string{"--morph=proxy", "--name=n"}, arguments{morph: "proxy", hollowName: "n"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := parseArguments(tc.args)
			got.args = nil
			if diff := cmp.Diff(&tc.want, got, cmp.AllowUnexported(arguments{})); diff != "" {
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

func TestTheReporterUsesTheBinarysWayToTheServer(t *testing.T) {
	first, second := kubeconfig(t, "https://first"), kubeconfig(t, "https://second")
	file := write(t, "config", "kind: KubeSchedulerConfiguration\nclientConnection:\n  kubeconfig: "+second+"\n")
	plain := write(t, "config", "kind: KubeletConfiguration\n")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"a kubeconfig":                       {[]string{"--kubeconfig=" + first}, "https://first"},
		"one named in a file":                {[]string{"--config=" + file}, "https://second"},
		"the file's before the flag's":       {[]string{"--kubeconfig=" + first, "--config=" + file}, "https://second"},
		"the flag's where the file has none": {[]string{"--kubeconfig=" + first, "--config=" + plain}, "https://first"},
		"an address before the kubeconfig's": {[]string{"--kubeconfig=" + first, "--master=https://third"}, "https://third"},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := parseArguments(tc.args).clientConfig("kube-proxy")
			if err != nil || config.Host != tc.want {
				t.Errorf("got %+v, %v; want %s", config, err, tc.want)
			}
		})
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

func TestNamesOfInstances(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host = strings.ToLower(host)
	override := write(t, "config", "hostnameOverride: FromFile\n")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"the host's name":   {nil, host},
		"an overridden one": {[]string{"--hostname-override=Node-1"}, "node-1"},
		"one from a file":   {[]string{"--config=" + override}, "fromfile"},
		"a hollow node's":   {[]string{"--name=hollow"}, "hollow"},
	} {
		if got, err := parseArguments(tc.args).node(); err != nil || got != tc.want {
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
