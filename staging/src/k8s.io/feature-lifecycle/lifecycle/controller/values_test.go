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
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/legacyregistry"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	clients "k8s.io/feature-lifecycle/client/clientset/versioned/typed/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/leader"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// dynamicGate is A as a server reports it whose flags let the API decide.
func dynamicGate(enabled bool) v1alpha1.ReportedFeature {
	return v1alpha1.ReportedFeature{Name: "A", Enabled: enabled, Stage: v1alpha1.StageBeta, Queried: true, Control: v1alpha1.ControlDynamic}
}

// dynamicWorld has dynamic features whose servers are s1 and so on. They follow the API.
func dynamicWorld(t *testing.T, servers int, test func(w *trial)) {
	t.Helper()
	worldOfClocks(t, servers, nil, test)
}

// worldOfClocks is dynamicWorld with servers whose clocks are ahead, by ID.
func worldOfClocks(t *testing.T, servers int, ahead map[string]time.Duration, test func(w *trial)) {
	t.Helper()
	l := newLeftovers()
	inWorld(t, func(w *world) {
		w.leased, w.ahead = true, ahead
		for i := range servers {
			id := fmt.Sprint("s", i+1)
			w.report("server", id, dynamicGate(false))
			w.serve(id)
		}
		w.until(time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
		test(&trial{world: w})
	}, l.declare("A"))
}

// request requests a value.
func (w *trial) request(value bool) {
	w.t.Helper()
	w.change(func(spec *v1alpha1.FeatureSpec) { spec.Enabled = ptr.To(value) })
}

// publishedAs returns the stored value in words, "" without one.
func (w *trial) publishedAs() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if value := w.value("A"); value != nil {
		return describeValue(value)
	}
	return ""
}

// TestValueIsWrittenOnceForChange: what the server flow counts and says meanwhile reaches
// no process that follows values.
func TestValueIsWrittenOnceForChange(t *testing.T) {
	dynamicWorld(t, 1, func(w *trial) {
		for i := range 20 {
			w.process("proxy", strconv.Itoa(i), false)
		}
		w.pass(time.Minute)
		if diff := cmp.Diff([]string{"s1 create A: off"}, w.publications()); diff != "" {
			t.Errorf("unexpected writes of a feature at rest (-want +got):\n%s", diff)
		}
		valueWritesTotal.Reset()
		w.written()
		w.request(true)
		w.pass(2 * time.Second)
		w.report("server", "s1", dynamicGate(true))
		for i := range 20 {
			w.process("proxy", strconv.Itoa(i), true)
			w.pass(time.Second)
		}
		w.until(2*time.Minute, "on", func() bool { return w.state("A") == v1alpha1.StateOn })
		if diff := cmp.Diff([]string{"s1 update A: on"}, w.publications()); diff != "" {
			t.Errorf("unexpected writes of a change (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"ns update Done 1"}, valueWrites(t)); diff != "" {
			t.Errorf("unexpected metric (-want +got):\n%s", diff)
		}
		if n := w.written(); n < 5 {
			t.Errorf("the Feature was written %d times, so this shows nothing", n)
		}
	})
}

// TestValueOfCanaryNamesOthers, and a halt takes the value back.
func TestValueOfCanaryNamesOthers(t *testing.T) {
	dynamicWorld(t, 1, func(w *trial) {
		w.change(func(spec *v1alpha1.FeatureSpec) {
			spec.Enabled, spec.Rollout = ptr.To(true), &v1alpha1.FeatureRollout{Percent: ptr.To[int32](25)}
		})
		w.pass(time.Minute)
		w.change(func(spec *v1alpha1.FeatureSpec) { spec.Rollout.Percent = ptr.To[int32](50) })
		w.pass(time.Minute)
		w.change(func(spec *v1alpha1.FeatureSpec) { spec.Rollout.Attempt++ })
		w.pass(time.Minute)
		w.change(func(spec *v1alpha1.FeatureSpec) { spec.Rollout = nil })
		w.pass(time.Minute)
		want := []string{"s1 create A: off", "s1 update A: on, 25% others off", "s1 update A: on, 50% others off", "s1 update A: on"}
		if diff := cmp.Diff(want, w.publications()); diff != "" {
			t.Errorf("unexpected writes (-want +got):\n%s", diff)
		}
	})
}

// TestValueIsPublishedAfterCrashBetweenWrites: a server ends after the write of the status,
// or before the one of the value arrives, and the next one does what is left.
func TestValueIsPublishedAfterCrashBetweenWrites(t *testing.T) {
	for name, lost := range map[string]bool{"the value is not written": true, "the value is written, and no answer comes": false} {
		t.Run(name, func(t *testing.T) {
			dynamicWorld(t, 1, func(w *trial) {
				w.until(time.Minute, "a value", func() bool { return w.publishedAs() == "off" })
				w.pass(time.Minute)
				s1 := w.servers["s1"]
				w.mu.Lock()
				// The status is the first write of the change, and the value the second.
				s1.crashAt, s1.lost = s1.wrote+2, lost
				w.mu.Unlock()
				w.request(true)
				w.until(time.Minute, "the crash", func() bool {
					w.mu.Lock()
					defer w.mu.Unlock()
					return s1.crashed
				})
				if state, value := w.state("A"), w.publishedAs(); state != v1alpha1.StateTurningOn || (value == "on") != !lost {
					t.Fatalf("the feature is %s and its value %s after the crash", state, value)
				}
				w.stop(s1)
				w.serve("s1")
				w.until(time.Minute, "the value", func() bool { return w.publishedAs() == "on" })
			})
		})
	}
}

// withoutValues is a client of a server of the version before, or of one that may not.
type withoutValues struct {
	versioned.Interface
	err error
}

// IsWatchListSemanticsUnSupported: the fake behind it does not support them.
func (withoutValues) IsWatchListSemanticsUnSupported() bool { return true }

type groupWithoutValues struct {
	clients.FeaturesV1alpha1Interface
	err error
}

type noValues struct {
	clients.FeatureValueInterface
	err error
	// lists is true if only writes fail.
	lists clients.FeatureValueInterface
}

func (c withoutValues) FeaturesV1alpha1() clients.FeaturesV1alpha1Interface {
	return groupWithoutValues{c.Interface.FeaturesV1alpha1(), c.err}
}

func (c groupWithoutValues) FeatureValues(namespace string) clients.FeatureValueInterface {
	if apierrors.IsForbidden(c.err) {
		return noValues{err: c.err, lists: c.FeaturesV1alpha1Interface.FeatureValues(namespace)}
	}
	return noValues{err: c.err}
}

func (v noValues) List(ctx context.Context, options metav1.ListOptions) (*v1alpha1.FeatureValueList, error) {
	if v.lists != nil {
		return v.lists.List(ctx, options)
	}
	return nil, v.err
}

func (v noValues) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if v.lists != nil {
		return v.lists.Watch(ctx, options)
	}
	return nil, v.err
}

