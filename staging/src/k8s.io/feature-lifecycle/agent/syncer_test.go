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
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
	componentfeaturegate "k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	typed "k8s.io/feature-lifecycle/client/clientset/versioned/typed/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/utils/ptr"
)

// feature is a Feature as the server flow writes it.
func feature(name string, control v1alpha1.FeatureControl, value bool) *v1alpha1.Feature {
	f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}}
	f.Status.Control = control
	f.Status.Configured = &v1alpha1.FeatureConfiguration{Value: value, Source: v1alpha1.SourceCommandLine}
	return f
}

// world is a process and its server.
type world struct {
	t      *testing.T
	gate   *featuregate.Gate
	client *fake.Clientset
	config SyncerConfig
	s      *Syncer
	// answer, if not nil, is what the server answers to lists instead.
	answer   atomic.Pointer[error]
	restarts atomic.Int32
	// values, if not nil, is what the server answers to lists of FeatureValues instead. It
	// is a server without them unless a test has some.
	values atomic.Pointer[error]
	// version is the resource version of lists of Features.
	version atomic.Int64
	// open has how many watches the server has, by resource.
	open map[string]*atomic.Int32
}

// countedWatch is a watch that the server counts until it is stopped.
type countedWatch struct {
	watch.Interface
	stop func()
}

func (w *countedWatch) Stop() { w.stop() }

// counted counts a watch of a resource.
func (w *world) counted(resource string, inner watch.Interface) watch.Interface {
	open := w.open[resource]
	open.Add(1)
	return &countedWatch{inner, sync.OnceFunc(func() { open.Add(-1); inner.Stop() })}
}

// countWatches counts the watches of a resource.
func (w *world) countWatches(resource string) {
	w.open[resource] = &atomic.Int32{}
	w.client.PrependWatchReactor(resource, func(action clienttesting.Action) (bool, watch.Interface, error) {
		inner, err := w.client.Tracker().Watch(action.GetResource(), action.GetNamespace(), action.(clienttesting.WatchActionImpl).ListOptions)
		if err != nil {
			return true, nil, err
		}
		return true, w.counted(resource, inner), nil
	})
}

// serveValues makes the server one with FeatureValues if the error is nil.
func (w *world) serveValues(err error) {
	w.values.Store(nil)
	if err != nil {
		w.values.Store(&err)
	}
}

func newWorld(t *testing.T, features ...runtime.Object) *world {
	t.Helper()
	inner := componentfeaturegate.NewFeatureGate()
	if err := inner.Add(map[componentfeaturegate.Feature]componentfeaturegate.FeatureSpec{
		"A": {PreRelease: componentfeaturegate.Alpha},
		"B": {PreRelease: componentfeaturegate.Alpha},
		"L": {PreRelease: componentfeaturegate.GA, Default: true, LockToDefault: true},
	}); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, gate: featuregate.Wrap(inner), client: fake.NewClientset(features...), open: map[string]*atomic.Int32{}}
	w.countWatches("features")
	w.countWatches("featurevalues")
	// The server has the API.
	w.client.Resources = []*metav1.APIResourceList{{GroupVersion: v1alpha1.SchemeGroupVersion.String()}}
	w.client.PrependReactor("list", "features", func(clienttesting.Action) (bool, runtime.Object, error) {
		if err := w.answer.Load(); err != nil {
			return true, nil, *err
		}
		if w.version.Load() == 0 {
			return false, nil, nil
		}
		list, err := w.client.Tracker().List(v1alpha1.SchemeGroupVersion.WithResource("features"), v1alpha1.SchemeGroupVersion.WithKind("Feature"), "kube-system")
		if list, ok := list.(*v1alpha1.FeatureList); ok {
			list.ResourceVersion = strconv.FormatInt(w.version.Load(), 10)
		}
		return true, list, err
	})
	w.serveValues(apierrors.NewNotFound(v1alpha1.Resource("featurevalues"), ""))
	w.client.PrependReactor("list", "featurevalues", func(clienttesting.Action) (bool, runtime.Object, error) {
		if err := w.values.Load(); err != nil {
			return true, nil, *err
		}
		return false, nil, nil
	})
	w.config = SyncerConfig{
		Namespace: "kube-system", Component: "kubelet", Instance: "node-1", Gate: w.gate,
		Connect:     func() (versioned.Interface, error) { return w.client, nil },
		LoadTimeout: time.Minute, RestartWindow: time.Minute, Restart: func() { w.restarts.Add(1) },
	}
	return w
}

