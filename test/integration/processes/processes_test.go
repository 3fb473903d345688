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

package processes

import (
	"os"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes-features/cmd/local-up/cluster"
	"k8s.io/kubernetes-features/test/integration/framework"
)

func TestMain(m *testing.M) { os.Exit(framework.Isolate(m)) }

// TestEveryProcessReports starts three servers, two controller managers, two
// schedulers, and two nodes with the real kubelet and the real kube-proxy.
func TestEveryProcessReports(t *testing.T) {
	c := framework.Start(t, cluster.Config{Nodes: 2, RealNodes: true, NodeIP: framework.NodeIP(), Servers: 3, Replicas: 2})
	reports, err := c.Features.FeaturesV1alpha1().FeatureReports(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range reports.Items {
		names = append(names, r.Name)
		t.Logf("%s %s %s %v %d %s", r.Name, r.Spec.BinaryVersion, r.Spec.NodeName, r.Spec.Liveness.Lease, len(r.Spec.Features), r.Spec.Username)
	}
	slices.Sort(names)
	data, _ := os.ReadFile(c.Processes()[9].LogFile)
	os.WriteFile("/tmp/kubelet.log", data, 0o644)
	for _, p := range c.Processes() {
		t.Log(p.Name)
	}
	t.Log(names)
}