func (v noValues) Create(context.Context, *v1alpha1.FeatureValue, metav1.CreateOptions) (*v1alpha1.FeatureValue, error) {
	return nil, v.err
}

func (v noValues) Update(context.Context, *v1alpha1.FeatureValue, metav1.UpdateOptions) (*v1alpha1.FeatureValue, error) {
	return nil, v.err
}

var (
	valuesForbidden = apierrors.NewForbidden(v1alpha1.Resource("featurevalues"), "A", errors.New("no"))
	valuesNotServed = apierrors.NewGenericServerResponse(http.StatusNotFound, "get", v1alpha1.Resource("featurevalues"), "", "404 page not found", 0, true)
)

// TestFollowingServerPublishesForOlderLeader: the leader has a version without FeatureValues.
func TestFollowingServerPublishesForOlderLeader(t *testing.T) {
	l := newLeftovers()
	inWorld(t, func(inner *world) {
		w := &trial{world: inner}
		w.leased = true
		servers := []string{"s1", "s2"}
		older := leader.Of("A", servers)
		newer := servers[1-slices.Index(servers, older)]
		w.report("server", older, dynamicGate(false))
		w.report("server", newer, dynamicGate(false))
		w.client = func(inner versioned.Interface) versioned.Interface { return withoutValues{inner, valuesNotServed} }
		w.serve(older)
		w.client = nil
		w.serve(newer)
		w.until(time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
		w.until(time.Minute, "a value", func() bool { return w.publishedAs() == "off" })
		w.pass(time.Minute)
		w.written()
		w.request(true)
		w.until(time.Minute, "the transition", func() bool { return w.state("A") == v1alpha1.StateTurningOn })
		w.mu.Lock()
		if len(w.writes) == 0 || !strings.HasPrefix(w.writes[0], older+" ") {
			t.Errorf("%s was to lead, and the writes are %q", older, w.writes)
		}
		w.mu.Unlock()
		took := w.until(time.Minute, "the value", func() bool { return w.publishedAs() == "on" })
		if took < assistDelay-time.Second || took > assistDelay+2*time.Second {
			t.Errorf("the other server published the value after %s, want %s", took, assistDelay)
		}
		w.pass(time.Minute)
		if diff := cmp.Diff([]string{newer + " create A: off", newer + " update A: on"}, w.publications()); diff != "" {
			t.Errorf("unexpected writes (-want +got):\n%s", diff)
		}
	}, l.declare("A"))
}

// TestOnlyLeaderPublishesWhileItLives: others wait for it.
func TestOnlyLeaderPublishesWhileItLives(t *testing.T) {
	dynamicWorld(t, 3, func(w *trial) {
		w.pass(time.Minute)
		// The first server led all features before there were others.
		w.publications()
		for _, value := range []bool{true, false} {
			w.request(value)
			w.pass(time.Minute)
		}
		leads := leader.Of("A", []string{"s1", "s2", "s3"})
		if diff := cmp.Diff([]string{leads + " update A: on", leads + " update A: off"}, w.publications()); diff != "" {
			t.Errorf("unexpected writes (-want +got):\n%s", diff)
		}
	})
}

// TestServerFlowWorksWithoutValues: a server that does not have them, or does not permit to
// write them, changes nothing else. When it does, the value is published.
func TestServerFlowWorksWithoutValues(t *testing.T) {
	for name, err := range map[string]error{"not served": valuesNotServed, "forbidden": valuesForbidden} {
		t.Run(name, func(t *testing.T) {
			l := newLeftovers()
			inWorld(t, func(inner *world) {
				w := &trial{world: inner}
				w.leased = true
				w.client = func(inner versioned.Interface) versioned.Interface { return withoutValues{inner, err} }
				w.report("server", "s1", dynamicGate(false))
				w.serve("s1")
				w.until(time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
				w.request(true)
				w.pass(2 * time.Second)
				w.report("server", "s1", dynamicGate(true))
				w.until(2*time.Minute, "on", func() bool { return w.state("A") == v1alpha1.StateOn })
				w.pass(time.Hour)
				if published := w.publications(); len(published) > 0 {
					t.Fatalf("got the writes %q", published)
				}
				w.stop(w.servers["s1"])
				w.client = nil
				w.serve("s1")
				w.until(time.Minute, "the value", func() bool { return w.publishedAs() == "on" })
			}, l.declare("A"))
		})
	}
}

// TestDeletedValueIsWrittenAgain: an administrator may delete it.
func TestDeletedValueIsWrittenAgain(t *testing.T) {
	dynamicWorld(t, 1, func(w *trial) {
		w.until(time.Minute, "a value", func() bool { return w.publishedAs() == "off" })
		if err := w.tracker.Delete(valuesResource, "ns", "A"); err != nil {
			t.Fatal(err)
		}
		w.until(time.Minute, "the value", func() bool { return w.publishedAs() == "off" })
	})
}

// TestValueIsDeletedWithItsReason: the feature is local, or not there.
func TestValueIsDeletedWithItsReason(t *testing.T) {
	for name, change := range map[string]func(w *trial){
		"it is local": func(w *trial) {
			local := dynamicGate(false)
			local.Control = ""
			w.stop(w.servers["s1"])
			w.report("server", "s1", local)
			w.serve("s1")
		},
		"no server has it": func(w *trial) {
			w.stop(w.servers["s1"])
			w.report("server", "s1", gate("B", false))
			w.serve("s1")
			if err := w.tracker.Delete(featuresResource, "ns", "A"); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dynamicWorld(t, 1, func(w *trial) {
				w.until(time.Minute, "a value", func() bool { return w.publishedAs() == "off" })
				change(w)
				w.until(time.Minute, "no value", func() bool { return w.publishedAs() == "" })
				w.pass(time.Minute)
				if diff := cmp.Diff([]string{"s1 create A: off", "s1 delete A"}, w.publications()); diff != "" {
					t.Errorf("unexpected writes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestRecreatedFeatureKeepsItsValue: processes do not notice that it was deleted.
func TestRecreatedFeatureKeepsItsValue(t *testing.T) {
	dynamicWorld(t, 1, func(w *trial) {
		w.until(time.Minute, "a value", func() bool { return w.publishedAs() == "off" })
		w.mu.Lock()
		w.drain()
		err := w.tracker.Delete(featuresResource, "ns", "A")
		w.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		w.until(time.Minute, "it again", func() bool { return w.state("A") == v1alpha1.StateOff })
		w.pass(time.Minute)
		if diff := cmp.Diff([]string{"s1 create A: off"}, w.publications()); diff != "" {
			t.Errorf("unexpected writes (-want +got):\n%s", diff)
		}
	})
}

// TestPendingWriteOfValue compares what is stored with what a feature specifies.
func TestPendingWriteOfValue(t *testing.T) {
	feature := func(version string, value bool) *v1alpha1.Feature {
		return &v1alpha1.Feature{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "A", ResourceVersion: version},
			Spec:       v1alpha1.FeatureSpec{Enabled: &value},
			Status:     v1alpha1.FeatureStatus{Control: v1alpha1.ControlDynamic, Configured: &v1alpha1.FeatureConfiguration{Value: value, Source: v1alpha1.SourceAPI}},
		}
	}
	local := func(version string) *v1alpha1.Feature {
		f := feature(version, true)
		f.Status.Control = v1alpha1.ControlLocal
		return f
	}
	unobserved := feature("30", true)
	unobserved.Spec.Enabled = ptr.To(false)
	value := func(from, version string, value bool) *v1alpha1.FeatureValue {
		return &v1alpha1.FeatureValue{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "A", ResourceVersion: version}, Control: v1alpha1.ControlDynamic, Value: value, FeatureVersion: from}
	}
	ending := value("20", "21", true)
	ending.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for name, tc := range map[string]struct {
		feature *v1alpha1.Feature
		have    *v1alpha1.FeatureValue
		want    string
	}{
		"nothing":                             {nil, nil, ""},
		"a local feature":                     {local("20"), nil, ""},
		"a new value":                         {feature("20", true), nil, "create"},
		"the same":                            {feature("30", true), value("20", "21", true), ""},
		"the same, of a newer version":        {feature("20", true), value("30", "31", true), ""},
		"another one":                         {feature("30", false), value("20", "21", true), "update"},
		"another one, and the cache is older": {feature("20", false), value("30", "31", true), ""},
		"the spec is not observed":            {unobserved, value("20", "21", true), ""},
		"the spec is not observed, and there is none": {unobserved, nil, ""},
		"it became local":                                {local("30"), value("20", "21", true), "delete"},
		"it was local, and the cache is older":           {local("20"), value("30", "31", true), ""},
		"the feature is gone":                            {nil, value("20", "21", true), "delete"},
		"it is being deleted":                            {feature("30", false), ending, ""},
		"it came with a backup of another cluster":       {feature("30", false), value("9000", "40", true), "update"},
		"versions that cannot be compared":               {feature("x", false), value("y", "z", true), "update"},
		"it claims the version that is stored, as it is": {feature("30", false), value("30", "31", true), "update"},
	} {
		t.Run(name, func(t *testing.T) {
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			if tc.have != nil {
				if err := store.Add(tc.have); err != nil {
					t.Fatal(err)
				}
			}
			p := newPublisher(&observer{config: &Config{Namespace: "ns"}}, store, synced{})
			needed := p.pending("A", tc.feature)
			got := map[[2]bool]string{{false, false}: "", {false, true}: "create", {true, true}: "update", {true, false}: "delete"}[[2]bool{needed.have != nil, needed.want != nil}]
			if got != tc.want {
				t.Errorf("the write is %q, want %q", got, tc.want)
			}
			if none := newPublisher(p.observer, store, unsynced{}).pending("A", tc.feature); !none.none() {
				t.Errorf("the write is %+v before the cache is complete", none)
			}
		})
	}
}

// TestAnswersCountWhileCacheLags, and no longer.
func TestAnswersCountWhileCacheLags(t *testing.T) {
	value := func(uid, version string) *v1alpha1.FeatureValue {
		return &v1alpha1.FeatureValue{ObjectMeta: metav1.ObjectMeta{Name: "A", UID: types.UID(uid), ResourceVersion: version}}
	}
	answer := value("1", "20")
	for name, tc := range map[string]struct {
		cached *v1alpha1.FeatureValue
		after  time.Duration
		want   bool
	}{
		"the cache lags behind":   {value("1", "10"), time.Second, true},
		"it has the answer":       {value("1", "20"), time.Second, false},
		"it is newer":             {value("1", "30"), time.Second, false},
		"it was deleted":          {nil, time.Second, false},
		"it was created again":    {value("2", "10"), time.Second, false},
		"a backup was restored":   {value("1", "10"), 2 * answerLasts, false},
		"versions do not compare": {value("1", "x"), time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPublisher(&observer{config: &Config{Namespace: "ns", Clock: clock.RealClock{}}}, nil, synced{})
				if got := p.newest("A", tc.cached); got != tc.cached {
					t.Errorf("without an answer it is %v", got)
				}
				p.answered("A", answer)
				<-time.After(tc.after)
				want := tc.cached
				if tc.want {
					want = answer
				}
				if got := p.newest("A", tc.cached); got != want {
					t.Errorf("the newest is %v, want %v", got, want)
				}
				if got := len(p.answers) == 1; got != tc.want {
					t.Errorf("the answer is kept: %t, want %t", got, tc.want)
				}
			})
		})
	}
}

// unsynced is never done.
type unsynced struct{ synced }

func (unsynced) Done() <-chan struct{} { return nil }

// valueWrites reads the counter of writes: namespace, verb, result and number, sorted.
func valueWrites(t *testing.T) []string {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, family := range families {
		if family.GetName() != subsystem+"_value_writes_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			lines = append(lines, fmt.Sprintf("%s %s %s %g", labels["namespace"], labels["verb"], labels["result"], metric.GetCounter().GetValue()))
		}
	}
	slices.Sort(lines)
	return lines
}

// TestWritesOfValuesAreCounted: each one that is sent, by the answer to it.
func TestWritesOfValuesAreCounted(t *testing.T) {
	registerMetrics()
	enabled := true
	specifies := &v1alpha1.Feature{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "A", ResourceVersion: "20"},
		Spec:       v1alpha1.FeatureSpec{Enabled: &enabled},
		Status:     v1alpha1.FeatureStatus{Control: v1alpha1.ControlDynamic, Configured: &v1alpha1.FeatureConfiguration{Value: enabled, Source: v1alpha1.SourceAPI}},
	}
	values := v1alpha1.Resource("featurevalues")
	for name, tc := range map[string]struct {
		verb    string
		feature *v1alpha1.Feature
		answer  error
		want    []string
	}{
		"it is created":                    {verb: "create", want: []string{"ns create Done 1"}},
		"another server created it":        {verb: "create", answer: apierrors.NewAlreadyExists(values, "A"), want: []string{"ns create Conflict 1"}},
		"no permission":                    {verb: "create", answer: valuesForbidden, want: []string{"ns create Forbidden 1"}},
		"no identity":                      {verb: "update", answer: apierrors.NewUnauthorized("no"), want: []string{"ns update Forbidden 1"}},
		"it is changed":                    {verb: "update", want: []string{"ns update Done 1"}},
		"another server changed it":        {verb: "update", answer: apierrors.NewConflict(values, "A", errors.New("changed")), want: []string{"ns update Conflict 1"}},
		"another server deleted it":        {verb: "update", answer: apierrors.NewNotFound(values, "A"), want: []string{"ns update Conflict 1"}},
		"the server does not have the API": {verb: "update", answer: valuesNotServed, want: []string{"ns update Missing 1"}},
		"the server fails":                 {verb: "update", answer: apierrors.NewInternalError(errors.New("no space")), want: []string{"ns update Failed 1"}},
		"no answer":                        {verb: "delete", answer: errors.New("connection reset"), want: []string{"ns delete Failed 1"}},
		"it is deleted":                    {verb: "delete", want: []string{"ns delete Done 1"}},
		"it is gone already":               {verb: "delete", answer: apierrors.NewNotFound(values, "A"), want: []string{"ns delete Conflict 1"}},
		"it is not deleted after all":      {verb: "delete", feature: specifies},
	} {
		t.Run(name, func(t *testing.T) {
			client := &fake.Clientset{}
			client.AddReactor("get", "features", func(clienttesting.Action) (bool, apiruntime.Object, error) {
				if tc.feature == nil {
					return true, nil, apierrors.NewNotFound(v1alpha1.Resource("features"), "A")
				}
				return true, tc.feature, nil
			})
			var sent []string
			client.AddReactor("*", "featurevalues", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
				sent = append(sent, action.GetVerb())
				return true, nil, tc.answer
			})
			value := &v1alpha1.FeatureValue{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "A", ResourceVersion: "21"}, FeatureVersion: "20"}
			needed := map[string]valueWrite{"create": {want: value}, "update": {value, value}, "delete": {have: value}}[tc.verb]
			p := newPublisher(&observer{config: &Config{Namespace: "ns", Client: client, Clock: clock.RealClock{}}}, nil, synced{})
			valueWritesTotal.Reset()
			err := p.write(t.Context(), "A", needed, nil)
			if diff := cmp.Diff(tc.want, valueWrites(t)); diff != "" {
				t.Errorf("unexpected metric after %v (-want +got):\n%s", err, diff)
			}
			if len(sent) != len(tc.want) || len(sent) > 0 && sent[0] != tc.verb {
				t.Errorf("%q was sent", sent)
			}
		})
	}
}

