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

package e2ekind

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes-features/test/e2e_kind/kindcluster/registry"
	"k8s.io/kubernetes/pkg/features"
)

const (
	registryUser, registryPassword = "kind", "test"
	// privateImage is the one image of the registry.
	privateImage = "private:v1"
	// records is where kubelet notes with which credentials an image was pulled.
	records = root + "image_manager/pulled"
)

// serveRegistry serves a registry with one image to nodes that have the password, and
// returns the registry's host. The image has a file by which it differs from other images:
// kubelet has one record for all names of an image.
func (n *realNode) serveRegistry(t *testing.T) string {
	images := registry.New()
	if err := images.AddFiles(privateImage, map[string]string{path.Base(t.Name()): ""}); err != nil {
		t.Fatal(err)
	}
	return n.ServeRegistry(registry.WithPassword(images, registryUser, registryPassword))
}

// ensureSecretPulledImages has kubelet pull an image with a Secret. While the gate is on, a
// Pod without the Secret does not get the image; while it is off, it does.
func (n *realNode) ensureSecretPulledImages(t *testing.T) {
	gate := string(features.KubeletEnsureSecretPulledImages)
	host := n.serveRegistry(t)
	image := host + "/" + privateImage
	n.createPullSecret(host)
	with := n.createImagePod(t, "with-secret", image, func(spec *corev1.PodSpec) {
		spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: registryUser}}
	})
	running := func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }
	was := waitForPodNamed(t, n.Cluster, with, "running", running)
	record := n.Exec(n.name, "sh", "-c", "cat "+records+"/*")
	if !strings.Contains(record, `"kubernetesSecrets"`) || !strings.Contains(record, host+"/private") {
		t.Errorf("kubelet recorded %q, want the image with its Secret", record)
	}
	without := n.createImagePod(t, "without-secret", image, withoutSecret)
	waitForPodNamed(t, n.Cluster, without, "refused the image", refusedImage)

	n.restart(gate, false, nil)
	waitForPodNamed(t, n.Cluster, without, "running", running)
	if now := n.Exec(n.name, "sh", "-c", "cat "+records+"/*"); now != record {
		t.Errorf("with the gate off the records are %q, and they were %q", now, record)
	}
	is := waitForPodNamed(t, n.Cluster, with, "running", running)
	if was.UID != is.UID || was.Status.ContainerStatuses[0].ContainerID != is.Status.ContainerStatuses[0].ContainerID {
		t.Errorf("the Pod with the Secret was %+v, and is %+v", was.Status, is.Status)
	}

	n.restart(gate, true, nil)
	again := n.createImagePod(t, "without-secret-again", image, withoutSecret)
	waitForPodNamed(t, n.Cluster, again, "refused the image", refusedImage)
}

// refusedImage tells whether kubelet does not let a Pod have its image.
func refusedImage(pod *corev1.Pod) bool {
	statuses := pod.Status.ContainerStatuses
	return len(statuses) == 1 && statuses[0].State.Waiting != nil && strings.Contains(statuses[0].State.Waiting.Reason, "Pull")
}

// createPullSecret creates the Secret for a registry.
func (n *realNode) createPullSecret(host string) {
	n.Eventually("the Secret to be created", func(ctx context.Context) error {
		config := fmt.Sprintf(`{"auths":{%q:{"username":%q,"password":%q}}}`, host, registryUser, registryPassword)
		_, err := n.Kube.CoreV1().Secrets(metav1.NamespaceDefault).Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: registryUser}, Type: corev1.SecretTypeDockerConfigJson,
			Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(config)},
		}, metav1.CreateOptions{})
		return err
	})
}

// createImagePod creates a Pod with the image as a volume, and returns its name.
func (n *realNode) createImagePod(t *testing.T, name, image string, change func(*corev1.PodSpec)) string {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "main", Image: pauseImage(t, n.Cluster, n.name), ImagePullPolicy: corev1.PullNever,
			VolumeMounts: []corev1.VolumeMount{{Name: "image", MountPath: "/image"}},
		}},
		Volumes: []corev1.Volume{{Name: "image", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: image, PullPolicy: corev1.PullIfNotPresent}}}},
	}}
	change(&pod.Spec)
	n.Eventually("the Pod "+name+" to be created", func(ctx context.Context) error {
		_, err := n.Kube.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	return name
}

// withoutSecret leaves a Pod as it is.
func withoutSecret(*corev1.PodSpec) {}
