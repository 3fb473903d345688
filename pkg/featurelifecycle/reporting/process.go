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

package reporting

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/version"
	cmfeatures "k8s.io/controller-manager/pkg/features"
	"k8s.io/feature-lifecycle/agent"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/klog/v2"
)

// process runs the agent of one binary.
type process struct {
	component Component
	gate      *featuregate.Gate
	arguments *arguments
	flags     *valueFlags
	// agent reports and takes the values that are set centrally; nil before resolve, and
	// without the API.
	agent *agent.Agent

	// mu guards the following fields: the process may be terminated while it starts.
	mu     sync.Mutex
	cancel context.CancelFunc
	// done is closed once the agent has ended and the report is deleted; nil before start.
	done chan struct{}
}

// start runs the agent. It logs its errors, and the binary continues.
func (p *process) start(ctx context.Context) {
	if p.agent == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, p.cancel = context.WithCancel(ctx)
	p.done = make(chan struct{})
	go func() {
		defer close(p.done)
		p.agent.Run(ctx)
		// The process terminates; the removal has its own bound.
		if err := p.agent.Remove(context.WithoutCancel(ctx)); err != nil {
			klog.FromContext(ctx).Info("Failed to remove feature report", "err", err)
		}
	}()
	go p.endBySignal()
}

// errNoServer means that no server was configured: a kubelet that runs alone, or a binary
// outside of a cluster and without a kubeconfig.
var errNoServer = errors.New("no kubeconfig is configured")

// isNoServer returns true for errors that mean that the process will never have a server.
func isNoServer(err error) bool {
	return errors.Is(err, errNoServer) || errors.Is(err, rest.ErrNotInCluster)
}

// reporterConfig returns what the process reports as, and how.
func (p *process) reporterConfig() (agent.ReporterConfig, error) {
	config := agent.ReporterConfig{
		Namespace:     metav1.NamespaceSystem,
		Component:     p.component.Name,
		BinaryVersion: version.Get().GitVersion,
		Source:        p.gate,
	}
	if p.arguments.morph != "" {
		config.Component = map[string]string{"kubelet": "kubelet", "proxy": "kube-proxy"}[p.arguments.morph]
	}
	config.Connect = func() (agent.Clients, error) { return p.connect(config.Component) }
	var err error
	if p.component.Node {
		config.NodeName, err = p.arguments.node(config.Component)
		config.Instance = config.NodeName
	} else {
		config.Instance, err = p.arguments.instance()
		config.LeaseNamespace = v1alpha1.LeaseNamespace
	}
	return config, err
}

// connect returns the reporter's clients. They have the process's final identity.
func (p *process) connect(component string) (clients agent.Clients, err error) {
	config, err := p.arguments.clientConfig(component)
	if isNoServer(err) {
		return clients, fmt.Errorf("%w: %w", agent.ErrNoServer, err)
	}
	if err != nil {
		return clients, err
	}
	if err := p.arguments.awaitsCertificate(component, config); err != nil {
		return clients, err
	}
	config = agent.ClientConfig(config)
	config.UserAgent = component + "/feature-reporter"
	if clients.Features, err = versioned.NewForConfig(config); err != nil {
		return clients, err
	}
	clients.Kube, err = kubernetes.NewForConfig(config)
	return clients, err
}

// endBySignal removes the report when a signal terminates the process. Several upstream
// commands call os.Exit or never return, and kube-controller-manager leaves signals to the
// default action, so it cannot wait for Main to return. A signal without any other handler
// is raised again with its default action.
func (p *process) endBySignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	received := <-signals
	p.end()
	if !p.needsDefaultAction() {
		return
	}
	signal.Reset(received)
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Signal(received)
	}
}

// needsDefaultAction returns true for commands that leave signals to the default action:
// kube-proxy, hollow nodes, and kube-controller-manager unless a gate makes it end in order
// (cmd/kube-controller-manager/app/controllermanager.go).
func (p *process) needsDefaultAction() bool {
	switch p.component.Name {
	case "kube-scheduler", "kubelet":
		return p.arguments.morph != ""
	case "kube-controller-manager":
		return !p.gate.Enabled(cmfeatures.ControllerManagerReleaseLeaderElectionLockOnExit)
	default:
		return true
	}
}

// end stops the agent and removes the report, in bounded time. It may be called more than
// once and concurrently.
func (p *process) end() {
	p.mu.Lock()
	cancel, done := p.cancel, p.done
	p.mu.Unlock()
	if done == nil {
		return
	}
	cancel()
	<-done
}
