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
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/feature-lifecycle/rollout"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

var (
	featuresResource = v1alpha1.SchemeGroupVersion.WithResource("features")
	valuesResource   = v1alpha1.SchemeGroupVersion.WithResource("featurevalues")
	reportsResource  = v1alpha1.SchemeGroupVersion.WithResource("featurereports")
	leasesResource   = coordinationv1.SchemeGroupVersion.WithResource("leases")
	nodesResource    = corev1.SchemeGroupVersion.WithResource("nodes")
)

// world is a cluster in a synctest bubble: servers that run the server flow
// against one API, which refuses old resourceVersions as the real one does,
// holds S1 and S3 over every write, and may lose a server at any of them.
type world struct {
	t        *testing.T
	features []lifecycle.Feature
	specs    map[featuregate.Feature]featuregate.VersionedSpecs
	// specsUpTo is what they reach to, nil for the version of the cluster.
	specsUpTo *utilversion.Version
	// notServed are the APIs that features need and servers lack.
	notServed map[string][]string
	// specsFrom is what they begin at, nil for no end.
	specsFrom    *utilversion.Version
	dependencies map[featuregate.Feature][]featuregate.Feature
	settings     transition.Settings
	tracker      clienttesting.ObjectTracker
	kube         *kubefake.Clientset

	// emulated is the version in the reports of servers that follow, "" for 1.36.
	emulated string
	// binary is the version of their binary, "" for none.
	binary string

	// mu guards what follows and orders writes.
	mu      sync.Mutex
	version int
	servers map[string]*serverProcess
	// writes are all writes of Features, as "s1 Turning A: TurningOff/ClearA".
	writes []string
	// published are all writes of FeatureValues, as "s1 create A: on", and specified are the
	// values that versions of Features specify.
	published []string
	specified map[string]*v1alpha1.FeatureValue
	// ahead is how far the clocks of servers are ahead, by ID.
	ahead map[string]time.Duration
	// conflicts counts writes that were refused, since what was read had changed.
	conflicts int
	// watched are the channels that fake watches of Features and reports fill;
	// one that is full panics.
	watched []<-chan watch.Event
	// annotations are on the reports that are stored, processName is the one that they
	// are from; leased is true when they name a Lease of their process.
	annotations map[string]string
	processName string
	leased      bool
	// unidentified servers have no identities but the Leases of their reports, as the
	// replicas of operators.
	unidentified bool
	// tasks are the clients of tasks, recorder gets events.
	tasks    task.Clients
	recorder *record.FakeRecorder
	// client, if not nil, lies between a server and the API.
	client func(versioned.Interface) versioned.Interface
}

// serverProcess is one server. A crashed one neither reads nor writes.
type serverProcess struct {
	// id is its identity, label what its writes are recorded under.
	id, label  string
	controller *Controller
	cancel     context.CancelFunc
	done       chan struct{}
	crashed    bool
	// crashAt is the write at which it crashes, 0 for none; lost is true when
	// that write does not arrive.
	crashAt, wrote int
	lost           bool
	// ending is true once it was told to end: its identity is not renewed.
	ending atomic.Bool
}

// newWorld makes a world without servers. Its fake of Kubernetes does not manage
// fields: that builds a REST mapper of all of Kubernetes at each renewal of a Lease.
func newWorld(t *testing.T, features ...lifecycle.Feature) *world {
	scheme := apiruntime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &world{
		t: t, settings: transition.DefaultSettings(), features: features, kube: kubefake.NewSimpleClientset(), servers: map[string]*serverProcess{}, specified: map[string]*v1alpha1.FeatureValue{},
		tasks: emptyCluster(), recorder: &record.FakeRecorder{},
		tracker: clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder()),
	}
}

// inWorld runs a test in a world of its own.
func inWorld(t *testing.T, test func(w *world), features ...lifecycle.Feature) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, features...)
		defer w.end()
		test(w)
	})
}

func (w *world) end() {
	for _, s := range w.servers {
		w.stop(s)
	}
}

// pass lets time go by and everything settle.
func (w *world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// until waits for a condition, looking every 100 ms, and returns how long that
// took.
func (w *world) until(most time.Duration, what string, condition func() bool) time.Duration {
	w.t.Helper()
	begun := time.Now()
	for synctest.Wait(); !condition(); w.pass(100 * time.Millisecond) {
		if time.Since(begun) > most {
			w.t.Fatalf("not within %s: %s\nwrites:\n%s", most, what, strings.Join(w.writes, "\n"))
		}
	}
	return time.Since(begun)
}

// api is the API as one server reaches it.
func (w *world) api(s *serverProcess) *fake.Clientset {
	client := &fake.Clientset{}
	client.AddReactor("*", "*", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.react(s, action)
	})
	client.AddWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if s.crashed {
			return true, nil, errors.New("connection refused")
		}
		inner, err := w.watch(action)
		return true, inner, err
	})
	return client
}

