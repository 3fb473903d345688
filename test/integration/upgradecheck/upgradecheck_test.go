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

// Package upgradecheck asks real servers, through kubectl and the plugin's binary,
// whether they may move.
package upgradecheck

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/cmd/local-up/cluster"
	"k8s.io/kubernetes-features/test/integration/framework"
)

// start starts one kube-apiserver and waits until it has looked at all features.
func start(t *testing.T, gates string, args ...string) *framework.Cluster {
	t.Helper()
	c := framework.Start(t, cluster.Config{
		FeatureGates: gates, Only: []string{cluster.Etcd, cluster.APIServer},
		ExtraArgs: map[string][]string{cluster.APIServer: append([]string{"--feature-settle-period=5s"}, args...)},
	})
	allAtRest(t, c)
	return c
}

func allAtRest(t *testing.T, c *framework.Cluster) {
	t.Helper()
	framework.WaitFor(t, "all features at rest", func() bool {
		list, err := c.Features.FeaturesV1alpha1().Features(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) > 200 && !slices.ContainsFunc(list.Items, func(f v1alpha1.Feature) bool {
			return f.Status.State != v1alpha1.StateOn && f.Status.State != v1alpha1.StateOff
		})
	})
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
	if err := c.Restart(t.Context(), &unset, cluster.APIServer); err != nil {
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

// TestByEmulation: what emulates 1.35 may go up, and its binaries may be replaced
// by those of 1.35.
func TestByEmulation(t *testing.T) {
	t.Parallel()
	c := start(t, "", "--emulated-version=1.35")
	for _, to := range []string{"1.36", "1.35"} {
		if _, code := c.UpgradeCheck("--to=" + to); code != 0 {
			t.Errorf("to %s: exit code %d, want 0", to, code)
		}
	}
}
