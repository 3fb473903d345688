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
	"time"

	"github.com/go-logr/logr"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/client/informers/externalversions"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

const (
	renewPeriod = 10 * time.Second
	tickPeriod  = 5 * time.Second
)

// values are what a process has for each of featureNames.
type values [2]bool

// said is what a stored report says of one feature, and from when to when it
// was there while the process lived.
type said struct {
	value, asked bool
	from, to     time.Duration
}

// process is a server or a user, as it really is.
type process struct {
	component, instance, version string

	up     bool
	values values
	// potential is true for a user that has the values set and asks for none.
	potential bool
	// upSince is when it came up, reportAt when it writes its report next, renewAt
	// when it renews its Lease.
	upSince, reportAt, renewAt time.Duration
	// reported is true once it has reported in this life.
	reported bool
	// stored is what its stored report says, nil when there is none, history what
	// it said before.
	stored  *[2]said
	history [2][]said
	// storedVersion is the version in the stored report, storedVersionFrom since
	// when.
	storedVersion     string
	storedVersionFrom time.Duration
	// ending is true while a server serves that was told to end; stopAt is when
	// it has ended.
	ending bool
	stopAt time.Duration
}

func (p *process) reportName() string { return p.component + "." + p.instance }

func (p *process) onNode() bool { return p.component == kubelet }

func (p *process) lives() bool { return p.up && p.reported }

// come brings a process up with values. Its report follows after the delay.
func (c *cluster) come(p *process, v values, delay time.Duration) {
	p.up, p.values, p.upSince, p.reported, p.ending, p.stopAt = true, v, c.now, false, false, never
	p.reportAt, p.renewAt = c.now+delay, c.now+renewPeriod
	if p.stored != nil {
		for f := range p.stored {
			p.stored[f].from = c.now
		}
	}
	if p.onNode() {
		c.storeNode(p)
	} else {
		c.storeLease("leases", p.reportName(), p.component)
	}
}

// leave ends a process without a trace.
func (c *cluster) leave(p *process) {
	c.remember(p)
	p.up, p.reportAt, p.renewAt, p.stopAt = false, never, never, never
	if p.onNode() {
		c.storeNode(p)
	}
}

// remember moves what the stored report says to the history.
func (c *cluster) remember(p *process) {
	if p.stored == nil || !p.up {
		return
	}
	for f, s := range p.stored {
		s.to = c.now
		p.history[f] = append(p.history[f], s)
	}
}

func (c *cluster) storeReport(p *process) {
	p.reportAt = never
	p.reported = true
	r := report(p.component, p.instance)
	r.Spec.EmulationVersion = p.version
	if p.onNode() {
		r.Spec.NodeName = p.instance
	} else {
		r.Spec.Liveness.Lease = &v1alpha1.LeaseReference{Namespace: "leases", Name: p.reportName()}
	}
	for f, name := range featureNames {
		found := v1alpha1.ReportedFeature{
			Name: name, Enabled: p.values[f], Queried: !p.potential, Explicit: p.values[f] || p.potential, Stage: v1alpha1.StageBeta,
		}
		if name == central && p.component == "server" {
			found.Control = v1alpha1.ControlCentral
		}
		r.Spec.Features = append(r.Spec.Features, found)
	}
	c.remember(p)
	now := [2]said{}
	for f := range now {
		now[f] = said{value: p.values[f], asked: !p.potential, from: c.now}
		if p.stored != nil && p.stored[f].value == now[f].value && p.stored[f].asked == now[f].asked {
			now[f].from = p.stored[f].from
			p.history[f] = p.history[f][:len(p.history[f])-1]
		}
	}
	if p.storedVersion != p.version {
		p.storedVersion, p.storedVersionFrom = p.version, c.now
	}
	p.stored = &now
	c.etcd.put(reportKind, r, c.now)
}

func (c *cluster) removeReport(p *process) {
	c.remember(p)
	p.stored = nil
	c.etcd.remove(reportKind, "ns/"+p.reportName(), c.now)
}

func (c *cluster) storeNode(p *process) {
	status := corev1.ConditionUnknown
	if p.up {
		status = corev1.ConditionTrue
	}
	c.etcd.put(nodeKind, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: p.instance},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}},
	}, c.now)
}

func (c *cluster) storeLease(namespace, name, component string) {
	now := metav1.NewMicroTime(start.Add(c.now))
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelComponent: component}},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &now, LeaseDurationSeconds: ptr.To[int32](40)},
	}
	if namespace == identities {
		l.Labels, l.Spec.LeaseDurationSeconds = nil, ptr.To[int32](3600)
	}
	c.etcd.put(leaseKind, l, c.now)
}

const identities = "identities"

// renew renews the Leases of a process.
func (c *cluster) renew(p *process) {
	p.renewAt = c.now + renewPeriod
	if p.onNode() {
		return
	}
	c.storeLease("leases", p.reportName(), p.component)
	if p.component == "server" && !p.ending {
		c.storeLease(identities, p.instance, p.component)
	}
}

// replica is one server. What a crash takes away is recreated in each of its
// lives.
type replica struct {
	process
	id   string
	c    *cluster
	life int
	skew time.Duration

	controller *Controller
	queue      *workQueue
	informers  [kinds]*informer
	// tellAt is when the handlers have to hear of what was taken.
	tellAt   [kinds]time.Duration
	ctx      context.Context
	cancel   context.CancelFunc
	killed   chan struct{}
	nextTick time.Duration
	// attempts are those that the model knows of.
	attempts map[string]*running
	// crashed is true from a write that was the last one.
	crashed bool
	// fate is what becomes of the write that is fateIn writes away.
	fate   fate
	fateIn int
}