// watch begins with what there is: a fake list has no version to watch from.
func (w *world) watch(action clienttesting.Action) (watch.Interface, error) {
	resource, namespace := action.GetResource(), action.GetNamespace()
	kind := map[string]string{"features": "Feature", "featurereports": "FeatureReport", "featurevalues": "FeatureValue"}[resource.Resource]
	list, err := w.tracker.List(resource, v1alpha1.SchemeGroupVersion.WithKind(kind), namespace)
	if err != nil {
		return nil, err
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	inner, err := w.tracker.Watch(resource, namespace)
	if err != nil {
		return nil, err
	}
	w.watched = append(w.watched, inner.ResultChan())
	events := make(chan watch.Event)
	proxy := watch.NewProxyWatcher(events)
	var pending []watch.Event
	for _, object := range objects {
		pending = append(pending, watch.Event{Type: watch.Modified, Object: object})
	}
	go func() {
		defer close(events)
		defer func() {
			inner.Stop()
			for range inner.ResultChan() {
			}
		}()
		for {
			var out chan watch.Event
			var first watch.Event
			if len(pending) > 0 {
				out, first = events, pending[0]
			}
			select {
			case e, open := <-inner.ResultChan():
				if !open {
					return
				}
				pending = append(pending, e)
			case out <- first:
				pending = pending[1:]
			case <-proxy.StopChan():
				return
			}
		}
	}()
	return proxy, nil
}

// drain lets the goroutines of fake watches take what was sent. It needs mu.
func (w *world) drain() {
	for _, sent := range w.watched {
		for len(sent) > cap(sent)/2 {
			runtime.Gosched()
		}
	}
}

// react needs mu.
func (w *world) react(s *serverProcess, action clienttesting.Action) (bool, apiruntime.Object, error) {
	if s.crashed {
		return true, nil, errors.New("connection refused")
	}
	verb := action.GetVerb()
	if verb == "get" || verb == "list" {
		return clienttesting.ObjectReaction(w.tracker)(action)
	}
	w.drain()
	s.wrote++
	crashes := s.wrote == s.crashAt
	if crashes {
		s.crashed = true
		s.cancel()
		if s.lost {
			return true, nil, errors.New("connection refused")
		}
	}
	if a, ok := action.(clienttesting.UpdateAction); ok && verb != "delete" && action.GetResource() == featuresResource {
		if err := w.admit(s, verb, a.GetObject().(*v1alpha1.Feature)); err != nil {
			return true, nil, err
		}
	}
	if action.GetResource() == valuesResource {
		if err := w.admitValue(s, action); err != nil {
			return true, nil, err
		}
	}
	handled, object, err := clienttesting.ObjectReaction(w.tracker)(action)
	if crashes {
		return true, nil, errors.New("connection reset")
	}
	return handled, object, err
}

// admit does for a write of a Feature what the real API does, and holds the
// invariants. It needs mu.
func (w *world) admit(s *serverProcess, verb string, feature *v1alpha1.Feature) error {
	w.version++
	if verb == "create" {
		feature.UID = types.UID("uid-" + feature.Name)
	} else {
		before := w.stored(feature.Name)
		if before == nil {
			return apierrors.NewNotFound(v1alpha1.Resource("features"), feature.Name)
		}
		if before.ResourceVersion != feature.ResourceVersion {
			w.conflicts++
			return apierrors.NewConflict(v1alpha1.Resource("features"), feature.Name, errors.New("changed"))
		}
		w.hold(before.Status, feature.Status)
	}
	feature.ResourceVersion = strconv.Itoa(w.version)
	w.specified[feature.Name+" "+feature.ResourceVersion], _ = rollout.ValueOf(feature)
	w.writes = append(w.writes, fmt.Sprintf("%s %s %s: %s %s", s.label, verb, feature.Name, feature.Status.State, strings.Join(taskNames(feature.Status), ",")))
	return nil
}

// admitValue does for a write of a FeatureValue what the real API does, and holds that the
// value is what a stored version of the Feature specifies, and not an older one than
// before (S2). It needs mu.
func (w *world) admitValue(s *serverProcess, action clienttesting.Action) error {
	w.version++
	write, ok := action.(clienttesting.UpdateAction)
	if !ok || action.GetVerb() == "delete" {
		name := action.(clienttesting.DeleteAction).GetName()
		if w.value(name) != nil {
			w.published = append(w.published, fmt.Sprintf("%s delete %s", s.label, name))
		}
		return nil
	}
	value := write.GetObject().(*v1alpha1.FeatureValue)
	if action.GetVerb() == "create" {
		if w.value(value.Name) != nil {
			return apierrors.NewAlreadyExists(v1alpha1.Resource("featurevalues"), value.Name)
		}
		value.UID = types.UID("uid-value-" + value.Name)
	} else {
		before := w.value(value.Name)
		if before == nil {
			return apierrors.NewNotFound(v1alpha1.Resource("featurevalues"), value.Name)
		}
		if before.ResourceVersion != value.ResourceVersion {
			w.conflicts++
			return apierrors.NewConflict(v1alpha1.Resource("featurevalues"), value.Name, errors.New("changed"))
		}
		if !newerVersion(value.FeatureVersion, before.FeatureVersion) {
			w.t.Errorf("the value of version %s is replaced by that of %s", before.FeatureVersion, value.FeatureVersion)
		}
	}
	want := w.specified[value.Name+" "+value.FeatureVersion]
	if feature := w.stored(value.Name); feature != nil && feature.ResourceVersion == value.FeatureVersion {
		// The test itself may have changed it.
		want, _ = rollout.ValueOf(feature)
	}
	if want == nil || !rollout.SameValue(want, value) {
		w.t.Errorf("S2: %+v is published, and version %s specifies %+v", value, value.FeatureVersion, want)
	}
	value.ResourceVersion = strconv.Itoa(w.version)
	w.published = append(w.published, fmt.Sprintf("%s %s %s: %s", s.label, action.GetVerb(), value.Name, describeValue(value)))
	return nil
}

// aheadClock is a clock that is ahead, or behind if that is negative.
type aheadClock struct {
	clock.RealClock
	ahead time.Duration
}

func (c aheadClock) Now() time.Time                  { return c.RealClock.Now().Add(c.ahead) }
func (c aheadClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// describeValue is a value in words, as "on, 25% others off".
func describeValue(value *v1alpha1.FeatureValue) string {
	words := map[bool]string{true: "on", false: "off"}
	text := words[value.Value]
	if value.Control != v1alpha1.ControlDynamic {
		text += " " + string(value.Control)
	}
	if r := value.Rollout; r != nil && r.Percent != nil {
		text += fmt.Sprintf(", %d%%", *r.Percent)
	}
	if r := value.Rollout; r != nil && r.At != nil {
		text += ", all at " + r.At.UTC().Format(time.TimeOnly)
	}
	if value.Previous != nil {
		text += " others " + words[*value.Previous]
	}
	return text
}

// value needs mu.
func (w *world) value(name string) *v1alpha1.FeatureValue {
	object, err := w.tracker.Get(valuesResource, "ns", name)
	if err != nil {
		return nil
	}
	return object.(*v1alpha1.FeatureValue)
}

// publications returns the writes of FeatureValues since the last call.
func (w *world) publications() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	published := w.published
	w.published = nil
	return published
}

// hold checks S1 to S3 over one write.
func (w *world) hold(before, after v1alpha1.FeatureStatus) {
	if (after.State == v1alpha1.StateOn || after.State == v1alpha1.StateOff) && len(after.Tasks) > 0 {
		w.t.Errorf("S1: state %s with tasks %v", after.State, after.Tasks)
	}
	if before.State == v1alpha1.StateTurningOff && after.State == v1alpha1.StateOff {
		// What was found before says nothing of what tasks have left.
		if c := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionClean); c != nil && (c.Reason == v1alpha1.ReasonLeftovers || c.Reason == v1alpha1.ReasonNothingLeft) {
			w.t.Errorf("off by this very write, and Clean is %s: %s", c.Reason, c.Message)
		}
	}
	if before.Transition == nil || (after.Transition != nil && after.Transition.ID != before.Transition.ID) {
		return
	}
	was, is := taskNames(before), taskNames(after)
	if !slices.Equal(was, is) && (len(was) == 0 || !slices.Equal(was[1:], is)) {
		w.t.Errorf("S3: tasks %v became %v", was, is)
	}
}

