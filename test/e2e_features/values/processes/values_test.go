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
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/examplegates"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/utils/ptr"
)

// Features that are on by default, and that a component asks for when it starts. A
// kubelet says in its Node's status that it has its own.
const (
	managerFeature   = "StaleControllerConsistencyJob"
	schedulerFeature = "SchedulerAsyncPreemption"
	kubeletFeature   = "RestartAllContainersOnContainerExits"
)

// asks has them by the component that asks, and central all.
var (
	asks    = map[string]string{"kube-controller-manager": managerFeature, "kube-scheduler": schedulerFeature, "kubelet": kubeletFeature}
	central = []string{managerFeature, schedulerFeature, kubeletFeature}
)

// centralOff are flags of kube-apiserver that turn these features off everywhere.
var centralOff = []string{"--central-features=" + strings.Join(central, ","), "--feature-gates=" + strings.Join(central, "=false,") + "=false"}

// centralReported is true when each component has reported the central value of what it
// asks for.
func centralReported(reports []v1alpha1.FeatureReport) bool {
	for component, feature := range asks {
		if f := framework.Reported(reports, component, feature); f == nil || f.Enabled || f.Explicit || !f.Queried {
			return false
		}
	}
	return true
}

// TestEveryBinaryTakesTheServersValues starts one process of each binary. All report.
// What --central-features and --feature-gates of kube-apiserver say, and later
// spec.enabled, is used by the others. The server flow writes all of it.
func TestEveryBinaryTakesTheServersValues(t *testing.T) {
	t.Parallel()
	// The processes of the control plane query it before they report.
	const dynamic = examplegates.Dynamic
	names := []string{localcluster.ControllerManager, localcluster.Scheduler, localcluster.Kubelet("node-1"), localcluster.Proxy("node-1")}
	// The machine may be busy for longer than a node waits.
	node := []string{"--feature-values-timeout=" + framework.Patience.String()}
	c := framework.Start(t, localcluster.Config{Nodes: 1, RealNodes: true, NodeIP: framework.NodeIP(), Only: []string{localcluster.Etcd, localcluster.APIServer}, ExtraArgs: map[string][]string{
		localcluster.APIServer:         append([]string{"--dynamic-features=" + dynamic, "--feature-settle-period=1s"}, centralOff...),
		localcluster.Kubelet("node-1"): node, localcluster.Proxy("node-1"): node,
	}})
	// A report that comes before its Node is owned by it only with the next one, a minute
	// later.
	if _, err := c.Kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.MustStart(append([]string{localcluster.Runtime("node-1")}, names...)...)
	want := map[string]int{
		"kube-apiserver by system:apiserver": 1, "kube-controller-manager by system:kube-controller-manager": 1, "kube-scheduler by system:kube-scheduler": 1,
		"kubelet on node-1 by system:node:node-1": 1, "kube-proxy on node-1 by system:kube-proxy": 1,
	}
	reports := c.WaitForReports("of every binary, with the owners of those on nodes", func(reports []v1alpha1.FeatureReport) bool {
		return cmp.Equal(want, processes(reports)) && !slices.ContainsFunc(reports, ownerless)
	})
	checkReports(t, c, reports)

	// At the start: each says so in its log. What it has asked for by then is in its
	// report; the rest follows within a minute, for which TestEveryProcessReports waits.
	for _, name := range names {
		for _, feature := range central {
			c.WaitForLog(name, framework.InEffect(feature, false)...)
		}
		c.WaitForLog(name, framework.InEffect(dynamic, false)...)
	}
	n, err := c.Kube.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(n.Status.DeclaredFeatures, kubeletFeature) {
		t.Errorf("the kubelet's code uses its own default of %s: its Node declares %v", kubeletFeature, n.Status.DeclaredFeatures)
	}
	for _, feature := range central {
		c.WaitForFeature(feature, "Off in agreement with all that use it", func(f *v1alpha1.Feature) bool {
			return f.Status.Control == v1alpha1.ControlCentral && f.Status.State == v1alpha1.StateOff && !slices.ContainsFunc(f.Status.Uses, func(u v1alpha1.FeatureUse) bool { return ptr.Deref(u.Enabled, false) })
		})
	}

	// While they run: by a request alone. A changed value is reported at once, with all
	// that was asked for meanwhile: controllers ask when they run.
	framework.Eventually(t, "the controllers to run", func() error {
		_, err := c.Kube.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	for _, on := range []bool{true, false} {
		c.Request(dynamic, fmt.Sprintf(`{"enabled":%t}`, on))
		c.WaitForReports(fmt.Sprintf("in which the control plane has %s=%t, and the central values", dynamic, on), func(reports []v1alpha1.FeatureReport) bool {
			for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
				if f := framework.Reported(reports, component, dynamic); f == nil || f.Enabled != on {
					return false
				}
				if f := framework.Reported(reports, component, asks[component]); !on && asks[component] != "" && (f == nil || f.Enabled || f.Explicit) {
					return false
				}
			}
			return true
		})
		want := map[bool]v1alpha1.FeatureState{true: v1alpha1.StateOn, false: v1alpha1.StateOff}[on]
		c.WaitForFeature(dynamic, string(want), func(f *v1alpha1.Feature) bool {
			return f.Status.State == want && f.Status.Configured.Source == v1alpha1.SourceAPI
		})
		if on {
			for _, name := range names {
				c.WaitForLog(name, framework.InEffect(dynamic, true)...)
			}
		}
	}
}
