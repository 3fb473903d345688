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

package controller

import (
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/quiet"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// watch hangs the controller's handlers on the informers.
func (c *Controller) watch() error {
	api := c.informers.Features().V1alpha1()
	watches := &quiet.Watches{Purpose: "the server flow", Namespace: c.config.Namespace}
	for _, informer := range []cache.SharedIndexInformer{api.Features().Informer(), api.FeatureReports().Informer()} {
		if err := informer.SetWatchErrorHandlerWithContext(watches.Failed); err != nil {
			return fmt.Errorf("watching for the feature lifecycle: %w", err)
		}
	}
	if err := c.register(api.Features().Informer(), cache.ResourceEventHandlerFuncs{AddFunc: c.featureCame, UpdateFunc: c.featureStored, DeleteFunc: c.featureCame}); err != nil {
		return err
	}
	if err := c.handle(api.FeatureReports().Informer(), c.reportChanged); err != nil {
		return err
	}
	for _, informer := range c.config.Leases {
		if err := c.handle(informer, c.leaseChanged); err != nil {
			return err
		}
	}
	if c.config.Nodes == nil {
		return nil
	}
	return c.handle(c.config.Nodes.Informer(), c.nodeChanged)
}

// handle calls changed for every object that comes, changes or goes.
func (c *Controller) handle(informer cache.SharedIndexInformer, changed func(object any, gone bool)) error {
	return c.register(informer, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { changed(object, false) },
		UpdateFunc: func(_, object any) { changed(object, false) },
		DeleteFunc: func(object any) { changed(object, true) },
	})
}

// register hangs handlers on an informer until Run returns.
func (c *Controller) register(informer cache.SharedIndexInformer, handlers cache.ResourceEventHandlerFuncs) error {
	registration, err := informer.AddEventHandler(handlers)
	if err != nil {
		return fmt.Errorf("watching for the feature lifecycle: %w", err)
	}
	c.synced = append(c.synced, registration.HasSynced)
	c.handlers = append(c.handlers, func() { _ = informer.RemoveEventHandler(registration) })
	return nil
}

// featureStored looks at a feature that was stored. Most of these changes are counts
// that the server flow has written itself: while many reports arrive, each look that
// follows at once would find more of them, and write again. All who follow a dynamic
// feature get what is written, most of all when they wait for its new value.
func (c *Controller) featureStored(old, object any) {
	before, ok := old.(*v1alpha1.Feature)
	after, is := object.(*v1alpha1.Feature)
	if !ok || !is {
		return
	}
	switch name := after.Name; {
	case before.Generation != after.Generation:
		c.queue.Add(name)
	case stepped(&before.Status, &after.Status):
		if c.runner.attempt(name) == nil && awaitsUsers(&after.Status) {
			c.batches.expect(name, awaited(&before.Status, &after.Status), c.config.Clock.Now())
			c.enqueue([]string{name})
			return
		}
		c.queue.Add(name)
	case c.batches.waits(name):
		// It is looked at with the reports that arrive.
	case counted(before, after):
		c.enqueueAfter(name, max(c.batches.least(name), countPeriod))
	default:
		c.enqueueAfter(name, c.batches.least(name))
	}
}

// countPeriod is after which time a feature is looked at of which only counts have
// changed. There is nothing to do for it, and while very many kubelets report for the
// first time each look finds fewer that are silent, which all features count.
const countPeriod = (mostPutOff + 1) * noticePeriod

// counted is true when nothing is under way, and nothing has changed but who was counted,
// and what conditions say of them. A canary lives of who is counted.
func counted(before, after *v1alpha1.Feature) bool {
	if before.Status.Transition != nil || after.Status.Transition != nil || after.Spec.Rollout != nil {
		return false
	}
	rest := func(f *v1alpha1.Feature) *v1alpha1.FeatureStatus {
		without := f.Status
		without.Uses, without.Conditions = nil, slices.Clone(f.Status.Conditions)
		for i := range without.Conditions {
			without.Conditions[i].Message = ""
		}
		return &without
	}
	return equality.Semantic.DeepEqual(rest(before), rest(after))
}