func taskNames(status v1alpha1.FeatureStatus) []string {
	var names []string
	for _, t := range status.Tasks {
		names = append(names, t.Name)
	}
	return names
}

func (w *world) stored(name string) *v1alpha1.Feature {
	object, err := w.tracker.Get(featuresResource, "ns", name)
	if err != nil {
		return nil
	}
	return object.(*v1alpha1.Feature)
}

// state is the stored state of a feature, "" when there is none.
func (w *world) state(name string) v1alpha1.FeatureState {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.stored(name); f != nil {
		return f.Status.State
	}
	return ""
}

func (w *world) condition(name, kind string) metav1.Condition {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := meta.FindStatusCondition(w.stored(name).Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// written returns how many writes there were since the last call.
func (w *world) written() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.writes)
	w.writes = nil
	return n
}

// report stores what a process found. A server's names the Lease that it renews.
func (w *world) report(component, instance string, found ...v1alpha1.ReportedFeature) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drain()
	r := report(component, instance, found...)
	r.Annotations, r.Spec.Process = w.annotations, w.processName
	if w.leased && component != kubelet {
		r.Spec.Liveness.Lease = &v1alpha1.LeaseReference{Namespace: "leases", Name: r.Name}
	}
	if component == "server" {
		r.Spec.EmulationVersion, r.Spec.BinaryVersion = cmp.Or(w.emulated, r.Spec.EmulationVersion), w.binary
		r.Spec.Liveness.Lease = &v1alpha1.LeaseReference{Namespace: w.leases(), Name: r.Name}
	}
	if component == kubelet {
		r.Spec.NodeName = instance
	}
	w.version++
	r.ResourceVersion = strconv.Itoa(w.version)
	if err := w.tracker.Update(reportsResource, r, "ns"); apierrors.IsNotFound(err) {
		err = w.tracker.Create(reportsResource, r, "ns")
		if err != nil {
			w.t.Fatal(err)
		}
	} else if err != nil {
		w.t.Fatal(err)
	}
}