func (w *world) answers(err error) {
	if err == nil {
		w.answer.Store(nil)
		return
	}
	w.answer.Store(&err)
}

// load makes the syncer and loads as a binary does.
func (w *world) load() Origin {
	w.t.Helper()
	var err error
	if w.s, err = NewSyncer(w.config); err != nil {
		w.t.Fatal(err)
	}
	var origin Origin
	w.gate.BeforeFinal(func() { origin = w.s.Load(w.t.Context()) })
	w.gate.Finalize()
	return origin
}

// run runs the syncer for the rest of the test.
func (w *world) run() {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.s.Run(ctx)
	}()
	w.t.Cleanup(func() { cancel(); <-done })
}

// put creates or replaces a Feature on the server.
func (w *world) put(f *v1alpha1.Feature) {
	w.t.Helper()
	features := w.client.FeaturesV1alpha1().Features(f.Namespace)
	_, err := features.Update(w.t.Context(), f, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = features.Create(w.t.Context(), f, metav1.CreateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := w.client.FeaturesV1alpha1().Features("kube-system").Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// after lets time pass in a bubble.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// count is the number of requests of a verb for Features that the server has seen.
func (w *world) count(verb string) int {
	n := 0
	for _, action := range w.client.Actions() {
		if action.GetVerb() == verb && action.GetResource().Resource != "featurevalues" {
			n++
		}
	}
	return n
}

func (w *world) expect(what string, a bool) {
	w.t.Helper()
	if got := w.gate.Enabled("A"); got != a {
		w.t.Errorf("%s: A is %t, want %t", what, got, a)
	}
}

var resource = v1alpha1.Resource("features")

func TestLoadTakesBestAvailableValues(t *testing.T) {
	const central = v1alpha1.ControlCentral
	unavailable := apierrors.NewServiceUnavailable("starting")
	forbidden := apierrors.NewForbidden(resource, "", errors.New("no"))
	missing := apierrors.NewNotFound(resource, "")
	for name, tc := range map[string]struct {
		feature *v1alpha1.Feature
		// answer is the server's until recovers, for ever if that is 0.
		answer   error
		recovers time.Duration
		// later are other answers that the server gives from a time on.
		later   map[time.Duration]error
		unknown bool
		stored  map[string]choice
		connect error
		want    Origin
		a       bool
		// waits bounds how long it takes.
		waits [2]time.Duration
	}{
		"a central value":                       {feature: feature("A", central, true), want: FromServer, a: true},
		"a local one says nothing":              {feature: feature("A", v1alpha1.ControlLocal, true), want: FromServer},
		"the server knows better than the disk": {feature: feature("A", central, false), stored: map[string]choice{"A": {Value: true}}, want: FromServer},
		"nothing is central any more":           {stored: map[string]choice{"A": {Value: true}}, want: FromServer},
		"the server is late":                    {feature: feature("A", central, true), answer: unavailable, recovers: 20 * time.Second, want: FromServer, a: true, waits: [2]time.Duration{20 * time.Second, 26 * time.Second}},
		"the server does not come":              {feature: feature("A", central, true), answer: unavailable, want: FromNowhere, waits: [2]time.Duration{time.Minute, time.Minute}},
		"it does not come, and the disk knows":  {answer: unavailable, stored: map[string]choice{"A": {Value: true}}, want: FromFile, a: true, waits: [2]time.Duration{time.Minute, time.Minute}},
		"the policy is late":                    {feature: feature("A", central, true), answer: forbidden, recovers: 3 * time.Second, want: FromServer, a: true, waits: [2]time.Duration{3 * time.Second, 9 * time.Second}},
		"the policy forbids it":                 {feature: feature("A", central, true), answer: forbidden, want: FromNowhere, waits: [2]time.Duration{10 * time.Second, 10 * time.Second}},
		"down, then the policy is late": {feature: feature("A", central, true), answer: unavailable, later: map[time.Duration]error{20 * time.Second: forbidden, 28 * time.Second: nil},
			want: FromServer, a: true, waits: [2]time.Duration{28 * time.Second, 33 * time.Second}},
		"refused by one, then by the next": {feature: feature("A", central, true), answer: forbidden, later: map[time.Duration]error{8 * time.Second: unavailable, 14 * time.Second: forbidden, 20 * time.Second: nil},
			want: FromServer, a: true, waits: [2]time.Duration{20 * time.Second, 25 * time.Second}},
		"down, then the policy forbids it": {answer: unavailable, later: map[time.Duration]error{20 * time.Second: forbidden}, stored: map[string]choice{"A": {Value: true}},
			want: FromFile, a: true, waits: [2]time.Duration{30 * time.Second, 35 * time.Second}},
		"refused until the end of patience": {answer: unavailable, later: map[time.Duration]error{53 * time.Second: forbidden}, want: FromNowhere, waits: [2]time.Duration{time.Minute, time.Minute}},

		"an unpatched server forbids it":               {answer: forbidden, unknown: true, want: FromNowhere},
		"an unpatched server does not know it":         {answer: missing, want: FromNowhere},
		"an unpatched one forbids it, the disk knows":  {answer: forbidden, unknown: true, stored: map[string]choice{"A": {Value: true}}, want: FromFile, a: true},
		"an unpatched one is no word against the disk": {answer: missing, stored: map[string]choice{"A": {Value: true}}, want: FromFile, a: true},
		"an unpatched one answers later":               {answer: unavailable, later: map[time.Duration]error{20 * time.Second: missing}, stored: map[string]choice{"A": {Value: true}}, want: FromFile, a: true, waits: [2]time.Duration{20 * time.Second, 26 * time.Second}},
		"a bad request is not a missing API":           {feature: feature("A", central, true), answer: apierrors.NewBadRequest("HTTP to an HTTPS port"), recovers: 20 * time.Second, want: FromServer, a: true, waits: [2]time.Duration{20 * time.Second, 26 * time.Second}},
		"a server that keeps refusing is waited for":   {answer: apierrors.NewBadRequest("what?"), stored: map[string]choice{"A": {Value: true}}, want: FromFile, a: true, waits: [2]time.Duration{time.Minute, time.Minute}},

		"a process without a server":          {connect: fmt.Errorf("%w: alone", ErrNoServer), stored: map[string]choice{"A": {Value: true}}, want: FromNowhere},
		"a kubeconfig that does not come":     {connect: errors.New("no such file"), stored: map[string]choice{"A": {Value: true}}, want: FromFile, a: true, waits: [2]time.Duration{time.Minute, time.Minute}},
		"a kubeconfig that people mend first": {connect: fmt.Errorf("%w: no such file", ErrConfiguration), want: FromNowhere},
		"the same, and the disk knows":        {connect: fmt.Errorf("%w: no such file", ErrConfiguration), stored: map[string]choice{"A": {Value: true}}, want: FromFile, a: true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "values.json")
			if tc.stored != nil {
				fileOf(path).write(t.Context(), tc.stored, saved)
			}
			synctest.Test(t, func(t *testing.T) {
				var features []runtime.Object
				if tc.feature != nil {
					features = append(features, tc.feature)
				}
				w := newWorld(t, features...)
				w.config.File = path
				if tc.connect != nil {
					w.config.Connect = func() (versioned.Interface, error) { return nil, tc.connect }
				}
				if tc.unknown {
					w.client.Resources = nil
				}
				w.answers(tc.answer)
				if tc.recovers > 0 {
					time.AfterFunc(tc.recovers, func() { w.answers(nil) })
				}
				for at, answer := range tc.later {
					time.AfterFunc(at, func() { w.answers(answer) })
				}
				start := time.Now()
				if got := w.load(); got != tc.want {
					t.Errorf("values come from %s, want %s", got, tc.want)
				}
				if took := time.Since(start); took < tc.waits[0] || took > tc.waits[1] {
					t.Errorf("it took %v, want %v", took, tc.waits)
				}
				w.expect("after Load", tc.a)
			})
		})
	}
}

// hangingClient never answers a list of Features.
type hangingClient struct {
	versioned.Interface
}

type hangingGroup struct {
	typed.FeaturesV1alpha1Interface
}

type hangingFeatures struct {
	typed.FeatureInterface
}

func (c *hangingClient) FeaturesV1alpha1() typed.FeaturesV1alpha1Interface { return hangingGroup{} }

func (hangingGroup) Features(string) typed.FeatureInterface { return hangingFeatures{} }

func (hangingFeatures) List(ctx context.Context, _ metav1.ListOptions) (*v1alpha1.FeatureList, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestHangingServerDelaysLoadNoLongerThanTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.LoadTimeout = 5 * time.Second
		hanging := &hangingClient{Interface: w.client}
		w.config.Connect = func() (versioned.Interface, error) { return hanging, nil }
		start := time.Now()
		if got := w.load(); got != FromNowhere {
			t.Errorf("values come from %s", got)
		}
		if took := time.Since(start); took > 6*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestDynamicValuesAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, feature("A", v1alpha1.ControlDynamic, false), feature("B", v1alpha1.ControlCentral, true))
		w.load()
		w.run()
		synctest.Wait()
		for _, value := range []bool{true, false, true} {
			w.put(feature("A", v1alpha1.ControlDynamic, value))
			after(time.Second)
			w.expect("a second after the write", value)
		}
		if !w.gate.Enabled("B") {
			t.Error("the central value was lost")
		}
		w.put(feature("A", v1alpha1.ControlLocal, true))
		after(10 * time.Minute)
		w.expect("local again", false)
		if watching := w.s.watch; watching != nil {
			t.Error("it watches although nothing is dynamic")
		}
	})
}