// awaitsUsers is true while a transition waits for users that have the other value:
// there is nothing to do before they report.
func awaitsUsers(s *v1alpha1.FeatureStatus) bool {
	// Changes of version wait for servers.
	return s.Transition != nil && !transition.OfVersion(s.State) && len(s.Tasks) > 0 && s.Tasks[0].Name == v1alpha1.TaskWaitForUses &&
		meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionUsesMatch)
}

// awaited is how many users are about to report the value that a transition has begun to
// wait for: by what was counted last, those that had another one.
func awaited(before, after *v1alpha1.FeatureStatus) int {
	uses := after.Uses
	if len(uses) == 0 {
		// It has just begun: they are counted anew.
		uses = before.Uses
	}
	users := 0
	for _, use := range uses {
		if use.Enabled == nil || after.Configured == nil || *use.Enabled != after.Configured.Value {
			users += int(use.Count)
		}
	}
	return users
}

// stepped is true when a transition began, ended or came a step forward: there is
// something to do now, or an attempt to stop.
func stepped(before, after *v1alpha1.FeatureStatus) bool {
	under := func(s *v1alpha1.FeatureStatus) string {
		if s.Transition == nil {
			return ""
		}
		return s.Transition.ID
	}
	return before.State != after.State || under(before) != under(after) || len(before.Tasks) != len(after.Tasks)
}

// featureCame looks at a feature that came or went.
func (c *Controller) featureCame(object any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
		_, name, _ := cache.SplitMetaNamespaceKey(key)
		c.queue.Add(name)
	}
}

func (c *Controller) reportChanged(object any, gone bool) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	report, ok := object.(*v1alpha1.FeatureReport)
	if !ok {
		return
	}
	known, now := c.reports.has(report.Name), c.config.Clock.Now()
	enqueue := c.enqueue
	if report.Spec.Component == c.config.Component {
		enqueue = func(names []string) { c.enqueueServer(report, gone, names) }
	}
	if gone {
		if alive, since, exists := c.alive(report, now); exists && !alive && c.died(report, now) {
			c.vanish(report, since, c.lastSeen(report, since), now)
		}
		// From now on, whatever was known of the one before it.
		c.liveness.arrived(report.Name)
		enqueue(c.reports.remove(report.Name, now))
		if lease := report.Spec.Liveness.Lease; lease != nil {
			c.liveness.forgetLease(types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name})
		}
		// It may have been seen between its Node's end and its own.
		c.liveness.nodeFound(report.Name)
	} else {
		c.vanished.forget(report.Name)
		changed := c.reports.set(report, now)
		// Not before it is known: who looks meanwhile would note that it is missing.
		c.liveness.arrived(report.Name)
		enqueue(changed)
	}
	if known == gone {
		// It may be what a transition waits for, whatever it lists.
		c.enqueueTransitions()
	}
	if report.Spec.Component == c.config.Component {
		c.noticeServers()
	}
}

// enqueueServer looks at features that a server has reported: at once, unless it has
// the value that is configured. One that has another may use at once what is being
// removed.
func (c *Controller) enqueueServer(report *v1alpha1.FeatureReport, gone bool, names []string) {
	agrees := func(name string) bool {
		feature, err := c.lister.Get(name)
		if gone || err != nil || feature.Status.Configured == nil {
			return false
		}
		return slices.ContainsFunc(report.Spec.Features, func(f v1alpha1.ReportedFeature) bool {
			return f.Name == name && f.Enabled == feature.Status.Configured.Value
		})
	}
	var now, later []string
	for _, name := range names {
		if agrees(name) {
			later = append(later, name)
		} else {
			now = append(now, name)
		}
	}
	c.enqueueNow(now)
	c.enqueue(later)
}

