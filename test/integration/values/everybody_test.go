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

package values

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/cmd/local-up/cluster"
	"k8s.io/kubernetes-features/test/integration/framework"
	"k8s.io/utils/ptr"
)

// kubeletFeature is on by default; a kubelet asks for it when it starts, and says
// in its Node's status that it has it.
const kubeletFeature = "RestartAllContainersOnContainerExits"

// TestFlagsOfTheServerReachEverybody: what --central-features and --feature-gates
// of kube-apiserver say, and later spec.enabled, is used by the controller manager,
// the scheduler, a kubelet and a kube-proxy. The server flow writes all of it.
func TestFlagsOfTheServerReachEverybody(t *testing.T) {
	t.Parallel()
	// Only the controller manager asks for flipped, once there is a StatefulSet.
	const flipped = "MaxUnavailableStatefulSet"
	asks := map[string]string{"kube-controller-manager": managerFeature, "kube-scheduler": schedulerFeature, "kubelet": kubeletFeature}
	names := []string{cluster.ControllerManager, cluster.Scheduler, cluster.Kubelet("node-1"), cluster.Proxy("node-1")}
	central := []string{managerFeature, schedulerFeature, kubeletFeature}
	// The machine may be busy for longer than a node waits.
	node := []string{"--feature-values-timeout=" + framework.Patience.String()}
	c := framework.Start(t, cluster.Config{Nodes: 1, ExtraArgs: map[string][]string{
		cluster.APIServer: {
			"--central-features=" + strings.Join(central, ","), "--feature-gates=" + strings.Join(central, "=false,") + "=false",
			"--dynamic-features=" + flipped, "--feature-settle-period=1s",
		},
		cluster.Kubelet("node-1"): node, cluster.Proxy("node-1"): node,
	}})

	// At the start: each says so in its log, each that asks in its report.
	for _, name := range names {
		for _, feature := range central {
			waitLogged(t, c, name, inEffect(feature, "false")...)
		}
		waitLogged(t, c, name, inEffect(flipped, "false")...)
	}
	c.WaitForReports("in which each component has the central value that it asks for", func(reports []v1alpha1.FeatureReport) bool {
		for component, feature := range asks {
			if f := found(reports, component, feature); f == nil || f.Enabled || f.Explicit || !f.Asked {
				return false
			}
		}
		return true
	})
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

	// While they run: by a request alone.
	if _, err := c.Kube.AppsV1().StatefulSets(metav1.NamespaceDefault).Create(t.Context(), statefulSet(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	reported := func(on bool) func([]v1alpha1.FeatureReport) bool {
		return func(reports []v1alpha1.FeatureReport) bool {
			f := found(reports, "kube-controller-manager", flipped)
			return f != nil && f.Enabled == on
		}
	}
	c.WaitForReports("in which the controller manager has asked for "+flipped, reported(false))
	begun := time.Now()
	if err := patch(t, c, flipped, `{"enabled":true}`); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		waitLogged(t, c, name, inEffect(flipped, "true")...)
		t.Logf("%s has %s=true at most %s after the request", name, flipped, time.Since(begun).Round(time.Millisecond))
	}
	c.WaitForReports("in which the controller manager has "+flipped, reported(true))
	c.WaitForFeature(flipped, "On", func(f *v1alpha1.Feature) bool {
		return f.Status.State == v1alpha1.StateOn && f.Status.Configured.Source == v1alpha1.SourceAPI
	})
}

// waitLogged waits until one line of a component's log has all parts.
func waitLogged(t *testing.T, c *framework.Cluster, name string, parts ...string) {
	t.Helper()
	framework.WaitFor(t, name+" to say "+strings.Join(parts, " … "), func() bool {
		for line := range strings.Lines(c.Log(name, 100_000)) {
			if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
				return true
			}
		}
		return false
	})
}
