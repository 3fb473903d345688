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
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/utils/clock"
)

const (
	// startJitter spreads the first reports of processes that start together.
	startJitter = 2 * time.Second
	// batchJitter spreads the second reports of these.
	batchJitter = 5 * time.Second
	// minReportBackoff and maxReportBackoff bound the pause after a failed write.
	minReportBackoff, maxReportBackoff = time.Second, time.Minute
	// rejectionBackoff is the longest pause while the server lacks the API or forbids
	// reports: it may be an older server.
	rejectionBackoff = 15 * time.Minute
	// checkPeriod is how often a process on a node checks that its report exists.
	checkPeriod = 15 * time.Minute
	// leasedCheckPeriod is the same for a process that renews a Lease, which costs more
	// anyway.
	leasedCheckPeriod = time.Minute
	// removeTimeout bounds the removal of the report when the process terminates.
	removeTimeout = 3 * time.Second
	// removeBackoff is the first pause after a failed removal.
	removeBackoff = 200 * time.Millisecond
	// nodeTimeout is the time that a process waits for its Node to become the owner of the
	// report, and ownerPeriod how often it checks.
	nodeTimeout = time.Minute
	ownerPeriod = 2 * time.Second
)

// Reporter keeps the report of one process. Run is called once, and Remove after Run has
// returned, by one goroutine at a time. All other methods may be called at any time,
// concurrently with Run and each other. MarkTerminating waits for Run, also before Run
// starts, until its timeout.
type Reporter struct {
	config ReporterConfig
	name   string
	// process is the UID that distinguishes this process from others of the instance.
	process string
	// started is closed once the first report was written, and its Lease before it.
	started     chan struct{}
	startedOnce sync.Once
	// renewing is the goroutine that renews the Lease, and stopRenewing ends it.
	renewing     sync.WaitGroup
	stopRenewing context.CancelFunc
	// served is the state that Reporting returns.
	served served
	// terminating is true once MarkTerminating was called. It sends to terminations, and
	// Run closes terminationMarked when the report has the annotation.
	terminating       atomic.Bool
	terminations      chan struct{}
	terminationMarked chan struct{}
	// controllerStopped is true once MarkControllerStopped was called; wakes wakes Run.
	controllerStopped atomic.Bool
	wakes             chan struct{}
	// retries is true from a call of Retry until Run has observed it.
	retries atomic.Bool

	// owner is the result of ReporterConfig.Owner, nil before.
	owner *metav1.OwnerReference
	// leaseFailures counts consecutive failures to renew the Lease, for ensureLease and
	// then for renewLease.
	leaseFailures int
	// duplicateHolders is how many more times the Lease was found renewed by another
	// process than by this one. duplicatesLogged is true once that was logged. Both belong
	// to the goroutine that renews the Lease, as leaseFailures.
	duplicateHolders int
	duplicatesLogged bool
	// observedRenewal is the renewal time of the Lease when it was read last.
	observedRenewal *metav1.MicroTime

	// All following fields belong to Run, and to Remove after Run has returned.

	// confirmed is true from the first report on, or from the first one that a server
	// accepted after a server without the API.
	confirmed bool
	// attempted is true once a write was sent: the report or the Lease may exist even if
	// no response came.
	attempted bool
	// stored is the report as the server returned it last.
	stored *v1alpha1.FeatureReport
	// conflict is a report under this process's name by another identity, nil for none.
	conflict *conflictingReport
	// written is the spec that was written last, nil before.
	written *v1alpha1.FeatureReportSpec
	// stopWritten is true once the written report had AnnotationControllerStopped.
	stopWritten bool
	// lastWrite is the time of that write; lastCheck is when the report was last known
	// to exist.
	lastWrite, lastCheck time.Time
	// reportAt has the times at which changed values are to be reported, by feature.
	// fraction is this process's place among the peers of each. due is when any other
	// difference is reported at the latest, zero without one.
	reportAt map[string]time.Time
	fraction float64
	due      time.Time
	// confirmAfter is the time until which whole reports are written: the server did not
	// take a confirmation.
	confirmAfter time.Time
	// failures and rejections count since the server accepted the report last: how often
	// it failed, and how often the server rejected it.
	failures, rejections int
	// retryAt is the time at which a server that did not accept the report is asked again.
	retryAt time.Time
	// logged is the last message about the server's responses, "" since it accepted the
	// report.
	logged string
	begun  time.Time
}