func (c *Controller) leaseChanged(object any, gone bool) {
	lease := asLease(object)
	if lease == nil {
		return
	}
	now := c.config.Clock.Now()
	key := types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}
	wasAlive, since := c.liveness.lease(key, now)
	c.noteIdentity(lease, gone)
	if gone {
		if c.liveness.leaseDied(key, now) {
			// Whoever retires a report deletes its Lease first.
			c.noteVanished(c.reports.naming(key), since, c.liveness.leaseSeen(key, since), now)
		}
		c.liveness.forget(key, now)
		if !c.reports.named(key) {
			c.liveness.forgetLease(key)
		}
		c.liveness.arrived(c.config.Component + "." + key.Name)
		c.liveness.arrived(key.Name)
		c.processes.forget(key.String())
	} else {
		c.liveness.observe(lease, now)
	}
	isAlive := false
	if !gone {
		// Asking for one that is gone would remember it.
		isAlive, _ = c.liveness.lease(key, now)
	}
	if isAlive != wasAlive || !c.reports.has(lease.Name) {
		c.silence.leasesChanged()
	}
	if isAlive != wasAlive {
		c.enqueueLease(key)
		if !c.reports.named(key) {
			c.enqueueTransitions()
		}
		c.noticeServers()
	}
}

// noteIdentity remembers which Leases say that a server exists.
func (c *Controller) noteIdentity(lease *coordinationv1.Lease, gone bool) {
	key := types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}
	c.mu.Lock()
	defer c.mu.Unlock()
	if id, is := c.config.identity(lease); is && !gone {
		c.identityLeases[key] = id
	} else {
		delete(c.identityLeases, key)
	}
}

func (c *Controller) enqueueLease(key types.NamespacedName) {
	c.enqueue(c.reports.featuresOf(c.reports.naming(key)))
}

func (c *Controller) nodeChanged(object any, gone bool) {
	node := asNode(object)
	if node == nil {
		return
	}
	// What lives on it counts for canaries from when it was seen to be Ready.
	now := c.config.Clock.Now()
	_, since := c.liveness.node(node, now)
	if gone {
		if c.liveness.nodeDied(node) {
			c.noteVanished(c.reports.onNode(node.Name), since, nodeSeen(node, since), now)
		}
		c.liveness.forgetNode(node.Name, kubelet+"."+node.Name)
		c.nodes.forget(node.Name)
	}
	c.reports.node(node.Name, !gone, nodeState{ready: ready(node), kubelet: node.Status.NodeInfo.KubeletVersion})
	if !gone && !c.nodes.changed(node.Name, ready(node)) {
		return
	}
	for _, report := range c.reports.onNode(node.Name) {
		c.liveness.nodeFound(report.Name)
	}
	c.enqueueNode(node.Name)
	if !c.reports.has(kubelet + "." + node.Name) {
		c.enqueueTransitions()
	}
}

// enqueueTransitions looks at the features that are under way.
func (c *Controller) enqueueTransitions() {
	// Listing from the cache cannot fail.
	features, _ := c.lister.List(labels.Everything())
	var names []string
	for _, feature := range features {
		if len(feature.Status.Tasks) > 0 {
			names = append(names, feature.Name)
		}
	}
	c.enqueue(names)
}

func (c *Controller) enqueueNode(name string) {
	c.enqueue(c.reports.featuresOf(c.reports.onNode(name)))
}

// noticeServers looks at every feature when the set of live servers changed:
// leadership may have moved.
func (c *Controller) noticeServers() {
	var ids []string
	for _, server := range c.serversNow() {
		id := server.ID
		if server.Starting {
			id += " (starting)"
		}
		if !server.Reported {
			id += " (silent)"
		}
		if server.ControllerStopped {
			id += " (without a flow)"
		}
		ids = append(ids, id+"@"+server.Version)
	}
	servers := strings.Join(ids, ",")
	c.mu.Lock()
	changed := servers != c.servers
	c.servers = servers
	c.mu.Unlock()
	if changed {
		c.enqueueEverything()
	}
}

// noticeProcesses looks at the features of processes whose Lease has expired
// unannounced, and at all when a kubelet has been silent for too long, or is upgraded while it is.
func (c *Controller) noticeProcesses() {
	now := c.config.Clock.Now()
	for _, informer := range c.config.Leases {
		for _, object := range informer.GetStore().List() {
			lease := asLease(object)
			if lease == nil {
				continue
			}
			key := types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}
			if alive, _ := c.liveness.lease(key, now); c.processes.changed(key.String(), alive) {
				c.enqueueLease(key)
				if !alive && !c.reports.named(key) {
					// Its report was deleted, and it was expected to write another.
					c.enqueueTransitions()
				}
			}
		}
	}
	if c.unreported.changed(c.silentNow(now)) {
		c.enqueueEverything()
	}
}
