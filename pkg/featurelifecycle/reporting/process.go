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
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/version"
	cmfeatures "k8s.io/controller-manager/pkg/features"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/report"
	"k8s.io/feature-lifecycle/values"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes-features/pkg/features"
)

// firstRetry and lastRetry bound the pause, which doubles with jitter, after
// which a process without a way to the server looks for one again.
const (
	firstRetry = time.Second
	lastRetry  = 10 * time.Second
)

// process reports for one binary.
type process struct {
	component Component
	gate      *featuregate.Gate
	arguments *arguments
	flags     *valueFlags
	// follower takes the values that are set centrally; nil without the API.
	follower *values.Follower

	// mu guards what follows: the process may be told to end while it starts.
	mu     sync.Mutex
	cancel context.CancelFunc
	// done is closed once reporting has ended and the report is gone; nil
	// before start.
	done chan struct{}
}

// start begins to report. What it cannot do it logs; the binary goes on.
func (p *process) start(ctx context.Context) {
	if !p.gate.Enabled(features.FeatureLifecycle) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, p.cancel = context.WithCancel(ctx)
	p.done = make(chan struct{})
	go func() {
		defer close(p.done)
		var following sync.WaitGroup
		if p.follower != nil {
			following.Go(func() { p.follower.Run(ctx) })
		}
		p.run(ctx)
		following.Wait()
	}()
	go p.endBySignal()
}

// run reports until the context ends, and takes the report away then.
func (p *process) run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	reporter, err := p.connect(ctx)
	if err != nil {
		if ctx.Err() == nil {
			logger.Info("Not reporting feature gates", "component", p.component.Name, "err", err)
		}
		return
	}
	var looking sync.WaitGroup
	if p.follower != nil {
		looking.Go(func() { p.follower.LookWhenServed(ctx, reporter.Reporting) })
	}
	reporter.Run(ctx)
	looking.Wait()
	// The process ends; the removal has its own bound.
	if err := reporter.Remove(context.WithoutCancel(ctx)); err != nil {
		logger.Info("The feature report stays behind", "err", err)
	}
}

// errNoServer means that the process was not told of any server: a kubelet that
// runs alone, or a binary outside a cluster and without a kubeconfig.
var errNoServer = errors.New("no kubeconfig is configured")

// connect returns a reporter as soon as there is a way to the server. A kubelet
// that bootstraps gets its kubeconfig only when its certificate was signed, and
// other files may come late too. It fails when there will be none.
func (p *process) connect(ctx context.Context) (*report.Reporter, error) {
	backoff := wait.Backoff{Duration: firstRetry, Factor: 2, Jitter: 0.5, Steps: 1 << 20, Cap: lastRetry}
	level := 0
	for {
		config, err := p.config()
		if err == nil {
			return report.New(config)
		}
		if errors.Is(err, errNoServer) || errors.Is(err, rest.ErrNotInCluster) {
			return nil, err
		}
		klog.FromContext(ctx).V(level).Info("Not reporting feature gates yet; trying again", "component", p.component.Name, "err", err)
		// Once is enough for people; the cause may change meanwhile.
		level = 4
		timer := time.NewTimer(backoff.Step())
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
	}
}

// identity is what the process reports as, without clients.
func (p *process) identity() (report.Config, error) {
	config := report.Config{
		Namespace:     metav1.NamespaceSystem,
		Component:     p.component.Name,
		BinaryVersion: version.Get().GitVersion,
		Source:        p.gate,
	}
	if p.follower != nil {
		config.Peers, config.Crowded = p.follower.Peers, p.follower.Crowded
	}
	if p.arguments.morph != "" {
		config.Component = map[string]string{"kubelet": "kubelet", "proxy": "kube-proxy"}[p.arguments.morph]
	}
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

func (p *process) config() (report.Config, error) {
	config, err := p.identity()
	if err != nil {
		return config, err
	}
	client, err := p.arguments.clientConfig(config.Component)
	if err != nil {
		return config, err
	}
	if err := p.arguments.awaitsCertificate(config.Component, client); err != nil {
		return config, err
	}
	client = report.ClientConfig(client)
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
// called more than once and concurrently.
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
