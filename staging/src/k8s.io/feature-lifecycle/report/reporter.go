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

// Package report tells the cluster which features a process asked for and what
// it found: one FeatureReport for each process, written once the values are
// final and again only when something changed. Binaries start a Reporter beside
// their own work; nothing in here can fail the process or delay it.
package report

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/utils/clock"
)

const (
	// Period is the least time between two writes of one process, unless a
	// value changed.
	Period = time.Minute
	// startJitter spreads the first reports of processes that start together.
	startJitter = 2 * time.Second
	// batchJitter spreads the second reports of those.
	batchJitter = 5 * time.Second
	// minBackoff and maxBackoff bound the pause after a failed write.
	minBackoff, maxBackoff = time.Second, time.Minute
	// patience is the longest pause while the server has no such API or does
	// not allow reports: an older server, say.
	patience = 15 * time.Minute
	// checkPeriod is how often a process on a node looks whether its report is
	// still there; leasedCheckPeriod is the same for one that renews a Lease,
	// which costs more anyhow.
	checkPeriod       = 15 * time.Minute
	leasedCheckPeriod = time.Minute
	// removeTimeout bounds the removal of the report when the process ends.
	removeTimeout = 3 * time.Second
	// removeBackoff is the first pause after a server in trouble did not take it.
	removeBackoff = 200 * time.Millisecond
	// nodePatience is for how long a process looks for its Node when the server has
	// not made it the owner of the report, and ownerPeriod how often.
	nodePatience = time.Minute
	ownerPeriod  = 2 * time.Second
)

// Source is what a reporter observes; *featuregate.Gate is one.
type Source interface {
	Observations() []featuregate.Observation
	News() <-chan struct{}
	EmulationVersion() *utilversion.Version
}

// Config is what a reporter needs.
type Config struct {
	// Namespace is where the report goes: kube-system for Kubernetes' own
	// processes.
	Namespace string
	// Component and Instance identify the process; the report is named
	// <component>.<instance>.
	Component, Instance string
	// NodeName is the node of a node component. The report then belongs to the
	// Node, goes when it goes, and the process counts as alive while the Node
	// is Ready.
	NodeName string
	// BinaryVersion is the version of the binary, for example v1.36.3.
	BinaryVersion string
	// ListAll reports every gate that the process knows: for servers.
	ListAll bool
	// LeaseNamespace is where a process without NodeName renews a small Lease
	// with the name of the report; empty means Namespace. It is
	// kube-feature-lease for reports in kube-system, but for kube-apiserver's.
	LeaseNamespace string
	// Owner says what the report belongs to, and its Lease if that is in the same
	// namespace: they go with it although nobody takes them away. It is asked before the
	// first report, once the server is known to take reports, until it gives an answer;
	// its errors are those of a report that could not be written. A process with
	// NodeName has none of this kind; nil means none.
	Owner func(context.Context) (*metav1.OwnerReference, error)
	// Source is the process's feature gate.
	Source Source
	// Features writes the report. Its configuration should be one of ClientConfig.
	Features versioned.Interface
	// Kube reads the Node and renews the Lease; as Features.
	Kube kubernetes.Interface
	// Peers says how many processes have to report a feature's value when it changes
	// for all of them together, as values.Follower counts them. They take turns, so
	// that a change gets to all before the reports of those that have it. It is
	// called from Run; nil means few.
	Peers func(feature string) int
	// Crowded says whether thousands of processes seem to start with this one, as
	// values.Follower finds it at its start. On a node the first report then comes
	// at a random time within 45 seconds. It is called once, from Run; nil means no.
	Crowded func() bool
	// Refused is called when the server refuses the report for want of permissions; it must
	// not wait. nil means that nobody wants to know.
	Refused func()
	// Clock is the time; nil means the real one.
	Clock clock.WithTicker
}

