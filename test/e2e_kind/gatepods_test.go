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
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/e2e_kind/kindcluster"
	"k8s.io/utils/ptr"
)

const (
	// forever is a script that does not end.
	forever = "while :; do sleep 3600; done"
	// exits ends with 42, once, and again when it is told to (endAgain).
	exits = "if [ ! -e /data/1 ]; then touch /data/1; exit 42; fi; while [ ! -e /data/2 ]; do sleep 1; done; exit 42"
	// data is a volume of every Pod of shellPod, mounted at /data.
	data = "data"
	// fileUser owns files, and runs the container that reads them.
	fileUser = 1000
	taintKey = "example.com/level"
	signer   = "example.com/kind-test"
	bundle   = "kind-test"
	secret   = "kind-test"
	// restartAll is the name of the Pod all of whose containers start again together.
	restartAll = "restart-all"
)

// shellPod is a Pod with a script, which nothing of the cluster has to serve.
func (n *usedNode) shellPod(name, script string, change func(*corev1.PodSpec)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers: []corev1.Container{{
				Name: "main", Image: kindcluster.ShellImage, ImagePullPolicy: corev1.PullNever,
				Command: []string{"sh", "-c", script}, VolumeMounts: []corev1.VolumeMount{{Name: data, MountPath: "/data"}},
			}},
			Volumes: []corev1.Volume{{Name: data, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
	change(&pod.Spec)
	return pod
}

// etcdPod is a Pod with a server that a probe asks.
func (n *usedNode) etcdPod(name, scheme string, probe corev1.ProbeHandler, flags ...string) *corev1.Pod {
	return n.shellPod(name, "", func(spec *corev1.PodSpec) {
		spec.Containers[0].Image = n.etcd
		spec.Containers[0].Command = append([]string{
			"/usr/local/bin/etcd", "--data-dir=/data/etcd", "--listen-peer-urls=http://127.0.0.1:2380",
			"--listen-client-urls=" + scheme + "://0.0.0.0:2379", "--advertise-client-urls=" + scheme + "://127.0.0.1:2379",
		}, flags...)
		spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: probe, PeriodSeconds: 1}
	})
}

// mount adds a volume, mounted at the path of its name.
func mount(spec *corev1.PodSpec, name string, source corev1.VolumeSource) {
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
}

func projected(sources ...corev1.VolumeProjection) corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}
}

// restarting is a Pod that never restarts but by its rule, and whose name says which.
func (n *usedNode) restarting(name string) *corev1.Pod {
	return n.shellPod(name, exits, func(spec *corev1.PodSpec) {
		action := corev1.ContainerRestartRuleActionRestart
		if name == restartAll {
			action = corev1.ContainerRestartRuleActionRestartAllContainers
		}
		spec.RestartPolicy = corev1.RestartPolicyNever
		spec.Containers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyNever)
		spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{
			Action:    action,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
		}}
	})
}

// pods are the Pods that the gates are used with.
func (n *usedNode) pods() []*corev1.Pod {
	http2 := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/health", Port: intstr.FromInt32(2379), Protocol: ptr.To(corev1.HTTPProtocolHTTP2)}}
	overTLS := corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 2379, Mode: ptr.To(corev1.GRPCProbeModeTLS)}}
	return []*corev1.Pod{
		n.restarting(restartAll), n.restarting("restart-rule"),
		n.shellPod("users-on-host", forever, func(spec *corev1.PodSpec) { spec.HostNetwork, spec.HostUsers = true, ptr.To(false) }),
		// The scheduler finds no node for it.
		n.shellPod("bind-options", forever, func(spec *corev1.PodSpec) {
			spec.NodeName, spec.Containers[0].VolumeMounts[0].BindMountOptions = n.name, []string{string(corev1.BindMountOptionNoExec)}
		}),
		n.shellPod("file-users", forever, func(spec *corev1.PodSpec) {
			spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](fileUser)}
			mount(spec, "secret", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultUser: ptr.To[int64](fileUser), DefaultMode: ptr.To[int32](0o400)}})
		}),
		n.shellPod("trust", forever, func(spec *corev1.PodSpec) {
			mount(spec, "trust", projected(corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Name: ptr.To(bundle), Path: "bundle.pem"}}))
		}),
		n.shellPod("certificate", forever, func(spec *corev1.PodSpec) {
			mount(spec, "certificate", projected(corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{SignerName: signer, KeyType: "ED25519", CredentialBundlePath: "bundle.pem"}}))
		}),
		n.shellPod("mode", forever, func(spec *corev1.PodSpec) { spec.Volumes[0].EmptyDir.Mode = ptr.To[int32](0o750) }),
		n.shellPod("env-file", "echo $VARIABLE >/data/out; "+forever, func(spec *corev1.PodSpec) {
			spec.InitContainers = []corev1.Container{{
				Name: "init", Image: spec.Containers[0].Image, ImagePullPolicy: corev1.PullNever,
				Command: []string{"sh", "-c", `echo "KEY='value'" >/env/file`}, VolumeMounts: []corev1.VolumeMount{{Name: "env", MountPath: "/env"}},
			}}
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "env", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
			spec.Containers[0].Env = []corev1.EnvVar{{Name: "VARIABLE", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "env", Path: "file", Key: "KEY"}}}}
		}),
		n.etcdPod("http2-probe", "http", http2),
		n.etcdPod("tls-probe", "https", overTLS, "--auto-tls"),
		n.shellPod("image-volume", forever, func(spec *corev1.PodSpec) {
			mount(spec, "image", corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: spec.Containers[0].Image, PullPolicy: corev1.PullNever}})
		}),
		n.shellPod("pod-resources", forever, func(spec *corev1.PodSpec) {
			spec.Tolerations = []corev1.Toleration{{Key: taintKey, Operator: corev1.TolerationOpExists}}
			spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceMemory: resource.MustParse("64Mi")}}
		}),
		n.shellPod("memory-volume", forever, func(spec *corev1.PodSpec) {
			spec.Volumes[0].EmptyDir = &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: ptr.To(resource.MustParse("10Mi"))}
		}),
		n.servingPod(),
	}
}

