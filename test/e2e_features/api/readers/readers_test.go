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
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// name is the feature that the example chart asks for.
const name = "MaxUnavailableStatefulSet"

// TestReaders turns a feature on and off under the eyes of those who read it.
func TestReaders(t *testing.T) {
	t.Parallel()
	chart := buildChart(t)
	c := framework.Start(t, localcluster.Config{
		FeatureGates: name + "=true", Only: []string{localcluster.Etcd, localcluster.APIServer},
		ExtraArgs: map[string][]string{localcluster.APIServer: {"--feature-settle-period=5s"}},
	})
	atRest(c, v1alpha1.StateOn)
	t.Run("on", func(t *testing.T) { ask(t, c, chart, true) })
	t.Run("metrics", func(t *testing.T) { metrics(t, c) })
	t.Run("kubectl", func(t *testing.T) { plainKubectl(t, c) })
	c.MustRestartWith(name+"=false", localcluster.APIServer)
	t.Run("kubectl wait", func(t *testing.T) { waitForOff(t, c) })
	atRest(c, v1alpha1.StateOff)
	t.Run("off", func(t *testing.T) { ask(t, c, chart, false) })
}

// atRest waits until a state is reached and something is known of the users.
func atRest(c *framework.Cluster, state v1alpha1.FeatureState) {
	c.WaitForFeature(name, string(state), func(f *v1alpha1.Feature) bool {
		return f.Status.State == state && meta.IsStatusConditionTrue(f.Status.Conditions, v1alpha1.ConditionUsesMatch)
	})
}

// buildChart builds the test of the chart, whose engine is a module of its own, and
// returns the binary.
func buildChart(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "chart.test")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-o", binary, ".")
	cmd.Dir = chartDir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the test of the chart: %v\n%s", err, output)
	}
	return binary
}

// chartDir has the module.
var chartDir = filepath.Join("..", "..", "..", "external", "helm")

// ask reads as an authenticated user without other permissions, in Go and in a
// chart.
func ask(t *testing.T, c *framework.Cluster, chart string, want bool) {
	kubeconfig := c.Kubectl("stranger", user.AllAuthenticated).Kubeconfig
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
	cmd := exec.CommandContext(t.Context(), chart, "-test.v", "-test.run", "^TestOnACluster$")
	cmd.Dir = chartDir
	cmd.Env = append(os.Environ(), "FEATURES_KUBECONFIG="+kubeconfig, map[bool]string{true: "FEATURES_WANT=true", false: "FEATURES_WANT=false"}[want])
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
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, match := range listed.FindAllSubmatch(data, -1) {
		documented[string(match[1])] = true
	}
	shown := c.WaitForMetrics(`feature_lifecycle_running{namespace="kube-system"} 1`,
		`feature_lifecycle_state{feature="`+name+`",namespace="kube-system",state="On"} 1`)
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
