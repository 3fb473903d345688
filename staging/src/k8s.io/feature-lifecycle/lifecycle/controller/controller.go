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

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/client/informers/externalversions"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Config is what a controller needs. All fields are required unless stated otherwise.
type Config struct {
	// Namespace has the Features and FeatureReports that this server flow reconciles.
	Namespace string
	// Component is the component whose processes are the servers, for example
	// kube-apiserver. They have to agree on what is configured.
	Component string
	// ServerID is this server's instance name in its FeatureReport, and the
	// name of its identity Lease if it has one.
	ServerID string
	// Features are the declarations of the authors.
	Features []lifecycle.Feature
	// Specs are the gates' specs by version, as of GetAllVersioned, for the
	// conditions UpgradeSafe and DowngradeSafe; features that are not in it have
	// none.
	Specs map[featuregate.Feature]featuregate.VersionedSpecs
	// SpecsUpTo is the minor version of the binary, up to which Specs are complete: a
	// binary that emulates a lower version knows the next one. Nil means that they do not
	// cover versions above the cluster's.
	SpecsUpTo *utilversion.Version
	// SpecsFrom is the lowest minor version that Specs are complete for, which is
	// the lowest that the binary can emulate. Nil means that it is not known.
	SpecsFrom *utilversion.Version
	// Dependencies are those between the gates, as of the gate's method of this name, for
	// plans and for the conditions UpgradeSafe and DowngradeSafe.
	Dependencies map[featuregate.Feature][]featuregate.Feature
	// NotServed returns a sentence for each API that a feature needs while it is on and this
	// server does not serve, with the flag that changes it. It is called often and must not
	// wait. Nil means that features need nothing.
	NotServed func(feature string) []string
	// Settings are the periods. Each that is 0 has its default, as in DefaultSettings.
	// transition.None in Grace or KeepUnknownMinors means 0.
	Settings transition.Settings
	// Client reads and writes Features and reads FeatureReports.
	Client versioned.Interface
	// Tasks are the clients with which tasks work. Dynamic is required: it reads and
	// deletes Leases of failed processes. Flow is set to Namespace.
	Tasks task.Clients
	// Leases are informers of the Leases that reports name. Their creator starts them.
	Leases []cache.SharedIndexInformer
	// IsIdentity decides which Leases are identities of servers, named as their instances,
	// so that a live server that has not reported is seen. Nil means that they have none
	// but the Leases of their reports, with the label v1alpha1.LabelComponent. They renew
	// these before the first report and after a deletion.
	IsIdentity func(*coordinationv1.Lease) bool
	// Nodes shows which nodes exist and are Ready. Without it node components count as
	// alive until their reports are deleted, and none is expected.
	Nodes coreinformers.NodeInformer
	// Owner is the owner of the Features that this flow creates: they are deleted with it.
	// Nil means none.
	Owner *metav1.OwnerReference
	// Recorder writes events on Features.
	Recorder record.EventRecorder
	// Clock is the time; nil means the real one.
	Clock clock.WithTicker
}

// Controller is one server's part of the server flow: it reconciles the Features that this
// server leads, and answers for all of them.
type Controller struct {
	*observer
	reconciler *reconciler
	values     *publisher
	planner    *planner
	cleaner    *cleaner
	expirer    *expirer
	// shown is what metrics show.
	shown *shownFeatures

	informers externalversions.SharedInformerFactory
	synced    []cache.DoneChecker
	handlers  []func()
	queue     *featureQueue
}

// New makes a controller. It returns an error that names what is wrong with the
// declarations or the configuration. Its metrics are shown from now until Run
// returns; of several in one namespace the newest one's.
func New(config Config) (*Controller, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	informers := externalversions.NewSharedInformerFactoryWithOptions(config.Client, 0, externalversions.WithNamespace(config.Namespace),
		// What thousands of processes report alike is held once.
		externalversions.WithTransform(shareReports()))
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(newRateLimiter(),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: queueName(config.Namespace), Clock: config.Clock})
	c, err := newController(config, informers, queue)
	if err != nil {
		queue.ShutDown()
		return nil, err
	}
	registerMetrics()
	collected.add(c)
	return c, nil
}