// Reporter keeps the report of one process. Run is called once, and Remove when Run has
// returned, by one goroutine at a time. Started, Reporting, FlowEnded, Retry and End may be called at any time,
// concurrently with Run and each other; before Run, End waits for it until its time is
// over.
type Reporter struct {
	config Config
	name   string
	// process tells this process from others of the same instance.
	process string
	// started is closed once the first report was written, and before it the Lease.
	started chan struct{}
	begins  sync.Once
	// renewing is the goroutine that renews the Lease, and stopRenewing ends it.
	renewing     sync.WaitGroup
	stopRenewing context.CancelFunc
	// served is what Reporting says.
	served served
	// ending is true once End was called; ends wakes Run for it, and ended is
	// closed when the report says so.
	ending      atomic.Bool
	ends, ended chan struct{}
	// flowEnded is true once FlowEnded was called, and wakes wakes Run for it.
	flowEnded atomic.Bool
	wakes     chan struct{}
	// retries is true once Retry was called, until Run has heard of it.
	retries atomic.Bool

	// owner is what Config.Owner said, nil before.
	owner *metav1.OwnerReference
	// leaseFailures counts failures to renew the Lease in a row, for introduce and
	// then for renewLease.
	leaseFailures int
	// rivals is how many more times the Lease was found renewed by another process than by
	// this one, and rivalled is true once that was said; they belong to who renews it, as
	// leaseFailures.
	rivals   int
	rivalled bool
	// seenRenewal is when the Lease that was read last had been renewed.
	seenRenewal *metav1.MicroTime

	// What follows is used by Run, and by Remove when Run has returned.

	// confirmed is true from the first report on, or from the first that a server took
	// after one that did not have the API.
	confirmed bool
	// attempted is true once a write was sent: the report or the Lease may be
	// there even if no answer came.
	attempted bool
	// stored is the report as the server returned it last.
	stored *v1alpha1.FeatureReport
	// foreign is a report under this process's name that another identity wrote, nil for
	// none.
	foreign *foreign
	// written is what was written last, nil before.
	written *v1alpha1.FeatureReportSpec
	// flowEndWritten is true once that said that the flow has ended.
	flowEndWritten bool
	// lastWrite is when that was; lastCheck is when the report was last known
	// to be there.
	lastWrite, lastCheck time.Time
	// turns are when it is this process's turn to report values that have changed, by
	// feature; place is its place among users of each. due is when something else that
	// differs is reported at the latest, zero while nothing does.
	turns map[string]time.Time
	place float64
	due   time.Time
	// failures and rejections count since the server took the report last: how often it
	// could not, and how often it would not.
	failures, rejections int
	// retryAt is when a server that did not take the report is asked again.
	retryAt time.Time
	// complained is what was logged last of what the server answers, "" since it took
	// the report.
	complained string
	begun      time.Time
}

// New makes a reporter.
func New(config Config) (*Reporter, error) {
	if config.Namespace == "" || config.Component == "" || config.Instance == "" {
		return nil, errors.New("reporter needs Namespace, Component and Instance")
	}
	if config.Source == nil || config.Features == nil || config.Kube == nil {
		return nil, fmt.Errorf("reporter of %s.%s needs Source, Features and Kube", config.Component, config.Instance)
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
	return &Reporter{config: config, name: config.Component + "." + config.Instance, process: string(uuid.NewUUID()), started: make(chan struct{}), ends: make(chan struct{}, 1), wakes: make(chan struct{}, 1), ended: make(chan struct{})}, nil
}

// Started is closed once the first report has been written, and its Lease, or
// that was tried.
func (r *Reporter) Started() <-chan struct{} { return r.started }

// Run keeps the report until the context ends. It leaves the report in place;
// Remove takes it away when the process ends in order.
func (r *Reporter) Run(ctx context.Context) {
	registerMetrics()
	defer r.renewing.Wait()
	r.begun = r.config.Clock.Now()
	wait := r.firstWait()
	// There is news from the start: a process has asked for features before it
	// begins to report. It would end the first pause at once.
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
		case <-r.ends:
			timer.Stop()
			r.markEnding(ctx)
		case <-r.wakes:
			timer.Stop()
		}
		news = r.config.Source.News()
		wait = r.step(ctx)
	}
}

