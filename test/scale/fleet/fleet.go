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

// Package fleet simulates the node components of a large cluster for benchmarks:
// Node objects, and for each of them a kubelet and a kube-proxy that report. A
// process runs the reporter that the real binaries run, with the identity of its
// node; what it reports is what a real process of its component reported
// (Template). What is simulated is only that the processes share one operating
// system process and some connections.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/report"
)

// Kubelet and KubeProxy are the components that run on every node.
const (
	Kubelet   = "kubelet"
	KubeProxy = "kube-proxy"
)

// perConnection is how many processes share a TCP connection. Real ones have one
// each, and have it without this system, too.
const perConnection = 50

// Template is what processes of a component report.
type Template struct {
	BinaryVersion, EmulationVersion string
	Observations                    []featuregate.Observation
}

// TemplateOf makes a template of the report of a real process.
func TemplateOf(r *v1alpha1.FeatureReport) Template {
	t := Template{BinaryVersion: r.Spec.BinaryVersion, EmulationVersion: r.Spec.EmulationVersion}
	for _, f := range r.Spec.Features {
		t.Observations = append(t.Observations, featuregate.Observation{
			Name: f.Name, Enabled: f.Enabled, Asked: f.Asked, Explicit: f.Explicit, Stage: f.Stage,
			Default: f.Default, LockedToDefault: f.LockedToDefault, Overridden: f.Overridden, Control: f.Control,
		})
	}
	return t
}

// Fleet is the processes of some nodes.
type Fleet struct {
	// clients are shared by processes: who asks is in the context.
	clients   []*clients
	templates map[string]Template
	processes []*Process
}

type clients struct {
	features versioned.Interface
	kube     kubernetes.Interface
}

// New makes a fleet for so many nodes, without processes. Admin is how an
// administrator, who may impersonate, reaches the server.
func New(ctx context.Context, admin *rest.Config, templates map[string]Template, nodes int) (*Fleet, error) {
	f := &Fleet{templates: templates}
	for range nodes*len(templates)/perConnection + 1 {
		c, err := connect(ctx, admin)
		if err != nil {
			return nil, err
		}
		f.clients = append(f.clients, c)
	}
	return f, nil
}

// connect opens a connection. Processes that start have one already.
func connect(ctx context.Context, admin *rest.Config) (*clients, error) {
	config := report.ClientConfig(admin)
	config.QPS = -1
	// Configurations that differ in this have connections of their own.
	config.Dial = (&net.Dialer{}).DialContext
	config.Wrap(asInContext)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.UserAgent = "feature-lifecycle-fleet"
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	c := &clients{}
	if c.features, err = versioned.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	if c.kube, err = kubernetes.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	ctx = context.WithValue(ctx, identityKey{}, identityOf(KubeProxy, ""))
	if err = c.kube.CoreV1().RESTClient().Get().AbsPath("/version").Do(ctx).Error(); err != nil {
		return nil, fmt.Errorf("connecting a fleet: %w", err)
	}
	return c, nil
}

// Connections is how many connections the processes share.
func (f *Fleet) Connections() int { return len(f.clients) }

// identityKey is the key of a context's identity.
type identityKey struct{}

// identity is who sends a request.
type identity struct{ user, group string }

// identityOf is who the process of a component is on a node: a kubelet is its node,
// all kube-proxies are one user.
func identityOf(component, node string) identity {
	if component == Kubelet {
		return identity{"system:node:" + node, user.NodesGroup}
	}
	return identity{user.KubeProxy, ""}
}

// as makes requests of a context those of a process.
func (p *Process) as(ctx context.Context) context.Context {
	return context.WithValue(ctx, identityKey{}, identityOf(p.Component, p.Node))
}

