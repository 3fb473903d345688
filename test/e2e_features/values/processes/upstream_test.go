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

package processes

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/examplegates"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// feature is off by default, and every kubelet would be asked about it.
const feature = examplegates.Dynamic

// TestUpstreamServer runs our components with upstream's kube-apiserver: they
// work, and say once that reporting is off.
func TestUpstreamServer(t *testing.T) {
	t.Parallel()
	c := framework.Start(t, localcluster.Config{
		Nodes: 1, RealNodes: true, NodeIP: framework.NodeIP(),
		Binaries: map[string]string{localcluster.APIServer: framework.Upstream(t, "kube-apiserver")},
	})
	if version := c.Version(); version != framework.UpstreamVersion {
		t.Fatalf("the server is %s", version)
	}
	for _, name := range []string{localcluster.ControllerManager, localcluster.Scheduler, localcluster.Kubelet("node-1"), localcluster.Proxy("node-1")} {
		c.WaitForLog(name, "Not reporting feature gates")
	}
	// The controller manager works: it makes the account that pods need.
	framework.Eventually(t, "a service account", func() error {
		_, err := c.Kube.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	for _, name := range []string{localcluster.ControllerManager, localcluster.Scheduler, localcluster.Kubelet("node-1"), localcluster.Proxy("node-1")} {
		// A kubelet whose certificate is not signed yet says that, too.
		yet := said(t, c, name, "feature gates yet")
		if n := said(t, c, name, "feature gates"); n != 1+yet || yet > 1 {
			t.Errorf("%s speaks of reporting %d times:\n%s", name, n, grep(c.Log(name, 1<<20), "feature gates"))
		}
		if n := said(t, c, name, "feature report"); n != 0 {
			t.Errorf("%s speaks of its report %d times:\n%s", name, n, grep(c.Log(name, 1<<20), "feature report"))
		}
	}
}

// TestUpstreamProcessesNeverAgree runs upstream's components, and one of its
// servers, with ours: what says nothing is expected to, and never agrees.
func TestUpstreamProcessesNeverAgree(t *testing.T) {
	t.Parallel()
	second := localcluster.Nth(localcluster.APIServer, 2)
	binaries := map[string]string{second: framework.Upstream(t, "kube-apiserver")}
	for component, name := range map[string]string{
		localcluster.ControllerManager: "kube-controller-manager", localcluster.Scheduler: "kube-scheduler", localcluster.Kubelet("node-1"): "kubelet", localcluster.Proxy("node-1"): "kube-proxy",
	} {
		binaries[component] = framework.Upstream(t, name)
	}
	c := framework.Start(t, localcluster.Config{Nodes: 1, RealNodes: true, NodeIP: framework.NodeIP(), Servers: 2, Binaries: binaries})
	f := c.WaitForFeature(feature, "without the agreement of those that say nothing", func(f *v1alpha1.Feature) bool {
		matches, consistent := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionUsesMatch), meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionConsistent)
		if f.Status.State != "" && matches == nil {
			return false
		}
		return consistent != nil && consistent.Reason == v1alpha1.ReasonReportMissing && len(f.Status.Uses) > 0 && (matches == nil || matches.Status != metav1.ConditionTrue)
	})
	var rows int
	for _, use := range f.Status.Uses {
		if use.Component == "kubelet" {
			rows++
			if use.Enabled != nil || use.Count != 0 || use.Expected != 1 || use.Version != framework.UpstreamVersion {
				t.Errorf("upstream's kubelet is shown as %+v", use)
			}
		}
	}
	if rows != 1 {
		t.Errorf("upstream's kubelet is in %d rows: %+v", rows, f.Status.Uses)
	}
	for _, r := range c.Reports() {
		if r.Spec.Component != localcluster.APIServer {
			t.Errorf("there is a report of %s", r.Name)
		}
	}
	// Without the silent server the others decide; the kubelet stays unknown.
	if err := c.Kill(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	f = c.WaitForFeature(feature, "decided by our server alone", func(f *v1alpha1.Feature) bool {
		consistent := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionConsistent)
		return consistent != nil && consistent.Status == metav1.ConditionTrue && f.Status.State == v1alpha1.StateOff
	})
	matches := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionUsesMatch)
	if matches == nil || matches.Reason != v1alpha1.ReasonUsersUnknown || !strings.Contains(matches.Message, "kubelet/node-1") {
		t.Errorf("UsesMatch is %+v", matches)
	}
}

// said counts the lines of a component's log that have a text.
func said(t *testing.T, c *framework.Cluster, name, text string) int {
	t.Helper()
	for _, p := range c.Processes() {
		if p.Name == name {
			data, err := os.ReadFile(p.LogFile)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Count(strings.ToLower(string(data)), strings.ToLower(text))
		}
	}
	t.Fatalf("there is no process %s", name)
	return 0
}

func grep(log, text string) string {
	var lines []string
	for line := range strings.SplitSeq(log, "\n") {
		if strings.Contains(strings.ToLower(line), text) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
