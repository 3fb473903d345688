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

package tasks

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/utils/ptr"
)

// podWith is a pod with one volume of its own kind.
func podWith(name string, source corev1.VolumeSource) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: ptr.To(false),
			Containers:                   []corev1.Container{{Name: "c", Image: "example.invalid/c"}},
			Volumes:                      []corev1.Volume{{Name: "v", VolumeSource: source}},
		},
	}
}

func (w *world) waitForPods(t *testing.T) {
	bundle := corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Name: ptr.To("a"), Path: "a.pem"}},
	}}}
	limit := resource.MustParse("1Mi")
	for _, pod := range []*corev1.Pod{
		podWith("a", bundle), podWith("b", bundle),
		podWith("c", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}),
	} {
		if _, err := w.Kube.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	wait := lifecycle.WaitForNone(pods, "volume source clusterTrustBundle", "spec.volumes[*].projected.sources[*].clusterTrustBundle")
	clients := w.clients(t, declared(t, wait)...)
	if n := count(t, clients, wait); n != 2 {
		t.Errorf("found %d pods, want 2", n)
	}
	remove := func(name string) func() {
		return func() {
			if err := w.Kube.CoreV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
	blocked := runBlocked(t, clients, wait)
	if want := "waiting for 2 pods using volume source clusterTrustBundle: tasks/a, tasks/b"; blocked.Message != want {
		t.Errorf("the message is %q, want %q", blocked.Message, want)
	}
	// Objects that are not waited for do not end it; the others do.
	remove("c")()
	until(t, blocked, remove("b"))
	blocked = runBlocked(t, clients, wait)
	if want := "waiting for 1 pods using volume source clusterTrustBundle: tasks/a"; blocked.Message != want {
		t.Errorf("the message is %q, want %q", blocked.Message, want)
	}
	until(t, blocked, remove("a"))
	run(t, clients, wait)
}
