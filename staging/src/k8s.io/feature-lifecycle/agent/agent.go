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

package agent

import (
	"context"
	"sync"
)

// Config configures an Agent.
type Config struct {
	// Reporter configures the report. Peers and Throttled are set by New if the agent also
	// takes values.
	Reporter ReporterConfig
	// Syncer configures which values the process takes; nil means that it takes none.
	// Namespace, Component, Instance and Clock are those of Reporter.
	Syncer *SyncerConfig
}

// Agent is the side of one process: it reports, takes the values that are set centrally,
// and paces the reports of values that many processes get at once. Load is called before
// Run, Run once, and Remove after Run has returned. All other methods may be called at any
// time, concurrently with Run and each other.
type Agent struct {
	reporter *Reporter
	// syncer is nil for a process that takes no values.
	syncer *Syncer
}

// New returns an Agent. It sends nothing.
func New(config Config) (*Agent, error) {
	a := &Agent{}
	var err error
	if config.Syncer != nil {
		syncer, reporter := *config.Syncer, &config.Reporter
		syncer.Namespace, syncer.Component, syncer.Instance, syncer.Clock = reporter.Namespace, reporter.Component, reporter.Instance, reporter.Clock
		if a.syncer, err = NewSyncer(syncer); err != nil {
			return nil, err
		}
		reporter.Peers, reporter.Throttled = a.syncer.Peers, a.syncer.Throttled
	}
	if a.reporter, err = NewReporter(config.Reporter); err != nil {
		return nil, err
	}
	return a, nil
}

// Load gives the central values to the gate, as Syncer.Load does, and returns where they
// come from. An agent that takes no values returns FromNowhere.
func (a *Agent) Load(ctx context.Context) Origin {
	if a.syncer == nil {
		return FromNowhere
	}
	return a.syncer.Load(ctx)
}

// Run keeps the report and the values until the context ends. It returns earlier if the
// process will never have a server. It leaves the report in place; Remove deletes it.
func (a *Agent) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	resyncing, stop := context.WithCancel(ctx)
	defer stop()
	if a.syncer != nil {
		running.Go(func() { a.syncer.Run(ctx) })
		running.Go(func() { a.syncer.ResyncWhenServed(resyncing, a.reporter.Reporting) })
	}
	a.reporter.Run(ctx)
}

// Started returns a channel that is closed once the first report was written, as
// Reporter.Started does.
func (a *Agent) Started() <-chan struct{} { return a.reporter.Started() }

// Reporting returns true if the server accepts reports, as Reporter.Reporting does.
func (a *Agent) Reporting() (reporting bool, changed <-chan struct{}) { return a.reporter.Reporting() }

// Retry makes Run retry a refused report at once, as Reporter.Retry does.
func (a *Agent) Retry() { a.reporter.Retry() }

// MarkControllerStopped sets AnnotationControllerStopped on the report, as
// Reporter.MarkControllerStopped does.
func (a *Agent) MarkControllerStopped() { a.reporter.MarkControllerStopped() }

// MarkTerminating sets AnnotationTerminating on the report, as Reporter.MarkTerminating
// does.
func (a *Agent) MarkTerminating(ctx context.Context) { a.reporter.MarkTerminating(ctx) }

// Remove deletes the report and its Lease, as Reporter.Remove does.
func (a *Agent) Remove(ctx context.Context) error { return a.reporter.Remove(ctx) }
