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
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigOf writes a kubeconfig with credentials.
func kubeconfigOf(t *testing.T, credentials clientcmdapi.AuthInfo) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://server"}
	config.AuthInfos["u"] = &credentials
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "c"
	data, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "kubeconfig", string(data))
}

// TestRotatingKubeletUsesCertificateInCertDir checks that it does not use the one in
// its kubeconfig, which may be an administrator's and expired.
func TestRotatingKubeletUsesCertificateInCertDir(t *testing.T) {
	rotating := write(t, "config", "rotateCertificates: true\n")
	dropIns := func(t *testing.T, files map[string]string) string {
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	on, off := "rotateCertificates: true", "rotateCertificates: false"
	for name, tc := range map[string]struct {
		component string
		args      []string
		want      bool
	}{
		"by its configuration":        {"kubelet", []string{"--config=" + rotating}, true},
		"by its flag":                 {"kubelet", []string{"--rotate-certificates"}, true},
		"by its flag with underscore": {"kubelet", []string{"--rotate_certificates=true"}, true},
		"by the last file":            {"kubelet", []string{"--config-dir=" + dropIns(t, map[string]string{"1.conf": off, "2.conf": on, "3.conf": "port: 1", "4.yaml": off})}, true},
		"not by its flag":             {"kubelet", []string{"--config=" + rotating, "--rotate-certificates=false"}, false},
		"not by the last file":        {"kubelet", []string{"--config=" + rotating, "--config-dir=" + dropIns(t, map[string]string{"1.conf": on, "2.conf": off})}, false},
		"not by default":              {"kubelet", nil, false},
		"not a hollow node":           {"kubelet", []string{"--config=" + rotating, "--morph=kubelet"}, false},
		"not another component":       {"kube-proxy", []string{"--rotate-certificates", "--config=" + write(t, "config", "clientConnection: {kubeconfig: "+kubeconfigOf(t, clientcmdapi.AuthInfo{Token: "t"})+"}")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a := parseArguments(append(tc.args, "--cert-dir="+dir, "--kubeconfig="+kubeconfigOf(t, clientcmdapi.AuthInfo{Token: "t"})))
			got, err := a.clientConfig(tc.component)
			if err != nil || got.BearerToken != "t" {
				t.Fatalf("before there is a certificate: %+v, %v", got, err)
			}
			switch err := a.awaitsCertificate(tc.component, got); {
			case (err != nil) != tc.want:
				t.Errorf("it waits for a certificate: %v", err)
			case err != nil && !strings.Contains(err.Error(), dir):
				t.Errorf("the message does not say where: %v", err)
			}
			if a.hasFirstCredentials(tc.component) != tc.want {
				t.Errorf("it has its first credentials: %t", !tc.want)
			}
			file := filepath.Join(dir, currentCertificate)
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err = a.clientConfig(tc.component)
			if err != nil || (got.CertFile == file && got.KeyFile == file && got.BearerToken == "") != tc.want || got.Host != "https://server" {
				t.Errorf("once there is a certificate: %+v, %v", got, err)
			}
			if err := a.awaitsCertificate(tc.component, got); err != nil || a.hasFirstCredentials(tc.component) {
				t.Errorf("it still waits: %v", err)
			}
		})
	}
}

// TestKubeletThatStartsTheServerDoesNotWaitForIt: nothing else may answer until it runs.
func TestKubeletThatStartsTheServerDoesNotWaitForIt(t *testing.T) {
	manifest := func(name, command string) string {
		return "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: " + name + "\n    command: [" + command + ", --v=2]\n"
	}
	pods := func(files map[string]string) string {
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	etcd, server := manifest("etcd", "etcd"), manifest("kube-apiserver", "kube-apiserver")
	controlPlane := pods(map[string]string{"etcd.yaml": etcd, "kube-apiserver.yaml": server})
	config := write(t, "config", "staticPodPath: "+controlPlane+"\n")
	for name, tc := range map[string]struct {
		component string
		args      []string
		want      time.Duration
	}{
		"by its configuration":           {"kubelet", []string{"--config=" + config}, 0},
		"by its flag":                    {"kubelet", []string{"--pod-manifest-path=" + controlPlane}, 0},
		"by its flag, one file":          {"kubelet", []string{"--pod-manifest-path=" + filepath.Join(controlPlane, "kube-apiserver.yaml")}, 0},
		"a container of another name":    {"kubelet", []string{"--pod-manifest-path=" + pods(map[string]string{"a.yaml": manifest("main", "/usr/bin/kube-apiserver")})}, 0},
		"JSON beside what is no pod":     {"kubelet", []string{"--pod-manifest-path=" + pods(map[string]string{"a": "no: [pod", "b": `{"spec":{"containers":[{"name":"kube-apiserver"}]}}`})}, 0},
		"but for as long as it is told":  {"kubelet", []string{"--config=" + config, "--feature-values-timeout=7s"}, 7 * time.Second},
		"but without static pods":        {"kubelet", nil, 5 * time.Second},
		"but for other static pods":      {"kubelet", []string{"--pod-manifest-path=" + pods(map[string]string{"etcd.yaml": etcd})}, 5 * time.Second},
		"but with another flag":          {"kubelet", []string{"--config=" + config, "--pod-manifest-path="}, 5 * time.Second},
		"but for a file that it ignores": {"kubelet", []string{"--pod-manifest-path=" + pods(map[string]string{".kube-apiserver.yaml": server})}, 5 * time.Second},
		"but without its files":          {"kubelet", []string{"--config=" + filepath.Join(controlPlane, "none")}, 5 * time.Second},
		"but as a hollow node":           {"kubelet", []string{"--config=" + config, "--morph=kubelet"}, 5 * time.Second},
		"but kube-proxy":                 {"kube-proxy", []string{"--config=" + config}, 5 * time.Second},
	} {
		component := Component{Name: tc.component, Node: true}
		p := &process{component: component, flags: newValueFlags(component), arguments: parseArguments(tc.args)}
		own, _ := p.flags.split(tc.args)
		if err := p.flags.Parse(own); err != nil {
			t.Fatal(err)
		}
		if got := p.loadTimeout(); got != tc.want {
			t.Errorf("%s: it waits for %s, want %s", name, got, tc.want)
		}
	}
}

// TestCertificateFilesAreUsedImmediately covers a bootstrapped kubelet, whose
// kubeconfig names the file that it keeps.
func TestCertificateFilesAreUsedImmediately(t *testing.T) {
	own := write(t, "own.pem", "")
	a := parseArguments([]string{"--rotate-certificates", "--cert-dir=" + t.TempDir(), "--kubeconfig=" + kubeconfigOf(t, clientcmdapi.AuthInfo{ClientCertificate: own, ClientKey: own})})
	got, err := a.clientConfig("kubelet")
	if err == nil {
		err = a.awaitsCertificate("kubelet", got)
	}
	if err != nil || got.CertFile != own {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestKubeletWithUnreadableConfiguration(t *testing.T) {
	own := kubeconfigOf(t, clientcmdapi.AuthInfo{})
	for _, arg := range []string{"--config=/nonexistent", "--config=" + write(t, "config", "{"), "--config-dir=/nonexistent"} {
		if _, err := parseArguments([]string{"--kubeconfig=" + own, arg}).clientConfig("kubelet"); err == nil {
			t.Errorf("%s: no error", arg)
		}
	}
}