// step writes the report if that is due and returns when to look again.
func (r *Reporter) step(ctx context.Context) time.Duration {
	now, again := r.config.Clock.Now(), r.retries.Swap(false)
	spec := r.observe()
	// What was never written does not wait.
	var d difference
	var pause time.Duration
	if r.written != nil {
		d = compare(r.written, spec)
		pause = r.postponed(d, now)
	}
	switch {
	case now.Before(r.retryAt) && !again:
		// News does not help a server that does not take reports. It waits for its
		// turn meanwhile.
		return r.retryAt.Sub(now)
	case r.written != nil && r.flowEndUnknown():
		// Others wait for this process until they know.
	case r.written != nil && d.none():
		return r.lookAfter(ctx, now)
	case pause > 0 && r.ownerless():
		// The Node is looked for meanwhile: a report that lacks it stays when it goes.
		return min(pause, r.lookAfter(ctx, now))
	case pause > 0:
		return pause
	}
	renewal, err := r.introduce(ctx)
	if err != nil {
		return r.outcome(ctx, err)
	}
	err = r.write(ctx, spec, nil)
	r.lastWrite = r.config.Clock.Now()
	r.checked(r.lastWrite, err)
	if err == nil {
		r.written, r.turns, r.due = spec, nil, time.Time{}
		r.confirm(ctx, renewal)
	}
	r.noteForeign(ctx, err)
	return r.outcome(ctx, err)
}

// lookAfter looks from time to time whether the report is still there, and returns when
// to do so again.
func (r *Reporter) lookAfter(ctx context.Context, now time.Time) time.Duration {
	period := r.checkPeriod()
	if r.ownerless() {
		period = ownerPeriod
	}
	if next := r.lastCheck.Add(period); now.Before(next) {
		return next.Sub(now) + backoff.Jitter(period/10)
	}
	err := r.check(ctx)
	r.checked(now, err)
	return r.outcome(ctx, err)
}

// checked remembers when the report was known to be there. After a failure nobody
// knows that: the next step looks, which outcome delays, and not the one that some
// earlier check allows to come much later.
func (r *Reporter) checked(at time.Time, err error) {
	r.lastCheck = at
	if err != nil {
		r.lastCheck = time.Time{}
	}
}

// introduce writes the Lease before the first report. Who reads the report may act
// on it at once, and a process that dies then has to leave a Lease that expires:
// one that has none is taken for one that ended in order. Where reports are not
// taken nobody asks for a Lease, so the server has to know reports first. It
// returns when to renew the Lease.
func (r *Reporter) introduce(ctx context.Context) (renewal time.Duration, err error) {
	if r.confirmed || r.config.LeaseNamespace == "" {
		return 0, nil
	}
	stored, err := r.config.Features.FeaturesV1alpha1().FeatureReports(r.config.Namespace).Get(ctx, r.name, metav1.GetOptions{})
	switch {
	case err == nil:
		// An earlier process of this instance left it.
		r.stored = stored
		if err := r.takeOver(ctx); err != nil {
			return 0, err
		}
	case backoff.IsNotFound(err) && !backoff.IsAPINotServed(err):
	default:
		return 0, err
	}
	if r.config.Owner != nil {
		if r.owner, err = r.config.Owner(ctx); err != nil {
			return 0, err
		}
	}
	r.attempted = true
	return r.renew(ctx), nil
}

// confirm begins to renew the Lease with the first report.
func (r *Reporter) confirm(ctx context.Context, renewal time.Duration) {
	if r.confirmed {
		return
	}
	r.confirmed = true
	r.begins.Do(func() { close(r.started) })
	if r.config.LeaseNamespace != "" {
		ctx, r.stopRenewing = context.WithCancel(ctx)
		r.renewing.Go(func() { r.renewLease(ctx, renewal) })
	}
}
