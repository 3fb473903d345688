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

// Package upgradecheck asks real servers, through kubectl and the plugin's binary,
// whether they may move.
package upgradecheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/ahead"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/kubernetes/pkg/features"
)

// settle is short: one server alone reports.
const settle = "--feature-settle-period=2s"

// start starts one kube-apiserver and waits until it has looked at all features.
func start(t *testing.T, gates string, args ...string) *framework.Cluster {
	t.Helper()
	c := framework.Start(t, localcluster.Config{
		FeatureGates: gates, Only: []string{localcluster.Etcd, localcluster.APIServer},
		ExtraArgs: map[string][]string{localcluster.APIServer: append([]string{settle}, args...)},
	})
	c.WaitForRest()
	return c
}

// The minor versions between which these tests move: the one that ships, and the one before.
var (
	lower = framework.Minor(framework.PreviousVersion)
	upper = framework.Minor(framework.UpstreamVersion)
)

// TestDown: a server of 1.37 has a gate set that 1.36 does not know, and an autoscaler that
// only 1.37 permits by default.
func TestDown(t *testing.T) {
	t.Parallel()
	const set, used = string(features.StaleControllerConsistencyHPA), string(features.HPAScaleToZero)
	c := start(t, set+"=true")
	autoscalers := c.Kube.AutoscalingV2().HorizontalPodAutoscalers(metav1.NamespaceDefault)
	if _, err := autoscalers.Create(t.Context(), framework.AutoscalerToZero("workers"), metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating an autoscaler with a minimum of 0, which is new in %s: %v", upper, err)
	}
	out, code := c.UpgradeCheck("--to="+lower, "-o=name")
	if want := "feature.features.k8s.io/" + used + "\nfeature.features.k8s.io/" + set + "\n"; out != want || code != 1 {
		t.Errorf("exit code %d, want 1, and what is not safe:\n%swant\n%s", code, out, want)
	}
	out, code = c.UpgradeCheck("--to=" + lower)
	for _, want := range []string{
		"1 horizontalpodautoscalers.autoscaling have spec.minReplicas=0: default/workers", "sets " + set + "=true",
		fmt.Sprintf("Not safe to move from %s to %s: 2 of ", upper, lower),
	} {
		if !strings.Contains(out, want) || code != 1 {
			t.Errorf("exit code %d, want 1 and %q", code, want)
		}
	}
	// Both are put right.
	if err := autoscalers.Delete(t.Context(), "workers", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	unset := ""
	if err := c.Restart(t.Context(), &unset, localcluster.APIServer); err != nil {
		t.Fatalf("restarting without the gate: %v", err)
	}
	framework.WaitFor(t, "the server's report without the gate", func() bool {
		return !slices.ContainsFunc(c.Reports(), func(r v1alpha1.FeatureReport) bool {
			return slices.ContainsFunc(r.Spec.Features, func(f v1alpha1.ReportedFeature) bool { return f.Name == set && f.Explicit })
		})
	})
	if out, code = c.UpgradeCheck("--to=" + lower); code != 0 || !strings.Contains(out, fmt.Sprintf("Safe to move from %s to %s: all ", upper, lower)) {
		t.Errorf("exit code %d, want 0 once both are put right", code)
	}
	beyondThisBuild(t, c)
}

// beyondThisBuild checks the answers for the next minor version, of which this build may have
// a list of gates, and for the one after that.
func beyondThisBuild(t *testing.T, c *framework.Cluster) {
	t.Helper()
	next := utilversion.MustParse(upper).AddMinor(1)
	release, err := ahead.Next()
	if err != nil {
		t.Fatal(err)
	}
	wantCode, want := 3, "use kubectl-feature of "+next.String()
	if release.Minor().EqualTo(next) {
		wantCode, want = 2, "by the gates of "+release.Version()
	}
	if out, code := c.UpgradeCheck("--to=" + next.String()); code != wantCode || !strings.Contains(out, want) {
		t.Errorf("to %s: exit code %d, want %d and %q", next, code, wantCode, want)
	}
	after := next.AddMinor(1)
	if out, code := c.UpgradeCheck("--to=" + after.String()); code != 3 || !strings.Contains(out, "use kubectl-feature of "+after.String()) {
		t.Errorf("to %s: exit code %d, want 3 and the plugin that knows the version", after, code)
	}
}

// TestAMoveByEmulation: a server that emulates 1.36 may go up, and its binary may be
// replaced by that of 1.36. It goes up: what 1.36 stored and 1.37 cannot decode is gone,
// and every feature is at rest in the form of 1.37.
func TestAMoveByEmulation(t *testing.T) {
	t.Parallel()
	// The version of the API is the one in which the lower version stores Workloads.
	const gate, stored = string(features.GenericWorkload), "scheduling.k8s.io/v1alpha2"
	c := start(t, "", "--emulated-version="+lower)
	for _, to := range []string{upper, lower} {
		if _, code := c.UpgradeCheck("--to=" + to); code != 0 {
			t.Errorf("to %s: exit code %d, want 0", to, code)
		}
	}
	etcd := c.Etcd()
	history := framework.RecordFeature(t, etcd, gate)
	history.Wait(t, 0, "Off", framework.In(v1alpha1.StateOff))
	for _, name := range []string{"old-1", "old-2"} {
		framework.StoreWorkload(t, etcd, stored, name)
	}

	mark := history.Mark() - 1
	move(t, c, upper)
	// The history is read from etcd, and may be behind what the server shows.
	history.Wait(t, mark, "Off at "+upper, func(v framework.FeatureVersion) bool {
		return v.Status.State == v1alpha1.StateOff && v.Status.Version == upper
	})
	if diff := cmp.Diff([]string{"Off@" + lower, "Upgrading@" + lower, "Off@" + upper}, stages(history.Since(mark))); diff != "" {
		t.Errorf("unexpected stages of %s on the way to %s (-want +got):\n%s", gate, upper, diff)
	}
	if left := framework.Below(t, etcd, framework.WorkloadsKey); len(left) > 0 {
		t.Errorf("at %s %d Workloads of %s are left", upper, len(left), lower)
	}
	all := history.Since(0)
	for invariant, problem := range map[string]string{"S1": framework.FalseState(all), "S2": framework.EarlyTask(all), "S3": framework.LostTask(all)} {
		if problem != "" {
			t.Errorf("%s: %s", invariant, problem)
		}
	}
}

// move restarts the server at a version and waits until all features are at rest there.
func move(t *testing.T, c *framework.Cluster, version string) {
	t.Helper()
	c.SetArgs(localcluster.APIServer, settle, "--emulated-version="+version)
	if err := c.Restart(t.Context(), nil, localcluster.APIServer); err != nil {
		t.Fatalf("restarting at %s: %v", version, err)
	}
	framework.Eventually(t, "all features at rest at "+version, func() error {
		var errs []error
		for _, f := range c.WaitForRest() {
			if f.Status.Version != version || f.Status.Configured == nil || f.Status.Configured.Value != (f.Status.State == v1alpha1.StateOn) {
				errs = append(errs, fmt.Errorf("%s is %s at %s, configured %+v", f.Name, f.Status.State, f.Status.Version, f.Status.Configured))
			}
		}
		return errors.Join(errs...)
	})
}

// stages are the states with the versions, each once in a row.
func stages(versions []framework.FeatureVersion) []string {
	var result []string
	for _, v := range versions {
		result = append(result, fmt.Sprintf("%s@%s", v.Status.State, v.Status.Version))
	}
	return slices.Compact(result)
}
