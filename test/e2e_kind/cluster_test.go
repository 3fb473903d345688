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
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/watchtools"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/e2e_kind/kindcluster"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/ptr"
)

const (
	// gate is alpha and off by default. kube-apiserver drops its field from specs while it
	// is off, and kubelets write a field of the status of each container while it is on.
	gate = string(features.ContainerStopSignals)
	// podName is the Pod that uses the field, in the namespace default.
	podName = "stop"
	signal  = corev1.SIGUSR1
)

// components are the binaries that report.
var components = []string{kindcluster.APIServer, kindcluster.ControllerManager, kindcluster.Scheduler, "kubelet", "kube-proxy"}

// waitForReports waits until a process of each component has reported the gate at a value.
// kube-proxy does not query the gate; it lists it because its configuration sets it.
func waitForReports(c *kindcluster.Cluster, value bool) {
	c.WaitForReports(fmt.Sprintf("of %s with %s=%t", strings.Join(components, ", "), gate, value), func(reports []v1alpha1.FeatureReport) bool {
		with := map[string]bool{}
		for _, report := range reports {
			if slices.ContainsFunc(report.Spec.Features, func(f v1alpha1.ReportedFeature) bool { return f.Name == gate && f.Enabled == value }) {
				with[report.Spec.Component] = true
			}
		}
		return !slices.ContainsFunc(components, func(component string) bool { return !with[component] })
	})
}

// pauseImage is the image of sandboxes, which each node has, so that nothing is pulled.
func pauseImage(t *testing.T, c *kindcluster.Cluster, node string) string {
	t.Helper()
	return nodeImage(t, c, node, "registry.k8s.io/pause")
}

// nodeImage is the name of an image of a repository that a node has.
func nodeImage(t *testing.T, c *kindcluster.Cluster, node, repository string) string {
	t.Helper()
	images := c.Exec(node, "ctr", "--namespace=k8s.io", "images", "list", "--quiet")
	for image := range strings.Lines(images) {
		if image = strings.TrimSpace(image); strings.HasPrefix(image, repository+":") {
			return image
		}
	}
	t.Fatalf("the node %s has no image of %s, but:\n%s", node, repository, images)
	return ""
}

// createPod creates a Pod whose container has a stop signal, and waits until its kubelet
// has written that into the status of the running container.
func createPod(t *testing.T, c *kindcluster.Cluster) *corev1.Pod {
	t.Helper()
	node := c.Nodes()[len(c.Nodes())-1]
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: podName, Namespace: metav1.NamespaceDefault},
		Spec: corev1.PodSpec{
			// A stop signal needs the name of the operating system.
			OS: &corev1.PodOS{Name: corev1.Linux},
			// A container that does not handle its stop signal is killed then.
			TerminationGracePeriodSeconds: ptr.To[int64](2),
			Containers: []corev1.Container{{
				Name: "main", Image: pauseImage(t, c, node), ImagePullPolicy: corev1.PullNever,
				Lifecycle: &corev1.Lifecycle{StopSignal: ptr.To(signal)},
			}},
		},
	}
	c.Eventually("the Pod to be created", func(ctx context.Context) error {
		_, err := c.Kube.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	return waitForPod(t, c, "running with its stop signal in the status", func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodRunning && len(pod.Status.ContainerStatuses) == 1 && ptr.Deref(pod.Status.ContainerStatuses[0].StopSignal, "") == signal
	})
}

// waitForPod watches the Pod until it is as wanted.
func waitForPod(t *testing.T, c *kindcluster.Cluster, what string, wanted func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	return waitForPodNamed(t, c, podName, what, wanted)
}

// waitForPodNamed watches a Pod of the namespace default until it is as wanted.
func waitForPodNamed(t *testing.T, c *kindcluster.Cluster, name, what string, wanted func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), framework.Patience)
	defer cancel()
	source := cache.NewListWatchFromClient(c.Kube.CoreV1().RESTClient(), "pods", metav1.NamespaceDefault, fields.OneTermEqualSelector(metav1.ObjectNameField, name))
	var last *corev1.Pod
	err := watchtools.UntilWithSync(ctx, source, &corev1.Pod{}, nil, func(event watch.Event) (bool, error) {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return false, nil
		}
		last = pod
		return wanted(pod), nil
	})
	if err != nil {
		t.Fatalf("waiting for the Pod %s to be %s: %v; it is %+v", name, what, err, last)
	}
	return last
}

// pod reads the Pod.
func pod(t *testing.T, c *kindcluster.Cluster) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	c.Eventually("the Pod to be read", func(ctx context.Context) (err error) {
		found, err = c.Kube.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, podName, metav1.GetOptions{})
		return err
	})
	return found
}

// checkUntouched compares the Pod with what it was: the same object and the same container.
func checkUntouched(t *testing.T, c *kindcluster.Cluster, was *corev1.Pod) {
	t.Helper()
	is := pod(t, c)
	if is.UID != was.UID || is.DeletionTimestamp != nil || ptr.Deref(is.Spec.Containers[0].Lifecycle.StopSignal, "") != signal {
		t.Errorf("the Pod was replaced, deleted or changed: it was %+v, and is %+v", was, is)
	}
	for _, status := range is.Status.ContainerStatuses {
		if status.State.Running == nil || status.ContainerID != was.Status.ContainerStatuses[0].ContainerID {
			t.Errorf("the Pod's container was %+v, and is %+v", was.Status.ContainerStatuses[0], status)
		}
	}
}

// condition returns a condition of a Feature, an empty one if there is none.
func condition(feature *v1alpha1.Feature, kind string) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(feature.Status.Conditions, kind), metav1.Condition{})
}

// checkCondition compares a condition of a Feature, whose message has to have a text.
func checkCondition(t *testing.T, feature *v1alpha1.Feature, kind string, status metav1.ConditionStatus, reason, text string) {
	t.Helper()
	if got := condition(feature, kind); got.Status != status || got.Reason != reason || !strings.Contains(got.Message, text) {
		t.Errorf("the condition %s is %s %s: %q; want %s %s with %q", kind, got.Status, got.Reason, got.Message, status, reason, text)
	}
}

// checkInvariants holds what was stored of the Feature against S1, S2 and S3 (KEP-3920).
func checkInvariants(t *testing.T, versions []framework.FeatureVersion) {
	t.Helper()
	for name, problem := range map[string]string{"S1": framework.FalseState(versions), "S2": framework.EarlyTask(versions), "S3": framework.LostTask(versions)} {
		if problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// process is one of "kubectl feature uses -o json".
type process struct {
	Component, Instance, Version string
	Enabled, Queried, Explicit   bool
	Alive                        *bool
}

// processes are those of the gate as kubectl shows them.
func processes(t *testing.T, client kindcluster.Client) []process {
	t.Helper()
	var uses struct{ Processes []process }
	output := client.Output(t, "feature", "uses", gate, "--output=json")
	if err := json.Unmarshal([]byte(output), &uses); err != nil {
		t.Fatalf("kubectl feature uses: %v\n%s", err, output)
	}
	return uses.Processes
}

// checkShown looks for texts in what kubectl prints.
func checkShown(t *testing.T, client kindcluster.Client, texts []string, args ...string) {
	t.Helper()
	output := client.Output(t, args...)
	for _, text := range texts {
		if !strings.Contains(output, text) {
			t.Errorf("kubectl %s does not show %q:\n%s", strings.Join(args, " "), text, output)
		}
	}
}