// complete checks the configuration and fills in what it leaves out.
func (c *Config) complete() error {
	if err := lifecycle.Validate(c.Features); err != nil {
		return fmt.Errorf("declared features: %w", err)
	}
	if c.Namespace == "" || c.Component == "" || c.ServerID == "" {
		return errors.New("controller needs Namespace, Component and ServerID")
	}
	if c.Tasks.Dynamic == nil {
		return errors.New("controller needs Tasks.Dynamic, a client of client-go/dynamic")
	}
	c.Tasks.Flow = c.Namespace
	if c.Tasks.Storage == nil {
		if err := lifecycle.ValidateWithoutStorage(c.Features); err != nil {
			return fmt.Errorf("declared features: %w", err)
		}
	}
	c.Settings = c.Settings.OrDefault()
	var errs []error
	for _, invalid := range c.Settings.Validate() {
		errs = append(errs, fmt.Errorf("controller: Settings.%w", invalid))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	return nil
}

// newController makes a controller of a complete configuration. Tests bring
// informers and a queue of their own, which do nothing by themselves.
func newController(config Config, informers externalversions.SharedInformerFactory, queue workqueue.TypedRateLimitingInterface[string]) (*Controller, error) {
	features := &featureQueue{queue, newBatches(), config.Clock}
	o := &observer{
		config: &config,
		binary: versionskew.Binary{
			Specs: config.Specs, From: config.SpecsFrom, UpTo: config.SpecsUpTo, Dependencies: config.Dependencies,
		},
		features: declarations{},
		lister:   informers.Features().V1alpha1().Features().Lister().Features(config.Namespace),
		tracker: tracker.New(tracker.Config{
			Namespace:   config.Namespace,
			Servers:     config.Component,
			IsIdentity:  config.IsIdentity,
			Nodes:       config.Nodes != nil,
			Settings:    config.Settings.Settings,
			MaxCrashes:  config.Settings.Canary.CrashLoop,
			CrashWindow: config.Settings.Canary.CrashWindow,
			Dependences: versionskew.Dependencies(config.Dependencies).Dependences(),
		}),
		led: newLedFeatures(),
	}
	var tasks lifecycle.Tasks
	for _, feature := range config.Features {
		o.features[string(feature.Name)] = feature
		tasks = append(tasks, feature.AllTasks()...)
	}
	config.Tasks.ClearedBy = o.clearedBy
	o.runner = newRunner(config.Namespace, config.Tasks, config.Clock, features.addAfter)
	o.finder = newFinder(config.Tasks, tasks, config.Clock, features.addAfter)
	o.finder.absent.servers = func() []tracker.Server { return o.tracker.Servers("", config.Clock.Now()) }
	shown := newShownFeatures()
	c := &Controller{
		observer:  o,
		planner:   &planner{o},
		cleaner:   &cleaner{o, features.addAfter},
		expirer:   &expirer{config: &config, tracker: o.tracker},
		shown:     shown,
		informers: informers,
		queue:     features,
	}
	if err := c.watchValues(); err != nil {
		return nil, err
	}
	c.reconciler = &reconciler{o, features, c.values, shown}
	if err := c.watch(); err != nil {
		return nil, err
	}
	return c, nil
}

// Plan returns what a change of a feature would do: one of its value, or one of the
// cluster's version, which may change the value, too. It reads only; any server can
// answer. Only the spec of the request counts: the feature is the one given. An error
// for which apierrors.IsBadRequest is true explains what is wrong with the request.
func (c *Controller) Plan(ctx context.Context, feature *v1alpha1.Feature, request *v1alpha1.FeaturePlan) (*v1alpha1.FeaturePlanStatus, error) {
	return c.planner.plan(ctx, feature, request)
}

// Clean starts the removal of the leftovers of a feature that is off, as a transition
// like any other. Any server may start it; the feature's leader continues it. An error
// for which apierrors.IsConflict is true explains why there is nothing to clean, or not
// now.
func (c *Controller) Clean(ctx context.Context, feature *v1alpha1.Feature) (*v1alpha1.FeatureCleanupStatus, error) {
	return c.cleaner.clean(ctx, feature)
}

// Cleanable returns the error that Clean would, and changes nothing.
func (c *Controller) Cleanable(ctx context.Context, feature *v1alpha1.Feature) error {
	found := false
	_, err := c.cleaner.cleanUp(ctx, feature, &found)
	return err
}

// Run reconciles features until the context ends, and returns when everything it
// started has ended. A controller runs once; another one replaces it. It calls ready,
// if not nil, once it has a complete view: earlier plans would be wrong.
func (c *Controller) Run(ctx context.Context, workers int, ready func()) {
	defer utilruntime.HandleCrashWithContext(ctx)
	logger := klog.FromContext(ctx)
	logger.Info("Starting the feature lifecycle controller", "server", c.config.ServerID, "namespace", c.config.Namespace)
	defer logger.Info("Feature lifecycle controller stopped")
	defer collected.remove(c)
	defer c.queue.drain()
	defer func() {
		for _, remove := range c.handlers {
			remove()
		}
	}()
	c.informers.StartWithContext(ctx)
	defer c.informers.Shutdown()
	// This waits without polling: reconciling begins as soon as the view is complete.
	if !cache.WaitFor(ctx, "feature lifecycle caches", c.synced...) {
		return
	}
	c.shown.running.Store(true)
	defer c.shown.running.Store(false)
	if ready != nil {
		ready()
	}
	var group wait.Group
	for range workers {
		group.StartWithContext(ctx, c.work)
	}
	group.StartWithContext(ctx, func(ctx context.Context) { every(ctx, c.config.Clock, noticePeriod, c.notice) })
	group.StartWithContext(ctx, c.queue.flushQuiet)
	group.StartWithContext(ctx, c.awaitValues)
	// Deleting may take long, and others have to be noticed meanwhile.
	group.StartWithContext(ctx, func(ctx context.Context) { every(ctx, c.config.Clock, noticePeriod, c.expirer.deleteExpired) })
	c.enqueueEverything()
	<-ctx.Done()
	c.queue.ShutDown()
	group.Wait()
	c.runner.drain()
	c.finder.drain()
}

// noticePeriod is how often a server checks for changes without events.
const noticePeriod = 5 * time.Second

// notice checks for changes without events: a server's Lease has not changed for too
// long, or a server is no longer starting. It reads memory and writes nothing.
func (c *Controller) notice(context.Context) {
	now := c.config.Clock.Now()
	c.enqueueChanges(c.tracker.Advance(now))
	// A server that returns as another binary is no other server.
	c.finder.absent.observe()
	c.queue.batches.forget(now)
}

func (c *Controller) work(ctx context.Context) {
	for {
		name, quit := c.queue.Get()
		if quit {
			return
		}
		// Without the API nothing can be synced, which the watches report once.
		if err := c.process(ctx, name); err != nil && ctx.Err() == nil && !isConflict(err) && !backoff.IsAPINotServed(err) && !errors.Is(err, errNotPermitted) {
			utilruntime.HandleErrorWithContext(ctx, err, "Failed to sync Feature, requeuing", "feature", name)
		}
	}
}

// process reconciles a feature that was taken from the queue.
func (c *Controller) process(ctx context.Context, name string) error {
	return c.queue.handle(name, func() error { return c.reconciler.sync(ctx, name) })
}

// enqueueEverything reconciles every feature at once.
func (c *Controller) enqueueEverything() {
	for _, key := range c.informers.Features().V1alpha1().Features().Informer().GetStore().ListKeys() {
		if _, name, err := cache.SplitMetaNamespaceKey(key); err == nil {
			c.queue.Add(name)
		}
	}
	c.queue.addNow(c.tracker.Features()...)
}

// every calls a function again and again until the context ends.
func every(ctx context.Context, clock clock.WithTicker, period time.Duration, do func(context.Context)) {
	ticker := clock.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			do(ctx)
		}
	}
}