// TestRecreatedFeatureKeepsValue: the moment without it is not observed.
func TestRecreatedFeatureKeepsValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, feature("A", v1alpha1.ControlDynamic, false))
		w.config.AlwaysWatch = true
		var changes atomic.Int32
		w.load()
		w.run()
		after(time.Hour)
		// The last list still has another value.
		w.put(feature("A", v1alpha1.ControlDynamic, true))
		after(time.Second)
		w.expect("turned on", true)
		w.gate.OnChange(func(featuregate.Snapshot) { changes.Add(1) })
		w.remove("A")
		synctest.Wait()
		w.expect("removed", true)
		w.put(feature("A", v1alpha1.ControlDynamic, true))
		after(time.Hour)
		w.expect("recreated", true)
		if changes.Load() != 0 {
			t.Errorf("%d changes", changes.Load())
		}
		w.remove("A")
		after(removedJitter)
		w.expect("gone", false)
	})
}

// TestListsAreNotOlderThanWatch: they come from the cache of any server.
func TestListsAreNotOlderThanWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, feature("A", v1alpha1.ControlDynamic, false))
		w.load()
		w.run()
		after(time.Second)
		changed := feature("A", v1alpha1.ControlDynamic, true)
		changed.ResourceVersion = "1000000"
		w.put(changed)
		after(time.Second)
		w.client.ClearActions()
		after(time.Hour)
		for _, action := range w.client.Actions() {
			if list, ok := action.(clienttesting.ListActionImpl); ok && list.ListOptions.ResourceVersion == "1000000" && list.ListOptions.ResourceVersionMatch == metav1.ResourceVersionMatchNotOlderThan {
				return
			}
		}
		t.Error("no list asked for what the watch has shown")
	})
}

