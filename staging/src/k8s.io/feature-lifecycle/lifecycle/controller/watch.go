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
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/feature-lifecycle/watchtools"
)

// watch hangs the controller's handlers on the informers.
func (c *Controller) watch() error {
	api := c.informers.Features().V1alpha1()
	failed := watchtools.NewWatchErrorHandler("the server flow", c.config.Namespace)
	for _, informer := range []cache.SharedIndexInformer{api.Features().Informer(), api.FeatureReports().Informer()} {
		if err := informer.SetWatchErrorHandlerWithContext(failed); err != nil {
			return fmt.Errorf("watching for the feature lifecycle: %w", err)
		}
	}
	if err := c.register(api.Features().Informer(), cache.ResourceEventHandlerFuncs{AddFunc: c.featureAddedOrDeleted, UpdateFunc: c.featureStored, DeleteFunc: c.featureAddedOrDeleted}); err != nil {
		return err
	}
	if err := track(c, api.FeatureReports().Informer(), c.reportSet, c.reportDeleted); err != nil {
		return err
	}
	for _, informer := range c.config.Leases {
		if err := track(c, informer, c.tracker.SetLease, c.tracker.DeleteLease); err != nil {
			return err
		}
	}
	if c.config.Nodes == nil {
		return nil
	}
	return track(c, c.config.Nodes.Informer(), c.tracker.SetNode, c.tracker.DeleteNode)
}

// watchValues hangs the publisher on the informer of FeatureValues. Reconciling does not
// wait for it: a server without FeatureValues has no other disadvantage.
func (c *Controller) watchValues() error {
	informer := c.informers.Features().V1alpha1().FeatureValues().Informer()
	if err := informer.SetWatchErrorHandlerWithContext(watchtools.NewWatchErrorHandler("the values that processes follow", c.config.Namespace)); err != nil {
		return fmt.Errorf("watching feature values for the feature lifecycle: %w", err)
	}
	handle := func(object any) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if err != nil {
			return
		}
		if _, name, _ := cache.SplitMetaNamespaceKey(key); c.values.behind(name) {
			c.queue.Add(name)
		}
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: handle, UpdateFunc: func(_, object any) { handle(object) }, DeleteFunc: handle,
	})
	if err != nil {
		return fmt.Errorf("watching feature values for the feature lifecycle: %w", err)
	}
	c.handlers = append(c.handlers, func() { _ = informer.RemoveEventHandler(registration) })
	c.values = newPublisher(c.observer, informer.GetStore(), registration.HasSyncedChecker())
	return nil
}

// awaitValues enqueues the features whose values are not published, once the cache of
// values is complete.
func (c *Controller) awaitValues(ctx context.Context) {
	if !cache.WaitFor(ctx, "feature values", c.values.listed) {
		return
	}
	stores := []cache.Store{c.informers.Features().V1alpha1().Features().Informer().GetStore(), c.values.stored}
	for _, store := range stores {
		for _, key := range store.ListKeys() {
			if _, name, err := cache.SplitMetaNamespaceKey(key); err == nil && c.values.behind(name) {
				c.queue.Add(name)
			}
		}
	}
}

// track passes the objects of an informer to the tracker and enqueues what they change.
func track[T any](c *Controller, informer cache.SharedIndexInformer, set, remove func(object T, now time.Time) tracker.Changes) error {
	handle := func(object any, record func(T, time.Time) tracker.Changes) {
		if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		if tracked, ok := object.(T); ok {
			c.enqueueChanges(record(tracked, c.config.Clock.Now()))
		}
	}
	return c.register(informer, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { handle(object, set) },
		UpdateFunc: func(_, object any) { handle(object, set) },
		DeleteFunc: func(object any) { handle(object, remove) },
	})
}

// register hangs handlers on an informer until Run returns.
func (c *Controller) register(informer cache.SharedIndexInformer, handlers cache.ResourceEventHandlerFuncs) error {
	registration, err := informer.AddEventHandler(handlers)
	if err != nil {
		return fmt.Errorf("watching for the feature lifecycle: %w", err)
	}
	c.synced = append(c.synced, registration.HasSyncedChecker())
	c.handlers = append(c.handlers, func() { _ = informer.RemoveEventHandler(registration) })
	return nil
}

