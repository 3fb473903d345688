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

package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/feature-lifecycle/agent"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/client/clientset/versioned/scheme"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/feature-lifecycle/lifecycle/controller"
	"k8s.io/utils/clock"
)

// workers is the number of features that are reconciled concurrently. Operators have
// few.
const workers = 1

// defaultLoadTimeout is the time that Load waits for a server: one that restarts is ready
// again in this time.
const defaultLoadTimeout = 15 * time.Second

// ErrNotRunning means that this replica's server flow does not run: it has not started,
// it has ended, or the cluster does not have the API. Errors wrap it (errors.Is).
var ErrNotRunning = errors.New("the server flow of this replica does not run")

// Replica is one process of an operator. Load, Start and Close, or Abandon in the place of
// Close, are called in this order, each once; all else is safe for concurrent use.
type Replica struct {
	config  Config
	clients clients
	clock   clock.WithTicker
	// agent runs from Start to Close: the operator's own work may take longer than Start.
	agent *agent.Agent
	flow  atomic.Pointer[controller.Controller]
	// belongs is the owner of everything that this replica creates, nil for none or while
	// it is unknown. misfit takes the error of a user that cannot be an owner.
	belongs atomic.Pointer[metav1.OwnerReference]
	misfit  chan error
	// permissions are those of the replica, according to the server.
	permissions permissions

	mu   sync.Mutex
	step step
	// running is the agent, and stop ends it; nil before Start.
	running wait.Group
	stop    context.CancelFunc
}

// step is the last call.
type step int

const (
	made step = iota
	loaded
	started
	ended
	closed
)

// steps are the names of calls, by what comes before them.
var steps = map[step]string{made: "Load", loaded: "Start", started: "the end of Start, and then Close", ended: "Close", closed: "nothing: it is closed, and another replica takes its place"}

// advance goes a step further, if it is the next one.
func (r *Replica) advance(call string, to step) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.step != to-1 {
		return fmt.Errorf("operator %s in namespace %s: %s was called, and next is %s", r.config.Component, r.config.Namespace, call, steps[r.step])
	}
	r.step = to
	return nil
}

// New makes a replica. It sends nothing. Its error names all that is wrong with the
// configuration.
func New(config Config) (*Replica, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	c, err := connect(config.Client)
	if err != nil {
		return nil, fmt.Errorf("operator %s in namespace %s: its clients: %w", config.Component, config.Namespace, err)
	}
	return newReplica(config, c, clock.RealClock{})
}

