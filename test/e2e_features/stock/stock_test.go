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
	"fmt"
	"os"
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
	gate = "HPAScaleToZero"
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
		ExtraArgs: map[string][]string{localcluster.Kubelet(differing): {"--feature-gates=" + gate + "=true"}},
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

// process is one of "kubectl feature uses -o json".
type process struct {
	Component, Instance, Version, Observed string
	Enabled, Explicit, Differs             bool
	Queried                                *bool
}

// uses are the processes that kubectl shows for a gate.
func uses(t *testing.T, k framework.Kubectl) []process {
	t.Helper()
	var shown struct{ Processes []process }
	output := k.Output(t, "feature", "uses", gate, "-o", "json")
	if err := json.Unmarshal([]byte(output), &shown); err != nil {
		t.Fatalf("kubectl feature uses: %v\n%s", err, output)
	}
	return shown.Processes
}

// TestStock: the node whose kubelet differs is named, and each process has its version, its
// value, and where both were observed.
func TestStock(t *testing.T) {
	c := start(t)
	k := c.Kubectl("")
	framework.Eventually(t, "all kubelets to be observed", func() error {
		found := map[string]bool{}
		for _, p := range uses(t, k) {
			found[p.Instance] = true
		}
		for node := range kubelets {
			if !found[node] {
				return fmt.Errorf("%s is missing among %v", node, found)
			}
		}
		return nil
	})
	servers := 0
	for _, p := range uses(t, k) {
		if p.Queried != nil || p.Observed == "" {
			t.Errorf("%+v: that it queries the gate cannot be observed, and its source is to be shown", p)
		}
		if p.Component == localcluster.APIServer {
			servers++
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
	if servers != 2 {
		t.Errorf("%d kube-apiservers were observed, want 2", servers)
	}
	checkShown(t, k)
	t.Run("viewer", func(t *testing.T) { checkViewer(t, c) })
}

// checkShown covers the other commands that read.
func checkShown(t *testing.T, k framework.Kubectl) {
	t.Helper()
	for command, texts := range map[string][]string{
		"list --mismatched -o name": {"feature.features.k8s.io/" + gate},
		"describe " + gate:          {"Stage:", "kubelet/" + differing, "UsersDiffer"},
		"uses " + gate:              {"OBSERVED BY", "its metrics"},
		"report":                    {"kubelet/" + differing, framework.UpstreamVersion},
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
	framework.Eventually(t, "what the viewer may see", func() error {
		var shown struct {
			Processes []process
			Unknown   []string
		}
		output, complaint := c.Kubectl(viewer).Run(t, "feature", "uses", gate, "-o", "json")
		if complaint != "" {
			return fmt.Errorf("%s", complaint)
		}
		if err := json.Unmarshal([]byte(output), &shown); err != nil {
			return err
		}
		unknown := strings.Join(shown.Unknown, "\n")
		if !strings.Contains(unknown, "permission to get nodes/proxy") || !strings.Contains(unknown, "permission to list pods in the namespace kube-system") {
			return fmt.Errorf("not named as missing are nodes/proxy and pods:\n%s", unknown)
		}
		for _, p := range shown.Processes {
			if p.Component != localcluster.APIServer {
				return fmt.Errorf("%+v may not be seen", p)
			}
		}
		return nil
	})
}