// The periods of package tracker that tests wait for, and the component of kubelets.
const (
	kubelet        = "kubelet"
	reportingDelay = time.Minute
	startingDelay  = tracker.MaxLeaseTimeout
)

// emptyCluster has clients of a cluster without objects for tasks.
func emptyCluster() task.Clients {
	return task.Clients{Dynamic: dynamicfake.NewSimpleDynamicClient(apiruntime.NewScheme())}
}

// serve starts a server. It renews the Lease of its report and its identity,
// which kube-apiserver deletes and recreates at its start.
func (w *world) serve(id string) *serverProcess {
	w.t.Helper()
	s := &serverProcess{id: id, label: id, done: make(chan struct{})}
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(w.t.Context())
	leases := informers.NewSharedInformerFactory(w.kube, 0)
	informer := leases.Coordination().V1().Leases().Informer()
	var client versioned.Interface = w.api(s)
	if w.client != nil {
		client = w.client(client)
	}
	isIdentity := func(lease *coordinationv1.Lease) bool { return lease.Namespace == "identities" }
	if w.unidentified {
		isIdentity = nil
	}
	var err error
	s.controller, err = New(Config{
		Namespace: "ns", Component: "server", ServerID: id, Features: w.features, Specs: w.specs, SpecsUpTo: w.specsUpTo, SpecsFrom: w.specsFrom, Dependencies: w.dependencies, Client: client,
		Leases:     []cache.SharedIndexInformer{informer},
		NotServed:  func(feature string) []string { return w.notServed[feature] },
		IsIdentity: isIdentity,
		Nodes:      leases.Core().V1().Nodes(),
		Tasks:      w.tasks,
		Settings:   w.settings,
		Recorder:   w.recorder,
		Clock:      aheadClock{ahead: w.ahead[id]},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	w.servers[id] = s
	w.mu.Unlock()
	w.forgetIdentity(id)
	// The others see each step before the next: otherwise the scheduler decides whether
	// they still lead what this server will.
	for _, lease := range w.leasesOf(s) {
		synctest.Wait()
		w.put(leasesResource, lease, lease.Namespace)
	}
	synctest.Wait()
	leases.StartWithContext(ctx)
	go func() {
		defer close(s.done)
		defer leases.Shutdown()
		renewing := make(chan struct{})
		go func() {
			defer close(renewing)
			for ticker := time.NewTicker(10 * time.Second); ; {
				select {
				case <-ticker.C:
					w.renew(s)
				case <-ctx.Done():
					ticker.Stop()
					return
				}
			}
		}()
		s.controller.Run(ctx, 2, nil)
		<-renewing
	}()
	return s
}

// renew renews a server's identity and the Lease of its report.
func (w *world) renew(s *serverProcess) {
	for _, lease := range w.leasesOf(s) {
		w.put(leasesResource, lease, lease.Namespace)
	}
}

// leasesOf returns the Leases that a server renews, renewed now.
func (w *world) leasesOf(s *serverProcess) []*coordinationv1.Lease {
	now := metav1.NewMicroTime(time.Now())
	identity := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "identities", Name: s.id}, Spec: coordinationv1.LeaseSpec{RenewTime: &now, LeaseDurationSeconds: ptr.To[int32](3600)}}
	ofReport := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: w.leases(), Name: "server." + s.id, Labels: map[string]string{v1alpha1.LabelComponent: "server"}}, Spec: coordinationv1.LeaseSpec{RenewTime: &now, LeaseDurationSeconds: ptr.To[int32](40)}}
	if s.ending.Load() || w.unidentified {
		return []*coordinationv1.Lease{ofReport}
	}
	return []*coordinationv1.Lease{identity, ofReport}
}