// TestSyncingCostsFewRequests: without dynamic features there is no watch, and lists are rare.
func TestSyncingCostsFewRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		always  bool
		control v1alpha1.FeatureControl
		watches bool
	}{
		"a node, nothing central":     {},
		"a node, local":               {control: v1alpha1.ControlLocal},
		"a node, central":             {control: v1alpha1.ControlCentral},
		"a node, dynamic":             {control: v1alpha1.ControlDynamic, watches: true},
		"a scheduler, nothing":        {always: true, watches: true},
		"a scheduler, with a Central": {always: true, control: v1alpha1.ControlCentral, watches: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if tc.control != "" {
					w.put(feature("A", tc.control, true))
				}
				w.config.AlwaysWatch = tc.always
				w.load()
				w.run()
				after(2 * time.Hour)
				if got := w.count("watch") > 0; got != tc.watches {
					t.Errorf("watches: %t", got)
				}
				w.client.ClearActions()
				after(10 * time.Hour)
				if got := w.count("list"); got < 60 || got > 90 {
					t.Errorf("%d lists in 10 hours", got)
				}
			})
		})
	}
}

// TestFirstDynamicFeatureIsFollowed: at once by components that always watch, and after the next
// list by others.
func TestFirstDynamicFeatureIsFollowed(t *testing.T) {
	for always, within := range map[bool]time.Duration{true: time.Second, false: 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.config.AlwaysWatch = always
			w.load()
			w.run()
			after(time.Hour)
			w.put(feature("A", v1alpha1.ControlDynamic, true))
			after(within)
			w.expect(fmt.Sprintf("%v after the write", within), true)
			w.put(feature("A", v1alpha1.ControlDynamic, false))
			after(time.Second)
			w.expect("a second after the next", false)
		})
	}
}

