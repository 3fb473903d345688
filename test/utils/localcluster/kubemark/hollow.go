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

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	remote "k8s.io/cri-client/pkg"
	fakeremote "k8s.io/cri-client/pkg/fake"
	kubeletoptions "k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubemark"
	kubemarkproxy "k8s.io/kubernetes/pkg/proxy/kubemark"
)

const (
	// criTimeout bounds calls to the fake runtime.
	criTimeout = 15 * time.Second
	// workingDir is short wherever the data is: the kubelet makes sockets, whose
	// paths may have 107 characters (unix(7)).
	workingDir = "/proc/self/cwd"
)

// client returns clients of the node's own identity. Heartbeats get one of their
// own, so that nothing else can hold them up.
func (o *options) client(agent string) (client, heartbeat *kubernetes.Clientset, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("--kubeconfig %s: %w", o.kubeconfig, err)
	}
	config.UserAgent = agent
	config.ContentType = "application/vnd.kubernetes.protobuf"
	if client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Timeout = 10 * time.Second
	heartbeat, err = kubernetes.NewForConfig(config)
	return client, heartbeat, err
}

// runKubelet runs upstream's kubelet on a fake container runtime. It never
// returns while the kubelet runs.
func (o *options) runKubelet(ctx context.Context) error {
	client, heartbeat, err := o.client("hollow-kubelet")
	if err != nil {
		return err
	}
	flags, config := kubemark.GetHollowKubeletConfig(&kubemark.HollowKubeletOptions{
		NodeName:    o.name,
		KubeletPort: o.kubeletPort,
		MaxPods:     o.maxPods,
	})
	config.Address = "127.0.0.1"
	config.ReadOnlyPort = 0
	if err := moveRoot(flags, config); err != nil {
		return err
	}

	socket := filepath.Join(workingDir, "cri.sock")
	// An earlier process may have left it.
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	endpoint := "unix://" + socket
	runtime := fakeremote.NewFakeRemoteRuntime()
	// A kubelet does not take images of no size.
	runtime.ImageService.SetFakeImageSize(1 << 20)
	if err := runtime.Start(endpoint); err != nil {
		return fmt.Errorf("starting the fake container runtime: %w", err)
	}
	defer runtime.Stop()
	service, err := remote.NewRemoteRuntimeServiceBuilder().WithEndpoint(endpoint).WithConnectionTimeout(criTimeout).WithTracerProvider(noop.NewTracerProvider()).WithUseStreaming(false).Build(ctx)
	if err != nil {
		return fmt.Errorf("reaching the fake container runtime: %w", err)
	}
	kubemark.NewHollowKubelet(flags, config, client, heartbeat,
		&cadvisortest.Fake{NodeName: o.name}, runtime.ImageService, service, cm.NewStubContainerManager()).Run(ctx)
	return nil
}

// moveRoot puts the kubelet's directories below TMPDIR, where they are found
// again and removed with the cluster. Upstream has made them below /tmp with a
// new name each time, and leaves them there (pkg/kubemark/hollow_kubelet.go).
func moveRoot(flags *kubeletoptions.KubeletFlags, config *kubeletconfig.KubeletConfiguration) error {
	if err := os.RemoveAll(flags.RootDirectory); err != nil {
		return err
	}
	if err := os.Chdir(os.TempDir()); err != nil {
		return err
	}
	flags.RootDirectory = filepath.Join(workingDir, "kubelet")
	config.StaticPodPath = filepath.Join(flags.RootDirectory, "static-pods")
	config.PodLogsDir = filepath.Join(flags.RootDirectory, "pod-logs")
	for _, dir := range []string{config.StaticPodPath, config.PodLogsDir} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return err
		}
	}
	return nil
}

// runProxy runs upstream's kube-proxy with a proxier that does nothing.
func (o *options) runProxy(_ context.Context) error {
	client, _, err := o.client("hollow-proxy")
	if err != nil {
		return err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	recorder := broadcaster.NewRecorder(legacyscheme.Scheme, "kube-proxy")
	return kubemarkproxy.NewHollowProxy(o.name, client, client.CoreV1(), broadcaster, recorder).Run()
}