// leases is the namespace of the Leases of servers' reports.
func (w *world) leases() string {
	if w.unidentified {
		return "ns"
	}
	return "leases"
}

// put changes an object of Kubernetes, or makes it.
func (w *world) put(resource schema.GroupVersionResource, object apiruntime.Object, namespace string) {
	err := w.kube.Tracker().Update(resource, object, namespace)
	if apierrors.IsNotFound(err) {
		err = w.kube.Tracker().Create(resource, object, namespace)
	}
	if err != nil {
		w.t.Error(err)
	}
}

func (w *world) forgetIdentity(id string) {
	if err := w.kube.Tracker().Delete(leasesResource, "identities", id); err != nil && !apierrors.IsNotFound(err) {
		w.t.Error(err)
	}
}

// stop ends a server without a trace: its report and its Lease stay.
func (w *world) stop(s *serverProcess) {
	s.cancel()
	<-s.done
	w.mu.Lock()
	maps.DeleteFunc(w.servers, func(_ string, other *serverProcess) bool { return other == s })
	w.mu.Unlock()
}

// shutDown ends a server in order, as kube-apiserver does: its identity goes
// first, its report says that it ends, it serves for a while, and the Lease of
// its report is left to lapse.
func (w *world) shutDown(s *serverProcess, delay time.Duration) {
	w.t.Helper()
	s.ending.Store(true)
	w.forgetIdentity(s.id)
	object, err := w.tracker.Get(reportsResource, "ns", "server."+s.id)
	if err != nil {
		w.t.Fatal(err)
	}
	ending := object.(*v1alpha1.FeatureReport).DeepCopy()
	ending.Annotations = map[string]string{v1alpha1.AnnotationTerminating: "true"}
	if err := w.tracker.Update(reportsResource, ending, "ns"); err != nil {
		w.t.Fatal(err)
	}
	w.pass(delay)
	w.stop(s)
}

// node makes or changes a Node.
func (w *world) node(name string, ready corev1.ConditionStatus) {
	w.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
	w.put(nodesResource, n, "")
}

func (w *world) removeNode(name string) {
	w.t.Helper()
	if err := w.kube.Tracker().Delete(nodesResource, "", name); err != nil {
		w.t.Fatal(err)
	}
}

// reported is true while a report is stored.
func (w *world) reported(name string) bool {
	_, err := w.tracker.Get(reportsResource, "ns", name)
	return err == nil
}

// firstTask is the first of the tasks that are stored for A.
func (w *world) firstTask() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stored("A").Status.Tasks[0].Name
}

func (w *world) removeReport(name string) {
	w.t.Helper()
	if err := w.tracker.Delete(reportsResource, "ns", name); err != nil {
		w.t.Fatal(err)
	}
}

// lease makes a process renew the Lease of its report until it is stopped.
func (w *world) lease(component, instance string) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	renew := func() {
		now := metav1.NewMicroTime(time.Now())
		l := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "leases", Name: component + "." + instance, Labels: map[string]string{v1alpha1.LabelComponent: component}},
			Spec:       coordinationv1.LeaseSpec{RenewTime: &now, LeaseDurationSeconds: ptr.To[int32](40)},
		}
		w.put(leasesResource, l, l.Namespace)
	}
	renew()
	go func() {
		defer close(done)
		for ticker := time.NewTicker(10 * time.Second); ; {
			select {
			case <-ticker.C:
				renew()
			case <-ctx.Done():
				ticker.Stop()
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
