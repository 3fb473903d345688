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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
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

// TestDown: a server of 1.36 that was told what 1.35 does not know, and a Service
// that only 1.36 allows.
func TestDown(t *testing.T) {
	t.Parallel()
	// proxy stores an annotation in the Lease of each server.
	const set, proxy = "StaleControllerConsistencyJob", "UnknownVersionInteroperabilityProxy"
	c := start(t, set+"=true")
	services := c.Kube.CoreV1().Services(metav1.NamespaceDefault)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "1st"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	if _, err := services.Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatalf("making a Service with a name that is new in 1.36: %v", err)
	}
	out, code := c.UpgradeCheck("--to=1.35", "-o=name")
	if want := "feature.features.k8s.io/RelaxedServiceNameValidation\nfeature.features.k8s.io/" + set + "\nfeature.features.k8s.io/" + proxy + "\n"; out != want || code != 1 {
		t.Errorf("exit code %d, want 1, and what is not safe:\n%swant\n%s", code, out, want)
	}
	out, code = c.UpgradeCheck("--to=1.35")
	for _, says := range []string{"1 services have metadata.name: default/1st", "sets " + set + "=true", "Not safe to move from 1.36 to 1.35: 3 of "} {
		if !strings.Contains(out, says) || code != 1 {
			t.Errorf("exit code %d, want 1, and it does not say %q", code, says)
		}
	}
	// Both are put right.
	if err := services.Delete(t.Context(), service.Name, metav1.DeleteOptions{}); err != nil {
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
	if out, code = c.UpgradeCheck("--to=1.35", "-o=name"); code != 1 || out != "feature.features.k8s.io/"+proxy+"\n" {
		t.Errorf("exit code %d, want 1, and only what the server itself stores: %s", code, out)
	}
	if out, code = c.UpgradeCheck("--to=1.37"); code != 3 || !strings.Contains(out, "use kubectl-feature of 1.37") {
		t.Errorf("exit code %d, want 3, and who knows 1.37", code)
	}
}

// TestAMoveByEmulation: a server that emulates 1.35 may go up, and its binary may be
// replaced by that of 1.35. It goes up: what 1.35 stored and 1.36 cannot decode is gone,
// and every feature is at rest in the form of 1.36.
func TestAMoveByEmulation(t *testing.T) {
	t.Parallel()
	const gate, stored = "GenericWorkload", "scheduling.k8s.io/v1alpha1"
	c := start(t, "", "--emulated-version=1.35")
	for _, to := range []string{"1.36", "1.35"} {
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
	move(t, c, "1.36")
	// The history is read from etcd, and may be behind what the server shows.
	history.Wait(t, mark, "Off at 1.36", func(v framework.FeatureVersion) bool {
		return v.Status.State == v1alpha1.StateOff && v.Status.Version == "1.36"
	})
	if diff := cmp.Diff([]string{"Off@1.35", "Upgrading@1.35", "Off@1.36"}, stages(history.Since(mark))); diff != "" {
		t.Errorf("unexpected stages of %s on the way to 1.36 (-want +got):\n%s", gate, diff)
	}
	if left := framework.Below(t, etcd, framework.WorkloadsKey); len(left) > 0 {
		t.Errorf("at 1.36 %d Workloads of 1.35 are left", len(left))
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
