/*
Copyright 2026 The Kubernetes Authors.

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
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/values"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes-features/pkg/features"
)

// How often a process looks whether features are set centrally. Control plane
// components are few; of nodes there are thousands.
const (
	controlPlaneRecheck = 10 * time.Second
	nodeRecheck         = 10 * time.Minute
)

// resolve takes the values of features that are set centrally, before the
// binary's code asks for them. It may wait for kube-apiserver, in bounded time;
// what it cannot do it logs, and the binary goes on.
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
		var asked []string
		for _, o := range p.gate.Observations() {
			if o.Queried {
				asked = append(asked, o.Name)
			}
		}
		v.Info("Features that were asked for before their centrally set values are known", "component", p.component.Name, "features", asked)
	}
	config, err := p.valuesConfig()
	if err == nil {
		p.follower, err = values.New(config)
	}
	if err != nil {
		logger.Info("Not taking values of features that are set centrally", "component", p.component.Name, "err", err)
		return
	}
	if p.handlesSignals() {
		// Nobody else hears a signal as long as this waits.
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
		defer stop()
	}
	p.follower.Load(ctx)
}

// handlesSignals is true for commands that handle signals before their values are
// final, so that these do not end the process by themselves: kubelet
// (cmd/kubelet/app/server.go, NewKubeletCommand), which ends once it runs.
func (p *process) handlesSignals() bool { return p.component.Name == "kubelet" }

func (p *process) valuesConfig() (values.Config, error) {
	identity, err := p.identity()
	if err != nil {
		return values.Config{}, err
	}
	// Whether the client in use has the first credentials of a kubelet. A token of one
	// that bootstraps lasts for a day or so.
	first := false
	config := values.Config{
		Namespace: metav1.NamespaceSystem,
		Component: identity.Component,
		Instance:  identity.Instance,
		Gate:      p.gate,
		Connect: func() (versioned.Interface, error) {
			first = p.arguments.hasFirstCredentials(identity.Component)
			return p.connectForValues(identity.Component)
		},
		Reconnect:     func() bool { return first && !p.arguments.hasFirstCredentials(identity.Component) },
		File:          p.flags.path(p.component, p.arguments.rootDir),
		Patience:      p.flags.timeout,
		Recheck:       nodeRecheck,
		Policy:        p.flags.policy,
		RestartWindow: p.flags.window,
		Ready:         serverReady,
		Restart:       terminate,
	}
	if !p.component.Node {
		config.Recheck, config.AlwaysWatch = controlPlaneRecheck, true
	}
	return config, nil
}

// connectForValues returns a client that reads Features. Where upstream's command
// ends at once for a kubeconfig or configuration file that is missing or wrong,
// nothing is waited for; on a node these may come later.
func (p *process) connectForValues(component string) (versioned.Interface, error) {
	configOf := func() (*rest.Config, error) { return p.arguments.clientConfig(component) }
	if p.arguments.bootstraps(component) {
		configOf = p.arguments.bootstrapConfig
	}
	config, err := configOf()
	if errors.Is(err, errNoServer) || errors.Is(err, rest.ErrNotInCluster) {
		return nil, fmt.Errorf("%w: %w", values.ErrNoServer, err)
	}
	var client versioned.Interface
	if err == nil {
		config = values.ClientConfig(config)
		config.UserAgent = component + "/feature-values"
		client, err = versioned.NewForConfig(config)
	}
	if err != nil && !p.component.Node {
		return nil, fmt.Errorf("%w: %w", values.ErrConfiguration, err)
	}
	return client, err
}

// serverReady says why the server is not ready. It is only once its Features say
// what is set centrally. Who may not ask takes the answer there is.
func serverReady(ctx context.Context, client versioned.Interface) error {
	err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	if err == nil || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("kube-apiserver is not ready: %w", err)
}

// terminate ends the process as its supervisor would, so that it ends in order.
func terminate() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(syscall.SIGTERM)
	}
	if err != nil {
		klog.Background().Error(err, "The process cannot end itself; restart it, so that it gets the values of features that changed")
	}
}