// asInContext makes requests as the identity in their context.
func asInContext(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		who, ok := request.Context().Value(identityKey{}).(identity)
		if !ok {
			return nil, errors.New("a request of the fleet has to say whose it is")
		}
		request = request.Clone(request.Context())
		request.Header.Set(transport.ImpersonateUserHeader, who.user)
		if who.group != "" {
			request.Header.Add(transport.ImpersonateGroupHeader, who.group)
		}
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// Add adds the processes of a node, which do not run yet.
func (f *Fleet) Add(node string) {
	for _, component := range []string{Kubelet, KubeProxy} {
		if _, ok := f.templates[component]; ok {
			f.processes = append(f.processes, &Process{
				fleet: f, clients: f.clients[len(f.processes)%len(f.clients)], Component: component, Node: node,
				source: newSource(f.templates[component]),
			})
		}
	}
}

// Processes are all processes, in the order in which their nodes were added.
func (f *Fleet) Processes() []*Process { return slices.Clone(f.processes) }

// checkPeriod is how often a process on a node looks whether its report is still
// there (package report).
const checkPeriod = 10 * time.Minute

// Check reads the reports of all processes in turn until the context ends, as often
// as the processes do that have run for long, and returns the first error that is
// not its end. The processes themselves look for the first time ten minutes after
// they reported.
func (f *Fleet) Check(ctx context.Context) error {
	return inTurn(ctx, len(f.processes), checkPeriod, func(ctx context.Context, number int) error {
		p := f.processes[number]
		_, err := p.clients.features.FeaturesV1alpha1().FeatureReports(metav1.NamespaceSystem).Get(p.as(ctx), p.Name(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			// It is being restarted.
			return nil
		}
		return err
	})
}

// Process is one simulated process. Start, Stop and Kill are for one goroutine at
// a time.
type Process struct {
	Component, Node string

	fleet   *Fleet
	clients *clients
	source  *source

	reporter *report.Reporter
	cancel   context.CancelFunc
	running  sync.WaitGroup
}

// Name is the name of the report.
func (p *Process) Name() string { return p.Component + "." + p.Node }

// Start starts the process.
func (p *Process) Start(ctx context.Context) error {
	template := p.fleet.templates[p.Component]
	reporter, err := report.New(report.Config{
		Namespace:     metav1.NamespaceSystem,
		Component:     p.Component,
		Instance:      p.Node,
		NodeName:      p.Node,
		BinaryVersion: template.BinaryVersion,
		Source:        p.source,
		Features:      p.clients.features,
		Kube:          p.clients.kube,
	})
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.Name(), err)
	}
	p.reporter = reporter
	ctx, p.cancel = context.WithCancel(p.as(ctx))
	p.running.Go(func() { reporter.Run(ctx) })
	return nil
}

// Reported is closed once the process has written its first report.
func (p *Process) Reported() <-chan struct{} { return p.reporter.Started() }

// Reported waits until all processes have written a report.
func Reported(ctx context.Context, processes []*Process) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(len(processes))*50*time.Millisecond+patience)
	defer cancel()
	for i, p := range processes {
		select {
		case <-p.Reported():
		case <-ctx.Done():
			return fmt.Errorf("%d of %d processes have reported, %s has not: %w", i, len(processes), p.Name(), ctx.Err())
		}
	}
	return nil
}

// Kill ends the process without a word, if it runs.
func (p *Process) Kill() {
	if p.cancel != nil {
		p.cancel()
	}
	p.running.Wait()
}

// Stop ends the process in order: it takes its report away.
func (p *Process) Stop(ctx context.Context) error {
	p.Kill()
	return p.reporter.Remove(p.as(ctx))
}

// Set changes what the process finds for a feature.
func (p *Process) Set(feature string, enabled bool) { p.source.set(feature, enabled) }

// source is the gate of a process.
type source struct {
	template *Template
	version  *utilversion.Version
	news     chan struct{}
	// own are the observations when they are not the template's.
	own atomic.Pointer[[]featuregate.Observation]
}

func newSource(template Template) *source {
	s := &source{template: &template, news: make(chan struct{}, 1)}
	s.version, _ = utilversion.ParseMajorMinor(template.EmulationVersion)
	s.news <- struct{}{}
	return s
}

// Observations is for the reporter.
func (s *source) Observations() []featuregate.Observation {
	if own := s.own.Load(); own != nil {
		return *own
	}
	return s.template.Observations
}

// News is for the reporter.
func (s *source) News() <-chan struct{} { return s.news }

// EmulationVersion is for the reporter.
func (s *source) EmulationVersion() *utilversion.Version { return s.version }

func (s *source) set(feature string, enabled bool) {
	changed := slices.Clone(s.Observations())
	for i := range changed {
		if changed[i].Name == feature {
			changed[i].Enabled = enabled
		}
	}
	s.own.Store(&changed)
	select {
	case s.news <- struct{}{}:
	default:
	}
}
