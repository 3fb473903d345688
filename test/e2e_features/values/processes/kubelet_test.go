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

package processes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	remote "k8s.io/cri-client/pkg"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/kubernetes-features/test/utils/localcluster/pki"
	"sigs.k8s.io/yaml"
)

// TestAKubeletWithoutAServer starts, runs a static pod, and reports when the
// server appears.
func TestAKubeletWithoutAServer(t *testing.T) {
	t.Parallel()
	runtime, kubelet := localcluster.Runtime("node-1"), localcluster.Kubelet("node-1")
	c := framework.Start(t, localcluster.Config{Nodes: 1, RealNodes: true, NodeIP: framework.NodeIP(), Only: []string{runtime, kubelet}})
	pod, err := yaml.Marshal(&corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "static", Namespace: metav1.NamespaceSystem},
		Spec:       corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Name: "main", Image: "registry.example/pause:1"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.StaticPods("node-1"), "static.yaml"), pod, 0o644); err != nil {
		t.Fatal(err)
	}
	service, err := remote.NewRemoteRuntimeServiceBuilder().WithEndpoint(c.RuntimeEndpoint("node-1")).WithConnectionTimeout(15 * time.Second).WithTracerProvider(noop.NewTracerProvider()).WithUseStreaming(false).Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the static pod", func() error {
		containers, err := service.ListContainers(t.Context(), nil)
		if err != nil {
			return err
		}
		if len(containers) != 1 || containers[0].State != runtimeapi.ContainerState_CONTAINER_RUNNING || containers[0].Metadata.Name != "main" {
			return fmt.Errorf("the containers are %v", containers)
		}
		return nil
	})
	if err := c.Start(t.Context(), localcluster.Etcd, localcluster.APIServer); err != nil {
		t.Fatal(err)
	}
	reports := c.WaitForReports("of the kubelet", func(reports []v1alpha1.FeatureReport) bool {
		for _, r := range reports {
			if r.Name == "kubelet.node-1" && len(r.OwnerReferences) == 1 {
				return true
			}
		}
		return false
	})
	t.Logf("%d reports", len(reports))
}

// TestAKubeletThatBootstraps has no kubeconfig of its own until its certificate
// was signed; it reports with the one that it gets. It has the value that is set
// centrally from its first start on.
func TestAKubeletThatBootstraps(t *testing.T) {
	t.Parallel()
	// On by default; a kubelet asks for it when it starts.
	const feature = "RestartAllContainersOnContainerExits"
	runtime, kubelet := localcluster.Runtime("node-1"), localcluster.Kubelet("node-1")
	c := framework.Start(t, localcluster.Config{
		Nodes: 1, RealNodes: true, NodeIP: framework.NodeIP(),
		Only:      []string{localcluster.Etcd, localcluster.APIServer, localcluster.ControllerManager, runtime},
		ExtraArgs: map[string][]string{localcluster.APIServer: {"--feature-gates=" + feature + "=false", "--central-features=" + feature}},
	})
	const user = "bootstrapper"
	for _, role := range []string{"system:node-bootstrapper", "system:certificates.k8s.io:certificatesigningrequests:nodeclient"} {
		_, err := c.Kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "bootstrap-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	ca, err := pki.Open(c.PKI(), pki.ClusterCA)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bootstrap, own := filepath.Join(dir, "bootstrap.kubeconfig"), filepath.Join(dir, "kubelet.kubeconfig")
	if err := ca.Kubeconfig(bootstrap, c.Config.Host, "bootstrap-client", user); err != nil {
		t.Fatal(err)
	}
	c.SetArgs(kubelet, "--bootstrap-kubeconfig="+bootstrap, "--kubeconfig="+own, "--feature-values-timeout="+framework.Patience.String())
	if err := c.Start(t.Context(), kubelet); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(own); err != nil {
		t.Fatalf("the kubelet did not bootstrap: %v", err)
	}
	c.WaitForReports("of the kubelet", func(reports []v1alpha1.FeatureReport) bool {
		for _, r := range reports {
			if r.Name == "kubelet.node-1" {
				central := slices.ContainsFunc(r.Spec.Features, func(f v1alpha1.ReportedFeature) bool { return f.Name == feature && f.Queried && !f.Enabled })
				return r.Spec.Username == "system:node:node-1" && central
			}
		}
		return false
	})
	if n := said(t, c, kubelet, "Not reporting feature gates yet"); n != 1 {
		t.Errorf("it says %d times that it waits", n)
	}
}
