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

package fleet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/feature-lifecycle/agent"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"

	"k8s.io/kubernetes-features/test/benchmark/measure"
)

// Process is one simulated process. Start, Stop and Kill are for one goroutine at
// a time.
type Process struct {
	Component, Node string

	fleet    *Fleet
	clients  *clients
	template *Template
	source   *source

	reporter         *agent.Reporter
	syncer           atomic.Pointer[agent.Syncer]
	cancel, unfollow context.CancelFunc
	running          sync.WaitGroup
	// written has the time of the answer to the last write.
	written chan time.Time
}

// Name is the name of the report.
func (p *Process) Name() string { return p.Component + "." + p.Node }

// Start starts the process, which reports.
func (p *Process) Start(ctx context.Context) error {
	config := agent.ReporterConfig{
		Namespace:     metav1.NamespaceSystem,
		Component:     p.Component,
		Instance:      p.Node,
		NodeName:      p.Node,
		BinaryVersion: p.template.BinaryVersion,
		Source:        p.source,
		Clients:       agent.Clients{Features: p.clients.features, Kube: p.clients.kube},
		Peers:         p.peers,
	}
	var syncer *agent.Syncer
	if p.fleet.looks {
		var err error
		if syncer, err = p.newSyncer(emptyGate(p.source.version)); err != nil {
			return fmt.Errorf("starting %s: %w", p.Name(), err)
		}
		config.Throttled = syncer.Throttled
	}
	reporter, err := agent.NewReporter(config)
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.Name(), err)
	}
	p.reporter = reporter
	ctx, p.cancel = context.WithCancel(p.As(ctx))
	if syncer == nil {
		p.running.Go(func() { reporter.Run(ctx) })
		return nil
	}
	var looking context.Context
	looking, p.unfollow = context.WithCancel(silently(ctx))
	p.running.Go(func() {
		p.look(looking, syncer)
		reporter.Run(ctx)
	})
	return nil
}

// peers returns Peers of the process's syncer, once it follows values.
func (p *Process) peers(feature string) int {
	if syncer := p.syncer.Load(); syncer != nil {
		return syncer.Peers(feature)
	}
	return 0
}

// Become makes the process another one, of the template, from its next start on.
func (p *Process) Become(template *Template) {
	p.template, p.source = template, newSource(template, p.fleet.asks)
}

// Kube is the process's client of the library for everything but Features; requests have
// to have the context of As.
func (p *Process) Kube() kubernetes.Interface { return p.clients.kube }

// Plain is a client of the process as people make it who know nothing of this system;
// requests have to have the context of As.
func (p *Process) Plain() kubernetes.Interface { return p.clients.plain }

// Reported is closed once the process has written its first report.
func (p *Process) Reported() <-chan struct{} { return p.reporter.Started() }

// PatienceFor is for how long to wait for so many processes that all want something.
func PatienceFor(processes int) time.Duration {
	return time.Duration(processes)*50*time.Millisecond + patience
}

// Reported waits until all processes have written a report.
func Reported(ctx context.Context, processes []*Process) error {
	_, err := Arrivals(ctx, time.Now(), processes)
	return err
}

// Arrivals waits until all processes have written a report, and returns how long after
// the beginning each of them had.
func Arrivals(ctx context.Context, begun time.Time, processes []*Process) (measure.Distribution, error) {
	ctx, cancel := context.WithTimeout(ctx, PatienceFor(len(processes)))
	defer cancel()
	var took measure.Latencies
	var missing atomic.Int64
	var waiting sync.WaitGroup
	for _, p := range processes {
		waiting.Go(func() {
			select {
			case <-p.Reported():
				took.Record(time.Since(begun))
			case <-ctx.Done():
				missing.Add(1)
			}
		})
	}
	waiting.Wait()
	if n := missing.Load(); n > 0 {
		return measure.Distribution{}, fmt.Errorf("%d of %d processes have not reported: %w", n, len(processes), ctx.Err())
	}
	return took.Take(), nil
}

// Kill ends the process without a word, if it runs.
func (p *Process) Kill() {
	for _, cancel := range []context.CancelFunc{p.cancel, p.unfollow} {
		if cancel != nil {
			cancel()
		}
	}
	p.running.Wait()
}

// Stop ends the process in order: it takes its report away.
func (p *Process) Stop(ctx context.Context) error {
	p.Kill()
	return p.reporter.Remove(p.As(ctx))
}

// noteWritten replaces the time of the last answer.
func (p *Process) noteWritten(at time.Time) {
	select {
	case <-p.written:
	default:
	}
	select {
	case p.written <- at:
	default:
	}
}

// Written receives the time at which the server answered that it has taken what the
// process wrote last, which is its report. It holds the newest that was not received.
func (p *Process) Written() <-chan time.Time { return p.written }

// LastWritten is the time at which the server answered the last write of all processes that was not
// received from Written.
func LastWritten(processes []*Process) (last time.Time) {
	for _, p := range processes {
		select {
		case at := <-p.Written():
			if at.After(last) {
				last = at
			}
		default:
		}
	}
	return last
}

// Findings are what the process reports of features.
func (p *Process) Findings() (all []v1alpha1.ReportedFeature) {
	for _, o := range p.source.Observations() {
		all = append(all, v1alpha1.ReportedFeature{
			Name: o.Name, Enabled: o.Enabled, Queried: o.Queried, Explicit: o.Explicit, Stage: o.Stage,
			Default: o.Default, LockedToDefault: o.LockedToDefault, Overridden: o.Overridden, Control: o.Control,
		})
	}
	return all
}

// Set changes what the process finds for a feature of its template.
func (p *Process) Set(feature string, enabled bool) { p.source.set(feature, enabled) }

// source is the gate of a process.
type source struct {
	template *Template
	version  *utilversion.Version
	news     chan struct{}
	// own are the observations when they are not the template's.
	own atomic.Pointer[[]featuregate.Observation]
	// gate, if not nil, has the feature that the process follows.
	gate *featuregate.Gate
}

func newSource(template *Template, asks *asked) *source {
	s := &source{template: template, news: make(chan struct{}, 1)}
	s.version, _ = utilversion.ParseMajorMinor(template.EmulationVersion)
	if asks != nil {
		s.gate = asks.gate(s.version)
	}
	s.news <- struct{}{}
	return s
}

// Observations is for the reporter.
func (s *source) Observations() []featuregate.Observation {
	observations := s.template.Observations
	if own := s.own.Load(); own != nil {
		observations = *own
	}
	if s.gate != nil {
		observations = append(slices.Clip(observations), s.gate.Observations()...)
	}
	return observations
}

// News is for the reporter.
func (s *source) News() <-chan struct{} {
	if s.gate != nil {
		return s.gate.News()
	}
	return s.news
}

// EmulationVersion is for the reporter.
func (s *source) EmulationVersion() *utilversion.Version { return s.version }

func (s *source) set(feature string, enabled bool) {
	changed := slices.Clone(s.template.Observations)
	if own := s.own.Load(); own != nil {
		changed = slices.Clone(*own)
	}
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
