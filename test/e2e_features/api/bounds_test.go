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

package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// TestReportsAreBounded: an identity that went wrong cannot fill the database.
func TestReportsAreBounded(t *testing.T) {
	c := shared.Cluster(t)
	config := c.As(localcluster.Scheduler)
	config.QPS = -1
	reports := features(t, config).FeatureReports(system)
	t.Cleanup(func() {
		// The test's context has ended.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), framework.Patience)
		defer cancel()
		all := metav1.ListOptions{FieldSelector: "spec.username=system:kube-scheduler"}
		if err := features(t, c.Config).FeatureReports(system).DeleteCollection(ctx, metav1.DeleteOptions{}, all); err != nil {
			t.Errorf("deleting the reports: %v", err)
		}
	})
	const limit = 100
	for i := range limit {
		if _, err := reports.Create(t.Context(), report("kube-scheduler", fmt.Sprintf("i%d", i), ""), metav1.CreateOptions{}); err != nil {
			t.Fatalf("report %d: %v", i, err)
		}
	}
	// The server counts what its cache has seen.
	framework.Eventually(t, "the cache to see all reports", func() error {
		list, err := features(t, c.Config).FeatureReports(system).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.username=system:kube-scheduler", ResourceVersion: "0"})
		if err == nil && len(list.Items) != limit {
			err = fmt.Errorf("it has %d", len(list.Items))
		}
		return err
	})
	_, err := reports.Create(t.Context(), report("kube-scheduler", "more", ""), metav1.CreateOptions{})
	refused(t, err, apierrors.IsForbidden, "system:kube-scheduler", "100 reports", "delete")
	// What is there already is still written.
	first, err := reports.Get(t.Context(), "kube-scheduler.i0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first.Spec.BinaryVersion = "v1.36.4"
	if first, err = reports.Update(t.Context(), first, metav1.UpdateOptions{}); err != nil {
		t.Errorf("a report beside the limit: %v", err)
	}
	for i := range 1001 {
		first.Spec.Features = append(first.Spec.Features, v1alpha1.ReportedFeature{Name: fmt.Sprintf("Feature%d", i)})
	}
	_, err = reports.Update(t.Context(), first, metav1.UpdateOptions{})
	refused(t, err, apierrors.IsInvalid, "spec.features", "1000")
	first.Spec.Features = []v1alpha1.ReportedFeature{{Name: strings.Repeat("a", 4<<20)}}
	_, err = reports.Update(t.Context(), first, metav1.UpdateOptions{})
	refused(t, err, apierrors.IsRequestEntityTooLargeError, "too large")
}
