//go:build linux

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

// Package readers asks a real cluster what others read of it: whether a feature is
// on everywhere, by a chart and by an operator, metrics, and all that
// people see with plain kubectl.
package readers

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/examples/everywhere"
	"k8s.io/kubernetes-features/cmd/local-up/cluster"
	"k8s.io/kubernetes-features/test/integration/framework"
)

// name is the feature that the example chart asks for.
const name = "MaxUnavailableStatefulSet"

// TestReaders turns a feature on and off under the eyes of those who read it.
func TestReaders(t *testing.T) {
	t.Parallel()
	c := framework.Start(t, cluster.Config{
		FeatureGates: name + "=true", Only: []string{cluster.Etcd, cluster.APIServer},
		ExtraArgs: map[string][]string{cluster.APIServer: {"--feature-settle-period=5s"}},
	})
	atRest(c, v1alpha1.StateOn)
	t.Run("on", func(t *testing.T) { ask(t, c, true) })
	t.Run("metrics", func(t *testing.T) { metrics(t, c) })
	t.Run("kubectl", func(t *testing.T) { plainKubectl(t, c) })
	t.Run("kubectl feature", func(t *testing.T) { plugin(t, c) })
	off := name + "=false"
	if err := c.Restart(t.Context(), &off, cluster.APIServer); err != nil {
		t.Fatalf("restarting with the gate off: %v", err)
	}
	t.Run("kubectl wait", func(t *testing.T) { waitForOff(t, c) })
	atRest(c, v1alpha1.StateOff)
	t.Run("off", func(t *testing.T) { ask(t, c, false) })
}

// atRest waits until a state is reached and something is known of the users.
func atRest(c *framework.Cluster, state v1alpha1.FeatureState) {
	c.WaitForFeature(name, string(state), func(f *v1alpha1.Feature) bool {
		return f.Status.State == state && meta.IsStatusConditionTrue(f.Status.Conditions, v1alpha1.ConditionUsesMatch)
	})
}

// somebody writes a kubeconfig of a user who is authenticated and has no other
// permission.
func somebody(t *testing.T, c *framework.Cluster) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.Kubeconfig("admin"))
	if err == nil {
		err = clientcmd.ResolveLocalPaths(config)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range config.AuthInfos {
		info.Impersonate, info.ImpersonateGroups = "somebody", []string{user.AllAuthenticated}
	}
	file := filepath.Join(t.TempDir(), "somebody.kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// ask asks as somebody who is authenticated and has no other permission, in Go and
// in a chart. The chart's engine is a module of its own, and so a process.
func ask(t *testing.T, c *framework.Cluster, want bool) {
	kubeconfig := somebody(t, c)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kube.CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("who asks may list pods, too: %v", err)
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	on, why, err := everywhere.Ask(t.Context(), client, metav1.NamespaceSystem, name)
	if err != nil || on != want {
		t.Errorf("the Go package says %t, %q, %v, want %t", on, why, err, want)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-run", "^TestOnACluster$", ".")
	cmd.Dir = filepath.Join("..", "..", "helm")
	cmd.Env = append(os.Environ(), "GOWORK=off", "FEATURES_KUBECONFIG="+kubeconfig, map[bool]string{true: "FEATURES_WANT=true", false: "FEATURES_WANT=false"}[want])
	output, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "--- PASS: TestOnACluster") {
		t.Errorf("the chart, want %t: %v\n%s", want, err, output)
	}
}

var (
	family = regexp.MustCompile(`(?m)^# TYPE (feature_lifecycle_[a-z_]+) `)
	listed = regexp.MustCompile("(?m)^\\| `(feature_lifecycle_[a-z_]+)` \\|")
)

// metrics looks whether a server shows what docs/metrics.md says, and no more.
func metrics(t *testing.T, c *framework.Cluster) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, match := range listed.FindAllSubmatch(data, -1) {
		documented[string(match[1])] = true
	}
	var shown string
	framework.WaitFor(t, "metrics of a server that looks at features", func() bool {
		data, err := c.Kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
		shown = string(data)
		return err == nil && strings.Contains(shown, "\nfeature_lifecycle_running{namespace=\"kube-system\"} 1\n") &&
			strings.Contains(shown, "\nfeature_lifecycle_state{feature=\""+name+"\",namespace=\"kube-system\",state=\"On\"} 1\n")
	})
	seen := map[string]bool{}
	for _, match := range family.FindAllStringSubmatch(shown, -1) {
		seen[match[1]] = true
		if !documented[match[1]] {
			t.Errorf("docs/metrics.md does not have %s", match[1])
		}
	}
	for _, metric := range []string{"leader", "reports", "uses", "report_requests_total"} {
		if !seen["feature_lifecycle_"+metric] {
			t.Errorf("the server does not show feature_lifecycle_%s", metric)
		}
	}
}