// NewReporter returns a Reporter. It sends nothing.
func NewReporter(config ReporterConfig) (*Reporter, error) {
	if config.Namespace == "" || config.Component == "" || config.Instance == "" {
		return nil, errors.New("reporter needs Namespace, Component and Instance")
	}
	if config.Source == nil || config.Connect == nil && (config.Clients.Features == nil || config.Clients.Kube == nil) {
		return nil, fmt.Errorf("reporter of %s.%s needs Source, and Clients or Connect", config.Component, config.Instance)
	}
	if config.NodeName != "" && config.Owner != nil {
		return nil, fmt.Errorf("reporter of %s.%s has NodeName and Owner: the report of a process on a node belongs to its Node; leave one out", config.Component, config.Instance)
	}
	switch {
	case config.NodeName != "":
		config.LeaseNamespace = ""
	case config.LeaseNamespace == "":
		config.LeaseNamespace = config.Namespace
	}
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	return &Reporter{
		config: config, name: config.Component + "." + config.Instance, process: string(uuid.NewUUID()),
		started: make(chan struct{}), terminations: make(chan struct{}, 1), terminationMarked: make(chan struct{}), wakes: make(chan struct{}, 1),
	}, nil
}

// Started returns a channel that is closed once the first report was written, and once its
// Lease was written or that was attempted.
func (r *Reporter) Started() <-chan struct{} { return r.started }

// Run keeps the report until the context ends. It leaves the report in place; Remove
// deletes it when the process ends in order.
func (r *Reporter) Run(ctx context.Context) {
	defer r.renewing.Wait()
	if !r.connect(ctx) {
		return
	}
	registerReporterMetrics()
	r.begun = r.config.Clock.Now()
	wait := r.firstDelay()
	// There is news from the start: the process queried features before it began to
	// report. That must not end the first pause.
	var news <-chan struct{}
	for {
		timer := r.config.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-news:
			timer.Stop()
		case <-timer.C():
		case <-r.terminations:
			timer.Stop()
			r.writeTerminating(ctx)
		case <-r.wakes:
			timer.Stop()
		}
		news = r.config.Source.News()
		wait = r.sync(ctx)
	}
}

// sync writes the report if it is due and returns the pause until the next call.
func (r *Reporter) sync(ctx context.Context) time.Duration {
	now, retry := r.config.Clock.Now(), r.retries.Swap(false)
	spec := r.observe()
	// The first report is not delayed.
	var d difference
	var pause time.Duration
	if r.written != nil {
		d = compare(r.written, spec)
		pause = r.delayOf(d, now)
	}
	switch {
	case now.Before(r.retryAt) && !retry:
		// News does not help while the server does not accept reports. Its delay passes
		// meanwhile.
		return r.retryAt.Sub(now)
	case r.written != nil && r.stopUnwritten():
		// Other servers wait for this process until they know.
	case r.written != nil && d.none():
		return r.checkIfDue(ctx, now)
	case pause > 0 && r.ownerless():
		// The Node is read meanwhile: a report without it stays when it is deleted.
		return min(pause, r.checkIfDue(ctx, now))
	case pause > 0:
		return pause
	}
	renewal, err := r.ensureLease(ctx)
	if err != nil {
		return r.finish(ctx, err)
	}
	err = r.send(ctx, spec, d)
	r.lastWrite = r.config.Clock.Now()
	r.noteCheck(r.lastWrite, err)
	if err == nil {
		r.written, r.reportAt, r.due = spec, nil, time.Time{}
		r.confirm(ctx, renewal)
	}
	r.noteConflict(ctx, err)
	return r.finish(ctx, err)
}

// checkIfDue checks from time to time that the report still exists, and returns the pause
// until the next check.
func (r *Reporter) checkIfDue(ctx context.Context, now time.Time) time.Duration {
	period := r.checkPeriod()
	if r.ownerless() {
		period = ownerPeriod
	}
	if next := r.lastCheck.Add(period); now.Before(next) {
		return next.Sub(now) + backoff.Jitter(period/10)
	}
	err := r.check(ctx)
	r.noteCheck(now, err)
	return r.finish(ctx, err)
}

// noteCheck sets the time at which the report was known to exist. After a failure that is
// unknown: the next sync checks, after the pause of finish instead of the longer one of an
// earlier check.
func (r *Reporter) noteCheck(at time.Time, err error) {
	r.lastCheck = at
	if err != nil {
		r.lastCheck = time.Time{}
	}
}
