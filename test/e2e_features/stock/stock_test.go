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

package stock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

func TestMain(m *testing.M) { os.Exit(framework.Isolate(m)) }

const (
	// gate is off by default in all these versions.
	gate = "ContainerStopSignals"
	// ofServers is off by default, and on in the second server.
	ofServers = "GenericWorkload"
	// reach has servers reach kubelets by the addresses of nodes: there is no name service.
	reach = "--kubelet-preferred-address-types=InternalIP"
	// differing is the node that has it on.
	differing = "node-2"
	viewer    = "viewer"
)

// kubelets has the nodes with the minor version of their kubelets; "" is the version of the
// servers.
var kubelets = map[string]string{"node-1": "", differing: "1.36", "node-3": "1.35"}

// start starts upstream's servers, and kubelets on fake container runtimes.
func start(t *testing.T) *framework.Cluster {
	t.Helper()
	second := localcluster.Nth(localcluster.APIServer, 2)
	config := localcluster.Config{
		Nodes: len(kubelets), RealNodes: true, NodeIP: framework.NodeIP(), Servers: 2,
		Only: []string{localcluster.Etcd, localcluster.APIServer, second},
		Binaries: map[string]string{
			localcluster.APIServer: framework.Upstream(t, "kube-apiserver"), second: framework.Upstream(t, "kube-apiserver"),
		},
		ExtraArgs: map[string][]string{
			localcluster.Kubelet(differing): {"--feature-gates=" + gate + "=true"},
			second:                          {reach, "--feature-gates=" + ofServers + "=true"},
			localcluster.APIServer:          {reach},
		},
	}
	for node, minor := range kubelets {
		config.Only = append(config.Only, localcluster.Runtime(node), localcluster.Kubelet(node))
		binary := framework.Upstream(t, "kubelet")
		if minor != "" {
			binary = framework.OlderKubelet(t, minor)
		}
		config.Binaries[localcluster.Kubelet(node)] = binary
	}
	return framework.Start(t, config)
}

// servers are the minor versions of older servers.
var servers = []string{"1.36", "1.35"}

// TestOlderServers: clusters of older versions, whose metrics, APIs and gates differ, are
// shown, too.
func TestOlderServers(t *testing.T) {
	for _, minor := range servers {
		t.Run(minor, func(t *testing.T) {
			c := framework.Start(t, localcluster.Config{
				Only:         []string{localcluster.Etcd, localcluster.APIServer},
				Binaries:     map[string]string{localcluster.APIServer: framework.OlderServer(t, minor)},
				FeatureGates: tolerance + "=true",
				ExtraArgs:    map[string][]string{localcluster.APIServer: {"--feature-gates=" + gate + "=true"}},
			})
			k := c.Kubectl("")
			var list v1alpha1.FeatureList
			if err := json.Unmarshal([]byte(k.Output(t, "feature", "list", "-o", "json")), &list); err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(list.Items, func(f v1alpha1.Feature) bool { return f.Name == gate })
			if at < 0 || list.Items[at].Status.Configured == nil || !list.Items[at].Status.Configured.Value || list.Items[at].Status.Stage != v1alpha1.StageAlpha || len(list.Items) < 100 {
				t.Errorf("%d gates were observed, and %s is %d of them; want it on, and Alpha: %+v", len(list.Items), gate, at, list.Items)
			}
			if output := k.Output(t, "feature", "list", "--in-use"); !strings.Contains(output, gate) || !strings.Contains(output, "IN USE") {
				t.Errorf("what uses %s is not counted:\n%s", gate, output)
			}
			if output, complaint := k.Run(t, "feature", "leftovers"); !strings.Contains(complaint, "gates that are on") || strings.Contains(complaint, "exit status 3") {
				t.Errorf("leftovers: %s\n%s", complaint, output)
			}
			if output, complaint := k.Run(t, "feature", "leftovers", gate); !strings.Contains(complaint, "it is on in kube-apiserver/") {
				t.Errorf("leftovers of a gate that is on: %s\n%s", complaint, output)
			}
			checkOlderLeftovers(t, c)
		})
	}
}

// process is one of "kubectl feature uses -o json".
type process struct {
	Component, Instance, Version, Observed string
	Enabled, Explicit, Differs             bool
	Queried                                *bool
}

// shown is what kubectl shows of a gate.
type shown struct {
	Processes []process
	Unknown   []string
}

func uses(t *testing.T, k framework.Kubectl) (s shown, err error) {
	t.Helper()
	output, complaint := k.Run(t, "feature", "uses", gate, "-o", "json")
	if complaint != "" {
		return s, errors.New(complaint)
	}
	return s, json.Unmarshal([]byte(output), &s)
}