// TestCanaryDecidesValue: the instance is outside, then inside; a rollback that is not observed yet
// changes nothing.
func TestCanaryDecidesValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, feature("A", v1alpha1.ControlDynamic, false))
		w.load()
		w.run()
		synctest.Wait()
		// node-1 is in place 14 for A.
		canary := func(percent *int32) *v1alpha1.Feature {
			f := feature("A", v1alpha1.ControlDynamic, true)
			f.Spec.Enabled, f.Status.Configured.Source = ptr.To(true), v1alpha1.SourceAPI
			f.Status.Configured.Previous = ptr.To(false)
			if percent != nil {
				f.Spec.Rollout = &v1alpha1.FeatureRollout{Percent: percent}
			}
			return f
		}
		for _, step := range []struct {
			percent int32
			want    bool
		}{{0, false}, {14, false}, {15, true}, {100, true}, {14, false}} {
			w.put(canary(&step.percent))
			after(time.Second)
			w.expect(fmt.Sprintf("%d%%", step.percent), step.want)
		}
		calledOff := canary(nil)
		calledOff.Spec.Enabled = ptr.To(false)
		w.put(calledOff)
		after(time.Second)
		w.expect("called off without an answer", false)
	})
}

// TestValuesAreCorrectedOnceServerReturns: a process that started without the server also corrects
// its file.
func TestValuesAreCorrectedOnceServerReturns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "values.json")
	fileOf(path).write(t.Context(), map[string]choice{"A": {Value: true, Dynamic: true}, "B": {Value: true}}, saved)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, feature("A", v1alpha1.ControlDynamic, false), feature("B", v1alpha1.ControlCentral, false))
		w.config.File, w.config.LoadTimeout = path, 5*time.Second
		w.answers(apierrors.NewServiceUnavailable("down"))
		if got := w.load(); got != FromFile {
			t.Fatalf("values come from %s", got)
		}
		w.run()
		after(time.Hour)
		w.expect("without a server", true)
		w.gate.Enabled("B")
		w.answers(nil)
		after(maxSyncBackoff)
		w.expect("with a server", false)
		if !w.gate.Enabled("B") {
			t.Error("a static value changed")
		}
		if o := w.s.outcomes["B"]; o.Reason != featuregate.OutcomeOutdated {
			t.Errorf("B: %+v", o)
		}
		if !fileOf(path).has(map[string]choice{"A": {Dynamic: true}, "B": {}}) {
			t.Error("the disk was not corrected")
		}
		if w.restarts.Load() != 0 {
			t.Error("it ended although the policy is Report")
		}
	})
}

// TestListsOfThousandsAreRareAndSpread: processes that start together list at different times, and
// few times. A process with a resync period of seconds has it from the start.
func TestListsOfThousandsAreRareAndSpread(t *testing.T) {
	for recheck, want := range map[time.Duration][2]int{10 * time.Minute: {3, 3}, firstResync: {13, 19}} {
		var firsts []time.Duration
		for range 50 {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.config.ResyncPeriod = recheck
				w.load()
				w.run()
				begun := time.Now()
				for w.count("list") < 2 {
					after(time.Second / 4)
				}
				firsts = append(firsts, time.Since(begun))
				after(2*time.Minute - time.Since(begun))
				if n := w.count("list"); n < want[0] || n > want[1] {
					t.Errorf("every %s at last: %d looks in two minutes, want %d to %d", recheck, n, want[0], want[1])
				}
			})
		}
		slices.Sort(firsts)
		first, last := firsts[0], firsts[len(firsts)-1]
		if spread := last - first; (recheck > firstResync) != (spread > firstResync) || first < firstResync/2 || last > 3*firstResync+time.Second {
			t.Errorf("every %s at last: the second looks are after %s to %s", recheck, first, last)
		}
	}
}

func TestThrottledListIsRetriedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.load()
		w.answers(apierrors.NewTooManyRequestsError("too many"))
		before := w.count("list")
		w.run()
		after(3 * firstResync)
		if f := w.s; f.version == "" {
			t.Error("all ask etcd when they come back, not the server's cache")
		}
		if n := w.count("list") - before; n < 1 || n > 3 {
			t.Errorf("%d looks, want the one that was turned away, and hardly another", n)
		}
		after(2 * backoff.ThrottleWindow)
		if n := w.count("list") - before; n < 2 {
			t.Error("it does not list again")
		}
	})
}