// newReplica makes a replica of a valid configuration. Tests bring clients and a clock.
func newReplica(config Config, c clients, ticking clock.WithTicker) (*Replica, error) {
	if config.LoadTimeout == 0 {
		config.LoadTimeout = defaultLoadTimeout
	}
	r := &Replica{config: config, clients: c, clock: ticking, misfit: make(chan error, 1),
		permissions: permissions{changed: make(chan struct{}), again: make(chan struct{}, 1)}}
	var err error
	r.agent, err = agent.New(agent.Config{
		Reporter: agent.ReporterConfig{
			Namespace: config.Namespace, Component: config.Component, Instance: config.Instance, BinaryVersion: config.Version,
			// A server reports the control also of features that were never queried.
			ListAll: true,
			Source:  config.Control.Source(config.Gate), Clients: agent.Clients{Features: c.own, Kube: c.ownKube},
			Owner: r.owner(), Forbidden: r.permissions.refused, Clock: ticking,
		},
		Syncer: &agent.SyncerConfig{
			Gate:        config.Gate,
			Connect:     func() (versioned.Interface, error) { return c.own, nil },
			AlwaysWatch: true,
			LoadTimeout: max(config.LoadTimeout, 0),
			// The replicas decide all other values themselves.
			Filter: config.Control.Follows,
		},
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Load takes the values that were requested through the API, and declares the gate's
// values final. Code that queries the gate earlier finds the value of the command line,
// and may find another one later. Load waits for the server for Config.LoadTimeout at
// most, and returns the origin of the values. Without an origin those of the command
// line count, until Start has seen others that may change while the process runs. An
// error means that the values were final before, or that Load was called out of order.
func (r *Replica) Load(ctx context.Context) (agent.Origin, error) {
	origin, inTime := agent.FromNowhere, false
	if err := r.advance("Load", loaded); err != nil {
		return origin, err
	}
	r.config.Gate.BeforeFinal(func() { origin, inTime = r.agent.Load(ctx), true })
	r.config.Gate.AddMetrics()
	if !inTime {
		return origin, fmt.Errorf("operator %s in namespace %s: the values of its feature gate are final already, so that those set through the API come too late for features that are not dynamic; call Load before AddMetrics or Finalize of the gate", r.config.Component, r.config.Namespace)
	}
	return origin, nil
}

// Start follows values, reports, and runs the server flow until the context ends,
// whenever the server has the API. It is the Start of a Runnable of controller-runtime.
// Following values and reporting continue until Close, whatever happens to the context.
// The rest of the process may still use its features, and managers of
// controller-runtime stop a replica before they stop controllers. The report records
// that the flow has ended, and other replicas reconcile features meanwhile.
//
// An error means that the configuration cannot work, or that Start was called out of
// order. A server that does not answer, that refuses, or that lacks the API is no
// error: requests are retried periodically. Permissions of Rules, lifecycle.Rules and
// lifecycle.NamespacedRules that the replica lacks are logged in one error, as far as
// the server reports them. Without those to read, the server flow waits for them.
func (r *Replica) Start(ctx context.Context) error {
	if err := r.advance("Start", started); err != nil {
		return err
	}
	defer func() {
		// Start was called before, and Close was not.
		_ = r.advance("", ended)
	}()
	r.run(ctx)
	// The rest of the process may run for long, and be reported as alive. Another replica
	// reconciles features from now on.
	defer r.agent.MarkControllerStopped()
	var reviewing wait.Group
	defer reviewing.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	reviewing.StartWithContext(ctx, r.watchPermissions)
	// A cluster that does not accept reports has no Features to reconcile.
	for ctx.Err() == nil {
		reporting, changed := r.agent.Reporting()
		readable, reviewed := r.permissions.readable()
		if reporting && readable {
			if err := r.serve(ctx, changed); err != nil {
				return err
			}
			continue
		}
		select {
		case <-changed:
		case <-reviewed:
		case err := <-r.misfit:
			return fmt.Errorf("operator %s in namespace %s: %w", r.config.Component, r.config.Namespace, err)
		case <-ctx.Done():
		}
	}
	return nil
}

// run starts the agent, which runs until Close.
func (r *Replica) run(ctx context.Context) {
	own, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop = stop
	r.running.StartWithContext(own, r.agent.Run)
}

// NeedLeaderElection implements LeaderElectionRunnable of controller-runtime: every
// replica reports, and reconciles some features.
func (r *Replica) NeedLeaderElection() bool { return false }

// serve runs the server flow until the context ends, or the server no longer accepts
// reports, which closes gone: the API was removed, and the flow would only get errors.
func (r *Replica) serve(ctx context.Context, gone <-chan struct{}) error {
	ctx, stop := context.WithCancel(ctx)
	var ending wait.Group
	defer ending.Wait()
	defer stop()
	ending.Start(func() {
		select {
		case <-gone:
			stop()
		case <-ctx.Done():
		}
	})
	own, err := r.config.version()
	if err != nil {
		return err
	}
	events := record.NewBroadcaster(record.WithContext(ctx))
	defer events.Shutdown()
	leases := informers.NewSharedInformerFactoryWithOptions(r.clients.kube, 0, informers.WithNamespace(r.config.Namespace))
	flow, err := controller.New(controller.Config{
		Namespace: r.config.Namespace, Component: r.config.Component, ServerID: r.config.Instance,
		Features: r.config.Features, Settings: r.config.Settings.flow(),
		Specs: r.config.Gate.GetAllVersioned(), SpecsUpTo: own, Dependencies: r.config.Gate.Dependencies(),
		Client: r.clients.features, Tasks: r.clients.tasks,
		Leases:   []cache.SharedIndexInformer{leases.Coordination().V1().Leases().Informer()},
		Owner:    r.belongs.Load(),
		Recorder: events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: r.config.Component}),
		Clock:    r.clock,
	})
	if err != nil {
		return err
	}
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: r.clients.kube.CoreV1().Events(r.config.Namespace)})
	leases.StartWithContext(ctx)
	defer leases.Shutdown()
	defer r.flow.Store(nil)
	flow.Run(ctx, workers, func() { r.flow.Store(flow) })
	return nil
}