// featureStored enqueues a feature that was stored. Most of these changes are counts
// that the server flow has written itself. While many reports arrive, each immediate
// reconciliation would find more of them, and write again. All that follow a dynamic
// feature receive each write, most of all while they wait for its new value.
func (c *Controller) featureStored(old, object any) {
	before, ok := old.(*v1alpha1.Feature)
	after, is := object.(*v1alpha1.Feature)
	if !ok || !is {
		return
	}
	switch name := after.Name; {
	case before.Generation != after.Generation:
		c.queue.Add(name)
	case transition.Stepped(&before.Status, &after.Status):
		if c.runner.attempt(name) == nil && transition.AwaitsUsers(&after.Status) {
			c.queue.batches.expect(name, transition.Awaited(&before.Status, &after.Status), c.config.Clock.Now())
			c.queue.addBatched(name)
			return
		}
		c.queue.Add(name)
	case transition.Widened(&before.Status, &after.Status):
		c.queue.batches.expect(name, transition.Awaited(&before.Status, &after.Status), c.config.Clock.Now())
		c.queue.addBatched(name)
	case c.queue.batches.waits(name):
		// It is reconciled with the reports that arrive.
	case transition.OnlyCounted(before, after):
		c.queue.addAfter(name, max(c.queue.batches.least(name), countPeriod))
	default:
		c.queue.addAfter(name, c.queue.batches.least(name))
	}
}

// countPeriod is the delay for a feature of which only counts have changed. It needs no
// action. While very many kubelets report for the first time each reconciliation finds
// fewer missing reports, which all features count.
const countPeriod = (tracker.MaxDeferrals + 1) * noticePeriod

// featureAddedOrDeleted enqueues a feature that was created or deleted.
func (c *Controller) featureAddedOrDeleted(object any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
		_, name, _ := cache.SplitMetaNamespaceKey(key)
		c.queue.Add(name)
	}
}

// reportSet records a report that was stored.
func (c *Controller) reportSet(report *v1alpha1.FeatureReport, now time.Time) tracker.Changes {
	changes := c.tracker.SetReport(report, now)
	if report.Spec.Component == c.config.Component {
		changes.Features = c.enqueueDisagreeing(report, changes.Features)
	}
	return changes
}

// reportDeleted records that a report was deleted.
func (c *Controller) reportDeleted(report *v1alpha1.FeatureReport, now time.Time) tracker.Changes {
	changes := c.tracker.DeleteReport(report, now)
	if report.Spec.Component == c.config.Component {
		c.queue.addNow(changes.Features...)
		changes.Features = nil
	}
	return changes
}

// enqueueDisagreeing enqueues at once those of the features in a server's report whose
// value differs from the configured one, and returns the others. The server may already
// use what is being removed.
func (c *Controller) enqueueDisagreeing(report *v1alpha1.FeatureReport, names []string) (agreeing []string) {
	for _, name := range names {
		feature, err := c.lister.Get(name)
		if err == nil && feature.Status.Configured != nil && slices.ContainsFunc(report.Spec.Features, func(f v1alpha1.ReportedFeature) bool {
			return f.Name == name && f.Enabled == feature.Status.Configured.Value
		}) {
			agreeing = append(agreeing, name)
		} else {
			c.queue.Add(name)
		}
	}
	return agreeing
}

// enqueueChanges enqueues the features that a change concerns.
func (c *Controller) enqueueChanges(changes tracker.Changes) {
	c.queue.addBatched(changes.Features...)
	if changes.Transitions {
		c.enqueueTransitions()
	}
	if changes.All {
		c.finder.absent.observe()
		c.enqueueEverything()
	}
}

// enqueueTransitions enqueues the features with a transition under way.
func (c *Controller) enqueueTransitions() {
	// Listing from the cache cannot fail.
	features, _ := c.lister.List(labels.Everything())
	var names []string
	for _, feature := range features {
		if len(feature.Status.Tasks) > 0 {
			names = append(names, feature.Name)
		}
	}
	c.queue.addBatched(names...)
}
