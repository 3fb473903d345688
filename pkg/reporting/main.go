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
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/version"
	cmfeatures "k8s.io/controller-manager/pkg/features"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/report"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes-features/pkg/features"
)

// Component says what a binary is.
type Component struct {
	// Name is the component's name in reports. Hollow nodes derive it from
	// --morph.
	Name string
	// Node is true for components of which each node has one.
	Node bool
}

// Main installs the layer, builds the command and runs it with a reporter
// beside it. It returns the exit code.
func Main(component Component, build func() *cobra.Command) int {
	gate := Install()
	command := build()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	process := &process{component: component, gate: gate, arguments: parseArguments(os.Args[1:])}
	// Every binary calls AddMetrics on its gate once command line and
	// configuration have been read; values are final then.
	gate.OnFinal(func() { process.start(ctx) })
	defer process.end()
	return cli.Run(command)
}

// process reports for one binary.
type process struct {
	component Component
	gate      *featuregate.Gate
	arguments *arguments

	reporter *report.Reporter
	cancel   context.CancelFunc
	done     chan struct{}
	endOnce  sync.Once
}

// start begins to report. What it cannot do it logs; the binary goes on.
func (p *process) start(ctx context.Context) {
	if !p.gate.Enabled(features.FeatureLifecycle) {
		return
	}
	config, err := p.config()
	if err == nil {
		p.reporter, err = report.New(config)
	}
	if err != nil {
		klog.FromContext(ctx).Info("Not reporting feature gates", "component", p.component.Name, "err", err)
		return
	}
	ctx, p.cancel = context.WithCancel(ctx)
	p.done = make(chan struct{})
	go func() {
		defer close(p.done)
		p.reporter.Run(ctx)
	}()
	go p.endBySignal()
}

func (p *process) config() (report.Config, error) {
	config := report.Config{
		Namespace:     metav1.NamespaceSystem,
		Component:     p.component.Name,
		BinaryVersion: version.Get().GitVersion,
		Source:        p.gate,
	}
	var err error
	if p.component.Node {
		config.NodeName, err = p.arguments.node()
		config.Instance = config.NodeName
	} else {
		config.Instance, err = p.arguments.instance()
		config.LeaseNamespace = v1alpha1.LeaseNamespace
	}
	if err != nil {
		return config, err
	}
	if p.arguments.morph != "" {
		config.Component = map[string]string{"kubelet": "kubelet", "proxy": "kube-proxy"}[p.arguments.morph]
	}
	client, err := p.arguments.clientConfig()
	if err != nil {
		return config, err
	}
	client.UserAgent = config.Component + "/feature-reporter"
	if config.Features, err = versioned.NewForConfig(client); err != nil {
		return config, err
	}
	config.Kube, err = kubernetes.NewForConfig(client)
	return config, err
}

// endBySignal takes the report away when the process is told to end. Several
// upstream commands call os.Exit or never return, and kube-controller-manager
// leaves signals to the default action, so it cannot wait for Main to return;
// a signal that nobody else handles is raised again with its default action.
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

// needsDefaultAction is true for commands that leave signals to the default
// action: kube-proxy, hollow nodes, and kube-controller-manager unless a gate
// makes it end in order (cmd/kube-controller-manager/app/controllermanager.go).
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

// end stops reporting and takes the report away, in bounded time. It may be
// called more than once and concurrently; later calls wait for the first.
func (p *process) end() {
	if p.reporter == nil {
		return
	}
	p.endOnce.Do(func() {
		p.cancel()
		<-p.done
		ctx := context.Background()
		if err := p.reporter.Remove(ctx); err != nil {
			klog.FromContext(ctx).Info("The feature report stays behind", "err", err)
		}
	})
}
