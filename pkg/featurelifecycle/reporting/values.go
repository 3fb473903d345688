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
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/feature-lifecycle/agent"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes-features/pkg/features"
)

// How often a process lists the features that are set centrally. Control plane components
// are few, and nodes are thousands.
const (
	controlPlaneResync = 10 * time.Second
	nodeResync         = 10 * time.Minute
)

// resolve makes the agent, and takes the values of features that are set centrally before
// the binary's code queries them. It may wait for kube-apiserver, in bounded time. It logs
// its errors, and the binary continues.
func (p *process) resolve(ctx context.Context) {
	if !p.gate.Enabled(features.FeatureLifecycle) {
		return
	}
	logger := klog.FromContext(ctx)
	if p.flags.takenOut {
		// The command shows its own flags, which these are not among.
		cliflag.PrintFlags(p.flags.FlagSet)
	}
	if v := logger.V(4); v.Enabled() {
		var queried []string
		for _, o := range p.gate.Observations() {
			if o.Queried {
				queried = append(queried, o.Name)
			}
		}
		v.Info("Features queried before their central values are known", "component", p.component.Name, "features", queried)
	}
	config, err := p.agentConfig()
	if err == nil {
		p.agent, err = agent.New(config)
	}
	if err != nil {
		logger.Info("Not reporting feature gates, and not taking central feature values", "component", p.component.Name, "err", err)
		return
	}
	if p.handlesSignals() {
		// The command does not act on a signal while this waits.
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
		defer stop()
	}
	p.agent.Load(ctx)
}

// handlesSignals returns true for commands that handle signals before their values are
// final, so that these do not end the process: kubelet (cmd/kubelet/app/server.go,
// NewKubeletCommand). It ends once it runs.
func (p *process) handlesSignals() bool { return p.component.Name == "kubelet" }

// agentConfig returns the configuration of the process's agent.
func (p *process) agentConfig() (agent.Config, error) {
	reporter, err := p.reporterConfig()
	if err != nil {
		return agent.Config{}, err
	}
	// True while the client in use has the first credentials of a kubelet. The token of a
	// bootstrapping kubelet lasts for a day or so.
	first := false
	syncer := &agent.SyncerConfig{
		Gate: p.gate,
		Connect: func() (versioned.Interface, error) {
			first = p.arguments.hasFirstCredentials(reporter.Component)
			return p.connectForValues(reporter.Component)
		},
		Reconnect:     func() bool { return first && !p.arguments.hasFirstCredentials(reporter.Component) },
		File:          p.flags.path(p.component, p.arguments.rootDir),
		LoadTimeout:   p.loadTimeout(),
		ResyncPeriod:  nodeResync,
		Policy:        p.flags.policy,
		RestartWindow: p.flags.window,
		Ready:         serverReady,
		Restart:       terminate,
	}
	if !p.component.Node {
		syncer.ResyncPeriod, syncer.AlwaysWatch = controlPlaneResync, true
	}
	return agent.Config{Reporter: reporter, Syncer: syncer}, nil
}

// loadTimeout returns how long the process waits for kube-apiserver. A kubelet that has to
// start the server itself asks once: others may run already, and its own cannot.
func (p *process) loadTimeout() time.Duration {
	if !p.flags.Changed(timeoutFlag) && p.arguments.runsServer(p.component.Name) {
		return 0
	}
	return p.flags.timeout
}

// connectForValues returns a client that reads Features. Upstream's commands of the control
// plane exit at once if a kubeconfig or configuration file is missing or wrong, so there is
// nothing to wait for. On a node these files may come later.
func (p *process) connectForValues(component string) (versioned.Interface, error) {
	configOf := func() (*rest.Config, error) { return p.arguments.clientConfig(component) }
	if p.arguments.bootstraps(component) {
		configOf = p.arguments.bootstrapConfig
	}
	config, err := configOf()
	if isNoServer(err) {
		return nil, fmt.Errorf("%w: %w", agent.ErrNoServer, err)
	}
	var client versioned.Interface
	if err == nil {
		config = agent.ClientConfig(config)
		config.UserAgent = component + "/feature-values"
		client, err = versioned.NewForConfig(config)
	}
	if err != nil && !p.component.Node {
		return nil, fmt.Errorf("%w: %w", agent.ErrConfiguration, err)
	}
	return client, err
}

// serverReady returns why the server is not ready. A server is ready only once its Features
// have the central values. Without permission for the request, any response of the server
// counts.
func serverReady(ctx context.Context, client versioned.Interface) error {
	err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	if err == nil || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("kube-apiserver is not ready: %w", err)
}

// terminate sends the signal of the supervisor, so that the process ends in order.
func terminate() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(syscall.SIGTERM)
	}
	if err != nil {
		klog.Background().Error(err, "Failed to restart for changed feature values; restart the process")
	}
}