// TestThrottledStartDelaysNextList: a process that was throttled at its start, or got no answer in
// time, lists at a random time within a minute, and then at the usual period.
func TestThrottledStartDelaysNextList(t *testing.T) {
	turnedAway := func(w *world) { w.answers(apierrors.NewTooManyRequestsError("too many")) }
	slow := func(w *world) {
		w.config.Connect = func() (versioned.Interface, error) { return &hangingClient{Interface: w.client}, nil }
	}
	for name, start := range map[string]func(*world){"turned away": turnedAway, "no answer": slow} {
		var firsts []time.Duration
		for range 60 {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, feature("A", v1alpha1.ControlCentral, true))
				w.config.LoadTimeout = 5 * time.Second
				start(w)
				if origin := w.load(); origin != FromNowhere || !w.s.Throttled() {
					t.Fatalf("%s: values come from %s; throttled is %t", name, origin, w.s.Throttled())
				}
				w.s.client = w.client
				w.answers(nil)
				before := w.count("list")
				w.run()
				begun := time.Now()
				for w.count("list") == before && time.Since(begun) < 2*time.Minute {
					after(time.Second / 4)
				}
				firsts = append(firsts, time.Since(begun))
				for i, minutes := range []time.Duration{7, 12} {
					after(minutes*time.Minute - time.Since(begun))
					if n := w.count("list") - before; n != i+1 {
						t.Errorf("%s: %d looks within %d minutes, want %d", name, n, minutes, i+1)
					}
				}
			})
		}
		slices.Sort(firsts)
		if first, last := firsts[0], firsts[len(firsts)-1]; first > backoff.ThrottleStartWindow/4 || last < backoff.ThrottleStartWindow*3/4 || last > backoff.ThrottleStartWindow+time.Second {
			t.Errorf("%s: the next looks are after %s to %s, want them spread over %s", name, first, last, backoff.ThrottleStartWindow)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if w.load(); w.s.Throttled() {
			t.Error("a server that answers is taken for one that has too many requests")
		}
	})
	// A server that is not ready may not know yet what is set.
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.LoadTimeout = 5 * time.Second
		w.config.Ready = func(context.Context, versioned.Interface) error { return errors.New("starting") }
		turnedAway(w)
		w.load()
		w.answers(nil)
		before := w.count("list")
		w.run()
		after(backoff.ThrottleStartWindow + 2*time.Minute)
		if n := w.count("list") - before; n < 2 {
			t.Errorf("%d looks at a server that is not ready, want more", n)
		}
	})
	// There are few of those that always watch, and without an answer they watch nothing.
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.config.LoadTimeout, w.config.AlwaysWatch = 5*time.Second, true
			turnedAway(w)
			w.load()
			w.answers(nil)
			before := w.count("list")
			w.run()
			after(backoff.ThrottleWindow + time.Second)
			if n := w.count("list") - before; n == 0 {
				t.Errorf("no look within %s by a process that always watches", backoff.ThrottleWindow)
			}
		})
	}
}

// TestThrottledLoadRetriesLater: also without a load timeout there is a second attempt, and with one the
// second attempt is not made at once.
func TestThrottledLoadRetriesLater(t *testing.T) {
	for patience, want := range map[time.Duration]int{0: 2, time.Minute: 16} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, feature("A", v1alpha1.ControlCentral, true))
			w.config.LoadTimeout = patience
			w.answers(apierrors.NewTooManyRequestsError("too many"))
			begun := time.Now()
			w.load()
			if took := time.Since(begun); took > max(patience, attemptTimeout) || took < max(patience-maxStartBackoff, startThrottleBackoff/2) {
				t.Errorf("patience %s: it went on after %s", patience, took)
			}
			if n := w.count("list"); n < want-want/3 || n > want+max(1, want/3) {
				t.Errorf("patience %s: %d looks, want some %d", patience, n, want)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, feature("A", v1alpha1.ControlCentral, true))
			w.config.LoadTimeout = patience
			w.answers(apierrors.NewTooManyRequestsError("too many"))
			time.AfterFunc(startThrottleBackoff/2, func() { w.answers(nil) })
			if origin := w.load(); origin != FromServer {
				t.Errorf("patience %s: values come from %s, want the server, which had too many for a second", patience, origin)
			}
		})
	}
}
