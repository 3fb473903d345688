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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzArguments reads any command line, its arguments separated by NUL, beside the
// binary's own parser. Arguments of the binary are kept in their order. The resulting
// names are valid in the API, or are refused there with a message.
func FuzzArguments(f *testing.F) {
	foundArguments(f)
	for _, seed := range [][]string{
		{"--kubeconfig=/a", "--feature-values-file", "/b", "-v=4", "--", "--feature-values-file=x"},
		{"--feature_change_policy=Restart", "--feature-restart-window", "--", "5m"}, {"--feature-values-timeout=-5s"}, {"--hostname-override", " NODE ", "--name="},
		{"--secure-port=70000", "--help", "-h", "-", "--=", "---x"}, {"--config=\xff"}, {"-config", "--kubeconfig"}, {"--root-dir=\n", "--feature-values-file"}, {},
	} {
		f.Add(strings.Join(seed, "\x00"))
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\x00")
		flags := newValueFlags(Component{Name: "kubelet", Node: true})
		own, rest := flags.split(args)
		i, j := 0, 0
		for _, arg := range args {
			switch {
			case j < len(rest) && rest[j] == arg:
				j++
			case i < len(own) && own[i] == arg:
				i++
			default:
				t.Fatalf("%q: %q is neither ours (%q) nor the binary's (%q)", args, arg, own, rest)
			}
		}
		if len(own)+len(rest) != len(args) {
			t.Fatalf("%q: ours are %q, the binary's %q", args, own, rest)
		}
		if at := slices.Index(args, "--"); at >= 0 && !slices.Contains(rest, "--") && !slices.Contains(own, "--") {
			t.Fatalf("%q: the end of the flags is lost", args)
		}
		if err := flags.Parse(own); err != nil && err.Error() == "" {
			t.Fatal("an error without a message")
		}
		if flags.window < 0 || flags.timeout < 0 {
			t.Fatalf("%q: a negative duration is accepted", args)
		}
		a := parseArguments(args)
		if a.securePort != "" && strings.Trim(a.securePort, "0123456789") == "" && len(a.securePort) < 6 || a.securePort == "" {
			if instance, err := a.instance(); err != nil || validation.IsDNS1123Subdomain(instance) != nil {
				t.Fatalf("%q: the instance is %q, %v", args, instance, err)
			}
		}
	})
}

// FuzzInstanceOf makes an instance's name of any host's.
func FuzzInstanceOf(f *testing.F) {
	foundInstanceOf(f)
	for _, seed := range []string{"host", "my_host.example", "Host-.x", "a..b", "-", ".", "ä", strings.Repeat("a", 64), strings.Repeat("a.", 200), "a\x00b", "1", "-a-._-b-"} {
		f.Add(seed, "6443")
	}
	f.Fuzz(func(t *testing.T, host, port string) {
		if strings.Trim(port, "0123456789") != "" || len(port) > 5 {
			return
		}
		if instance := instanceOf(host, port); validation.IsDNS1123Subdomain(instance) != nil {
			t.Fatalf("host %q and port %q give the instance %q", host, port, instance)
		}
	})
}

// FuzzConfigFile reads any file as a component's configuration.
func FuzzConfigFile(f *testing.F) {
	foundConfigFile(f)
	for _, seed := range []string{"", "clientConnection: {kubeconfig: /a}\nhostnameOverride: n\n", "clientConnection: 7", "[", "a: &a [*a]", "hostnameOverride: {}", "\xff", `{"clientConnection":null}`, "--- 1\n--- 2"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		a := parseArguments([]string{"--config=" + file})
		config, err := a.readConfig()
		switch {
		case err != nil && !strings.Contains(err.Error(), file):
			t.Fatalf("the message does not name the file: %v", err)
		case err == nil && config == nil:
			t.Fatal("nothing is read")
		}
		if node, err := a.node("kube-proxy"); err != nil || node != strings.ToLower(strings.TrimSpace(node)) {
			t.Fatalf("the node is %q, %v", node, err)
		}
	})
}
