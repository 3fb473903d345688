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

package lifecycle

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/utils/ptr"
)

const projection = "ClusterTrustBundleProjection"

// trusting is a Pod that uses what the gate guards.
func trusting(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Image: "example.invalid/c"}},
			Volumes: []corev1.Volume{{Name: "trust", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Name: ptr.To("anchors"), Path: "ca.pem"}}},
			}}}},
		},
	}
}

func progress(f *v1alpha1.Feature) string {
	if c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionProgressing); c != nil && c.Reason == v1alpha1.ReasonBlocked {
		return c.Message
	}
	return ""
}

// makePods makes the Pods that hold the feature.
func makePods(t *testing.T, c *framework.Cluster) {
	t.Helper()
	for _, name := range []string{"a", "b"} {
		if _, err := c.Kube.CoreV1().Pods(ns).Create(t.Context(), trusting(name), metav1.CreateOptions{}); err != nil {
			t.Fatalf("creating Pod %s: %v", name, err)
		}
	}
}

// released removes the Pods that hold the feature, one by one. A volume cannot be removed
// from a live Pod. So turning off waits until an administrator has removed the Pods,
// names them, and ends by itself (story 4).
func released(t *testing.T, c *framework.Cluster) {
	t.Helper()
	pods := c.Kube.CoreV1().Pods(ns)
	const both = "waiting for 2 pods using volume source clusterTrustBundle: default/a, default/b"
	held := c.WaitForFeature(projection, "held by both Pods", func(f *v1alpha1.Feature) bool { return strings.HasSuffix(progress(f), both) })
	if held.Status.State != v1alpha1.StateTurningOff || held.Status.Tasks[0].Message != both {
		t.Errorf("state %s, first task %+v; want TurningOff and the message", held.Status.State, held.Status.Tasks[0])
	}
	c.WaitForEvent(held.Name, "TaskBlocked", both)

	remove := func(name string) {
		t.Helper()
		if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
			t.Fatalf("deleting Pod %s: %v", name, err)
		}
	}
	remove("a")
	c.WaitForFeature(projection, "held by one Pod", func(f *v1alpha1.Feature) bool {
		return strings.HasSuffix(progress(f), "waiting for 1 pods using volume source clusterTrustBundle: default/b")
	})
	// Nothing but the Pod's end was waited for, and nothing touched it.
	left, err := pods.Get(t.Context(), "b", metav1.GetOptions{})
	if err != nil || left.Spec.Volumes[0].Projected.Sources[0].ClusterTrustBundle == nil {
		t.Errorf("Pod b was touched: %v, %+v", err, left.Spec.Volumes)
	}
	begun := time.Now()
	remove("b")
	c.WaitForFeature(projection, "Off", func(f *v1alpha1.Feature) bool { return f.Status.State == v1alpha1.StateOff })
	t.Logf("Off %s after the last Pod was gone", time.Since(begun).Round(time.Millisecond))
}