// works is true once a server's flow runs: it begins when its own report is stored
// (cmd/kube-apiserver/controlplane), lest it took that of its earlier life for its
// own.
func (r *replica) works() bool { return r.up && r.reported }

func (r *replica) gone() bool { return !r.up || r.crashed }

// serve starts a server. What it lists first may be as old as lag.
func (c *cluster) serve(r *replica, v values, delay, lag time.Duration) {
	r.life++
	r.crashed, r.fateIn = false, 0
	c.etcd.remove(leaseKind, identities+"/"+r.id, c.now)
	c.storeLease(identities, r.id, r.component)
	c.come(&r.process, v, delay)
	r.ctx, r.cancel = context.WithCancel(klog.NewContext(c.ctx, logr.Discard()))
	r.killed = make(chan struct{})
	r.queue, r.attempts, r.nextTick = newWorkQueue(c), map[string]*running{}, c.now+tickPeriod
	for k := range r.informers {
		r.informers[k] = newInformer(kind(k), c.etcd)
		r.tellAt[k] = never
	}
	client := &api{replica: r}
	factory := externalversions.NewSharedInformerFactory(client, 0)
	for k, object := range map[kind]runtime.Object{featureKind: &v1alpha1.Feature{}, reportKind: &v1alpha1.FeatureReport{}, valueKind: &v1alpha1.FeatureValue{}} {
		factory.InformerFor(object, func(versioned.Interface, time.Duration) cache.SharedIndexInformer { return r.informers[k] })
	}
	config := Config{
		Namespace: "ns", Component: "server", ServerID: r.id, Features: c.declared(r), Client: client,
		Tasks:      task.Clients{Dynamic: &leasesAPI{replica: r}},
		Settings:   modelSettings,
		Leases:     []cache.SharedIndexInformer{r.informers[leaseKind]},
		IsIdentity: func(lease *coordinationv1.Lease) bool { return lease.Namespace == identities },
		Nodes:      nodeInformer{r.informers[nodeKind]},
		Recorder:   &record.FakeRecorder{},
		Clock:      &skewed{c: c, skew: r.skew},
	}
	err := config.complete()
	if err == nil {
		r.controller, err = newController(config, factory, r.queue)
	}
	if err != nil {
		c.violate("no controller: %v", err)
		return
	}
	if c.crowded {
		r.controller.queue.batches.many = 0
	}
	// Its clock is for searches that end before the next step.
	r.controller.finder.lull = 0
	c.listen(r)
	for _, i := range r.informers {
		i.relist(i.newest(c.now - lag))
	}
	for _, i := range r.informers {
		i.tell()
	}
	r.controller.enqueueEverything()
}

// listen lets the model hear when the runner has recorded something.
func (c *cluster) listen(r *replica) {
	notify, killed := r.controller.runner.notify, r.killed
	r.controller.runner.notify = func(feature string, after time.Duration) {
		select {
		case <-killed:
			return
		default:
		}
		notify(feature, after)
		select {
		case c.told <- struct{}{}:
		case <-killed:
		}
	}
}

// crash ends a server at once: what it remembers is gone, and its attempts do
// nothing more.
func (c *cluster) crash(r *replica) {
	if !r.up {
		return
	}
	c.tracef("%s is gone", r.id)
	c.leave(&r.process)
	close(r.killed)
	r.cancel()
	r.controller.runner.drain()
	r.crashed = false
}

// shutDown tells a server to end, as kube-apiserver does: its identity goes first,
// its report says so, and it serves on for a while.
func (c *cluster) shutDown(r *replica, serves time.Duration) {
	if !r.up || r.ending {
		return
	}
	r.ending, r.stopAt = true, c.now+serves
	c.etcd.remove(leaseKind, identities+"/"+r.id, c.now)
	if old := c.etcd.report(r.reportName()); old != nil && r.reported {
		ending := old.DeepCopy()
		ending.Annotations = map[string]string{v1alpha1.AnnotationTerminating: "true"}
		c.etcd.put(reportKind, ending, c.now)
	}
}

// sync lets a server look at a feature, as a worker of its controller does.
func (c *cluster) sync(r *replica, name string) {
	r.queue.get(name)
	// Errors are what becomes of writes; the queue has heard of them.
	_ = r.controller.process(r.ctx, name)
	r.controller.finder.drain()
	runner := r.controller.runner
	runner.mu.Lock()
	current := runner.attempts[name]
	runner.mu.Unlock()
	if current != nil && current != r.attempts[name] {
		j := <-c.begun
		j.attempt = current
		c.jobs = append(c.jobs, j)
		c.checkBegun(j)
	}
	r.attempts[name] = current
	if r.crashed {
		c.crash(r)
		return
	}
	c.checkStopped(r, name)
}

// tick is what the controller does every few seconds.
func (c *cluster) tick(r *replica) {
	r.nextTick = c.now + tickPeriod
	r.controller.notice(r.ctx)
	r.controller.expirer.deleteExpired(r.ctx)
	if r.crashed {
		c.crash(r)
	}
}