// servingPod is the Pod behind the node port.
func (n *usedNode) servingPod() *corev1.Pod {
	pod := n.shellPod(servedPod, fmt.Sprintf("echo %s >/data/index.html; exec httpd -f -p %d -h /data", served, servedPort), func(*corev1.PodSpec) {})
	pod.Labels = servedLabels
	return pod
}

// createPods creates what the gates are used with, and resizes what can be.
func (n *usedNode) createPods() {
	n.createSources()
	for _, pod := range slices.Concat(n.pods(), n.devicePods()) {
		n.createPod(pod)
	}
	n.signCertificates()
	n.Eventually("the Pod pod-resources to be resized", func(ctx context.Context) error {
		patch := []byte(`{"spec":{"resources":{"requests":{"cpu":"300m"},"limits":{"cpu":"300m"}}}}`)
		_, err := n.Kube.CoreV1().Pods(metav1.NamespaceDefault).Patch(ctx, "pod-resources", types.MergePatchType, patch, metav1.PatchOptions{}, "resize")
		return err
	})
}

// createPod creates a Pod unless there is one of its name.
func (n *usedNode) createPod(pod *corev1.Pod) {
	n.Eventually("the Pod "+pod.Name+" to be created", func(ctx context.Context) error {
		_, err := n.Kube.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// deletePods deletes the Pods of gates that are off, and waits until they are gone.
func (n *usedNode) deletePods(uses []gateUse) {
	for _, use := range uses {
		// A later gate uses the Pod, too.
		if use.pod == "" || use.pod == "pod-resources" && use.ends == "" {
			continue
		}
		n.deletePod(use.pod)
	}
}

// deletePod deletes a Pod and waits until it is gone.
func (n *usedNode) deletePod(name string) {
	framework.Eventually(n.t, "the Pod "+name+" to be gone", func() error {
		err := n.Kube.CoreV1().Pods(metav1.NamespaceDefault).Delete(n.t.Context(), name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
}

// taint has all Pods end that do not tolerate it.
func (n *usedNode) taint() {
	n.Eventually("the node to be tainted", func(ctx context.Context) error {
		patch := fmt.Appendf(nil, `{"spec":{"taints":[{"key":%q,"value":"6","effect":"NoExecute"}]}}`, taintKey)
		_, err := n.Kube.CoreV1().Nodes().Patch(ctx, n.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// checkForgotten checks that the directories of Pods that are gone are gone, too. kubelet's
// file of what it gave them is written again only for another Pod.
func (n *usedNode) checkForgotten() {
	n.createPod(n.shellPod("next", forever, func(spec *corev1.PodSpec) {
		spec.Tolerations = []corev1.Toleration{{Key: taintKey, Operator: corev1.TolerationOpExists}}
	}))
	framework.Eventually(n.t, "kubelet to forget the Pods", func() error {
		records, directories := n.shell("cat "+allocations), n.shell("ls "+root+"pods")
		var known []string
		for name, pod := range n.before {
			if strings.Contains(records, string(pod.UID)) || strings.Contains(directories, string(pod.UID)) {
				known = append(known, name)
			}
		}
		if len(known) > 0 {
			return fmt.Errorf("kubelet knows %q", known)
		}
		return nil
	})
}