// TestTakersChangeTheirValue: these report, and no others.
func TestTakersChangeTheirValue(t *testing.T) {
	user := func(component string, enabled bool, change ...func(*tracker.Instance)) tracker.Instance {
		i := tracker.Instance{Component: component, Name: "a", Group: make([]string, 99), Reported: true, Alive: true, Enabled: enabled}
		for _, c := range change {
			c(&i)
		}
		return i
	}
	instances := []tracker.Instance{
		user("kubelet", false), user("kube-proxy", true),
		user("kube-scheduler", false, func(i *tracker.Instance) { i.SwitchTime = "2026-11-30T12:00:00Z" }),
		user("kubelet", false, func(i *tracker.Instance) { i.Explicit = true }),
		user("kubelet", false, func(i *tracker.Instance) { i.Potential = true }),
		user("kubelet", false, func(i *tracker.Instance) { i.Alive = false }),
		user("kubelet", false, func(i *tracker.Instance) { i.Reported = false }),
	}
	for name, tc := range map[string]struct {
		value v1alpha1.FeatureValue
		want  int
	}{
		"on":                     {v1alpha1.FeatureValue{Value: true}, 100 + 100},
		"off":                    {v1alpha1.FeatureValue{}, 100 + 100},
		"on for a part":          {v1alpha1.FeatureValue{Value: true, Previous: ptr.To(false), Rollout: &v1alpha1.FeatureRollout{Percent: ptr.To[int32](25)}}, 25 + 75 + 100},
		"on for one component":   {v1alpha1.FeatureValue{Value: true, Previous: ptr.To(false), Rollout: &v1alpha1.FeatureRollout{Components: []string{"kubelet"}}}, 100 + 100 + 100},
		"nothing for the others": {v1alpha1.FeatureValue{Value: true, Rollout: &v1alpha1.FeatureRollout{Percent: ptr.To[int32](10)}}, 10 + 100},
		"at a moment": {v1alpha1.FeatureValue{Value: true, Previous: ptr.To(false), Rollout: &v1alpha1.FeatureRollout{Percent: ptr.To[int32](0),
			At: &metav1.Time{Time: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}}}, 100 + 100},
	} {
		if got := takers(&tc.value, instances); got != tc.want {
			t.Errorf("%s: %d take it, want %d", name, got, tc.want)
		}
	}
}

// TestStatusWithTransitionIsStoredFirst: a process that takes the value finds the transition.
func TestStatusWithTransitionIsStoredFirst(t *testing.T) {
	dynamicWorld(t, 1, func(w *trial) {
		w.request(true)
		w.until(time.Minute, "the value", func() bool { return w.publishedAs() == "on" })
		w.mu.Lock()
		defer w.mu.Unlock()
		feature, value := w.stored("A"), w.value("A")
		if feature.Status.State != v1alpha1.StateTurningOn || feature.Status.Configured == nil || !feature.Status.Configured.Value || len(feature.Status.Tasks) == 0 {
			t.Errorf("processes take the value while the status is %+v", feature.Status)
		}
		if newerVersion(value.FeatureVersion, feature.ResourceVersion) {
			t.Errorf("the value is of version %s, and the Feature has %s", value.FeatureVersion, feature.ResourceVersion)
		}
		if transition.AwaitsUsers(&feature.Status) && value.ReportWithinSeconds != 0 {
			t.Errorf("one server reports within %d s", value.ReportWithinSeconds)
		}
	})
}