// Close ends what Start has left running, and deletes the report, in some seconds at
// most: this process no longer uses any feature. Call it when Start has returned and
// the operator's own work has ended. An error means that the report stays, as that of a
// replica that has crashed (Abandon).
//
// A process that continues without Close or Abandon renews the Lease of its report for
// as long as it runs, and so counts as one that uses its features.
func (r *Replica) Close(ctx context.Context) error {
	if err := r.end("Close"); err != nil {
		return err
	}
	if err := r.agent.Remove(ctx); err != nil {
		return fmt.Errorf("operator %s in namespace %s: %w; the report stays, and features wait for this replica until its Lease has expired and for Settings.Grace after that", r.config.Component, r.config.Namespace, err)
	}
	return nil
}

// Abandon ends what Start has left running, and leaves the report, as a crash of the
// process does. It takes the place of Close when the operator's own work failed and may
// still be under way: other replicas wait until the Lease has expired (agent.LeaseDuration)
// and for Settings.Grace after that, or until another process of this instance reports. It
// sends nothing. A process that ends at once need not call it. The error means that it is
// not its turn: Start has not returned, or the replica is closed.
func (r *Replica) Abandon() error {
	return r.end("Abandon")
}

// end ends the agent, if Start has started it.
func (r *Replica) end(call string) error {
	r.mu.Lock()
	step, stop := r.step, r.stop
	switch step {
	case made, loaded, ended:
		r.step = closed
	case started, closed:
		r.mu.Unlock()
		return fmt.Errorf("operator %s in namespace %s: %s was called, and next is %s", r.config.Component, r.config.Namespace, call, steps[step])
	}
	r.mu.Unlock()
	if stop != nil {
		stop()
		r.running.Wait()
	}
	return nil
}

// Plan returns what a change of a feature would do (as kubectl feature plan for those
// of Kubernetes). It changes nothing. The spec of the request has the change, of the
// value or the version; its name and namespace may be left out. Errors are those of an
// API (apierrors): IsBadRequest for an invalid request, IsNotFound for a missing
// feature. If this replica has no answer, errors.Is(err, ErrNotRunning).
func (r *Replica) Plan(ctx context.Context, feature string, request *v1alpha1.FeaturePlan) (*v1alpha1.FeaturePlanStatus, error) {
	if request != nil && (request.Name != "" && request.Name != feature || request.Namespace != "" && request.Namespace != r.config.Namespace) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the plan is named %s, and is asked of feature %s in namespace %s; leave its name and namespace out or make them equal", types.NamespacedName{Namespace: request.Namespace, Name: request.Name}, feature, r.config.Namespace))
	}
	flow, found, err := r.ask(ctx, feature)
	if err != nil {
		return nil, err
	}
	return flow.Plan(ctx, found, request)
}

// Clean begins to remove what a feature that is off has left behind. Errors are those of
// an API: apierrors.IsConflict if there is nothing to clean, or not now, IsNotFound for a
// feature that is not there. If this replica cannot, errors.Is(err, ErrNotRunning).
func (r *Replica) Clean(ctx context.Context, feature string) (*v1alpha1.FeatureCleanupStatus, error) {
	flow, found, err := r.ask(ctx, feature)
	if err != nil {
		return nil, err
	}
	return flow.Clean(ctx, found)
}

func (r *Replica) ask(ctx context.Context, name string) (*controller.Controller, *v1alpha1.Feature, error) {
	flow := r.flow.Load()
	if flow == nil {
		return nil, nil, fmt.Errorf("feature %s in namespace %s: %w", name, r.config.Namespace, ErrNotRunning)
	}
	feature, err := r.clients.features.FeaturesV1alpha1().Features(r.config.Namespace).Get(ctx, name, metav1.GetOptions{})
	if backoff.IsAPINotServed(err) {
		// It existed a moment ago, and the flow will receive the event.
		return nil, nil, fmt.Errorf("feature %s in namespace %s: %w: the server does not have the API %s any more", name, r.config.Namespace, ErrNotRunning, v1alpha1.SchemeGroupVersion)
	}
	return flow, feature, err
}