// TestStock: the node whose kubelet differs is named, and each process has its version, its
// value, and where both were observed.
func TestStock(t *testing.T) {
	c := start(t)
	k := c.Kubectl("")
	var s shown
	framework.Eventually(t, "all kubelets to be observed", func() (err error) {
		if s, err = uses(t, k); err != nil {
			return err
		}
		for node := range kubelets {
			if !slices.ContainsFunc(s.Processes, func(p process) bool { return p.Instance == node }) {
				return fmt.Errorf("%s is missing: %+v", node, s)
			}
		}
		return nil
	})
	observedServers := 0
	for _, p := range s.Processes {
		if p.Queried != nil || p.Observed == "" {
			t.Errorf("%+v: that it queries the gate cannot be observed, and its source is to be shown", p)
		}
		if p.Component == localcluster.APIServer {
			observedServers++
			continue
		}
		want := p.Instance == differing
		if p.Enabled != want || p.Differs != want || p.Explicit != want {
			t.Errorf("%+v: want that the gate is on and set on %s alone", p, differing)
		}
		if minor := kubelets[p.Instance]; !strings.HasPrefix(p.Version, "v"+minor) {
			t.Errorf("%+v: want the version %s", p, minor)
		}
	}
	// The administrator's address leads to the first server, and the second has a Lease.
	if observedServers != 1 || !strings.Contains(strings.Join(s.Unknown, "\n"), "1 of 2 did not answer") {
		t.Errorf("%d kube-apiservers were observed, want 1, and that another one did not answer among %q", observedServers, s.Unknown)
	}
	t.Run("balancer", func(t *testing.T) { checkBalancer(t, c) })
	checkShown(t, k)
	t.Run("viewer", func(t *testing.T) { checkViewer(t, c) })
	t.Run("leftovers", func(t *testing.T) { checkLeftovers(t, c) })
}

// checkShown covers the other commands that read.
func checkShown(t *testing.T, k framework.Kubectl) {
	t.Helper()
	for command, texts := range map[string][]string{
		"list --mismatched -o name": {"feature.features.k8s.io/" + gate},
		"describe " + gate:          {"Stage:", "kubelet/" + differing, "UsersDiffer"},
		"uses " + gate:              {"OBSERVED BY", "its metrics"},
		"report":                    {"kubelet/" + differing, framework.UpstreamVersion},
		"report -o html":            {"<!DOCTYPE html>", gate, "kubelet/" + differing},
	} {
		output := k.Output(t, append([]string{"feature"}, strings.Fields(command)...)...)
		for _, text := range texts {
			if !strings.Contains(output, text) {
				t.Errorf("kubectl feature %s does not show %q:\n%s", command, text, output)
			}
		}
	}
	var list v1alpha1.FeatureList
	if err := json.Unmarshal([]byte(k.Output(t, "feature", "list", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	for _, f := range list.Items {
		if f.Name == gate && (f.Status.State != "" || f.Status.Configured == nil || f.Status.Configured.Value) {
			t.Errorf("%s is %+v, want no state, and off in kube-apiserver", gate, f.Status)
		}
	}
	if len(list.Items) < 100 {
		t.Errorf("%d gates were observed", len(list.Items))
	}
}

// checkBalancer: through an address behind which each connection leads to the next server,
// both are observed, and a gate that differs is named.
func checkBalancer(t *testing.T, c *framework.Cluster) {
	t.Helper()
	k := c.Kubectl("")
	output := k.Output(t, "feature", "describe", ofServers, "--server="+balanced(t, c))
	for _, text := range []string{"ServersDisagree", "on in server", "off in server"} {
		if !strings.Contains(output, text) {
			t.Errorf("kubectl feature describe %s through a balancer does not show %q:\n%s", ofServers, text, output)
		}
	}
	saved := filepath.Join(t.TempDir(), "first.json")
	if err := os.WriteFile(saved, []byte(k.Output(t, "feature", "list", "-o", "json")), 0o600); err != nil {
		t.Fatal(err)
	}
	second := c.Server(localcluster.Nth(localcluster.APIServer, 2))
	if output, complaint := k.Run(t, "feature", "diff", saved, "--server="+second, "-o", "name"); strings.TrimSpace(output) != "feature.features.k8s.io/"+ofServers || !strings.Contains(complaint, "exit status 1") {
		t.Errorf("kubectl feature diff of both servers names %q, want %s alone: %s", output, ofServers, complaint)
	}
}

// balanced is an address that leads to both servers until the test ends.
func balanced(t *testing.T, c *framework.Cluster) string {
	t.Helper()
	balancer, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = balancer.Close() })
	var servers []string
	for i := range 2 {
		servers = append(servers, strings.TrimPrefix(c.Server(localcluster.Nth(localcluster.APIServer, i+1)), "https://"))
	}
	go balance(balancer, servers)
	return "https://" + balancer.Addr().String()
}

// balance forwards connections to servers, one after the other.
func balance(listener net.Listener, servers []string) {
	for i := 0; ; i++ {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", servers[i%len(servers)])
		if err != nil {
			_ = client.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
			go func() {
				_, _ = io.Copy(pair[0], pair[1])
				_ = pair[0].Close()
			}()
		}
	}
}

// checkViewer: a user who may list Nodes, and nothing of their kubelets, is told what is
// missing, and shown the servers that may be asked.
func checkViewer(t *testing.T, c *framework.Cluster) {
	t.Helper()
	for name, rules := range map[string][]rbacv1.PolicyRule{
		"nodes":   {{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}},
		"metrics": {{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	} {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: viewer + "-" + name}, Rules: rules}
		if _, err := c.Kube.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: viewer}},
		}
		if _, err := c.Kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	k := c.Kubectl(viewer)
	framework.Eventually(t, "what the viewer may see", func() error {
		s, err := uses(t, k)
		if err != nil {
			return err
		}
		unknown := strings.Join(s.Unknown, "\n")
		if !strings.Contains(unknown, "permission to get nodes/proxy") || !strings.Contains(unknown, "permission to list pods in the namespace kube-system") {
			return fmt.Errorf("not named as missing are nodes/proxy and pods:\n%s", unknown)
		}
		for _, p := range s.Processes {
			if p.Component != localcluster.APIServer {
				return fmt.Errorf("%+v may not be seen", p)
			}
		}
		return nil
	})
}
