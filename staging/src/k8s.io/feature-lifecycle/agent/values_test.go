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
	"cmp"
	"errors"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/rollout"
	"k8s.io/utils/ptr"
)

// at gives a Feature a resource version.
func at(version int, f *v1alpha1.Feature) *v1alpha1.Feature {
	f.ResourceVersion = strconv.Itoa(version)
	return f
}

// valueAt is the dynamic value of A that was derived from a version of its Feature.
func valueAt(version int, value bool) *v1alpha1.FeatureValue {
	return &v1alpha1.FeatureValue{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "A", ResourceVersion: strconv.Itoa(version + 1)},
		Control:    v1alpha1.ControlDynamic, Value: value, FeatureVersion: strconv.Itoa(version),
	}
}

// publish creates or replaces a FeatureValue on the server.
func (w *world) publish(value *v1alpha1.FeatureValue) {
	w.t.Helper()
	values := w.client.FeaturesV1alpha1().FeatureValues(value.Namespace)
	_, err := values.Update(w.t.Context(), value, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = values.Create(w.t.Context(), value, metav1.CreateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// watches returns what is watched: "values", "features", "both" or "nothing".
func (w *world) watches() string {
	synctest.Wait()
	switch features, values := w.open["features"].Load(), w.open["featurevalues"].Load(); {
	case features > 0 && values > 0:
		return "both"
	case values > 0:
		return "values"
	case features > 0:
		return "features"
	}
	return "nothing"
}

func (w *world) wantWatched(when, want string) {
	w.t.Helper()
	if got := w.watches(); got != want {
		w.t.Errorf("%s: the process watches %s, want %s", when, got, want)
	}
}

// following is a process that follows the value of A, which is off in version 10.
func following(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, at(10, feature("A", v1alpha1.ControlDynamic, false)))
		w.serveValues(nil)
		w.publish(valueAt(10, false))
		w.load()
		w.run()
		after(time.Second)
		w.wantWatched("at the start", "values")
		test(w)
	})
}

func TestValuesAreFollowedInPlaceOfFeatures(t *testing.T) {
	following(t, func(w *world) {
		for i, value := range []bool{true, false, true} {
			version := 20 + 10*i
			w.put(at(version, feature("A", v1alpha1.ControlDynamic, value)))
			after(time.Second)
			w.expect("the Feature alone was written", !value)
			w.publish(valueAt(version, value))
			after(time.Second)
			w.expect("the value was published", value)
		}
		after(time.Hour)
		w.expect("an hour later", true)
		w.wantWatched("an hour later", "values")
	})
}

// TestNewerOfFeatureAndValueCounts, whichever comes first.
func TestNewerOfFeatureAndValueCounts(t *testing.T) {
	following(t, func(w *world) {
		w.put(at(30, feature("A", v1alpha1.ControlDynamic, true)))
		after(10 * time.Minute)
		w.expect("a list has a newer version", true)
		w.publish(valueAt(20, false))
		after(time.Second)
		w.expect("a value of an older version comes", true)
		w.publish(valueAt(40, false))
		after(time.Second)
		w.expect("a value of a newer version comes", false)
		after(time.Hour)
		w.expect("lists have an older version", false)
	})
}

// TestCanaryIsFollowedByValue: an instance outside of the rollout has the previous value.
func TestCanaryIsFollowedByValue(t *testing.T) {
	following(t, func(w *world) {
		bucket := rollout.Bucket("A", "node-1")
		for i, step := range []struct {
			percent int32
			want    bool
		}{{bucket, false}, {bucket + 1, true}, {bucket, false}} {
			value := valueAt(20+10*i, true)
			value.Previous, value.Rollout = ptr.To(false), &v1alpha1.FeatureRollout{Percent: &step.percent}
			w.publish(value)
			after(time.Second)
			w.expect("a rollout of "+strconv.Itoa(int(step.percent))+" percent", step.want)
		}
	})
}

// TestProcessSwitchesAtMoment by its own clock: nothing reaches it then.
func TestProcessSwitchesAtMoment(t *testing.T) {
	reported := func(w *world) string {
		return cmp.Or(features(w.gate.Observations(), true)[0].SwitchTime, "none")
	}
	following(t, func(w *world) {
		moment := time.Now().Add(time.Hour).Truncate(time.Second)
		value := valueAt(20, true)
		value.Previous, value.Rollout = ptr.To(false), &v1alpha1.FeatureRollout{Percent: ptr.To[int32](0), At: ptr.To(metav1.NewTime(moment))}
		w.publish(value)
		after(time.Second)
		w.expect("the moment is known", false)
		if got, want := reported(w), moment.UTC().Format(time.RFC3339); got != want {
			t.Errorf("the process waits for %s, want %s", got, want)
		}
		after(time.Until(moment) - time.Nanosecond)
		w.expect("before the moment", false)
		after(time.Nanosecond)
		w.expect("at the moment", true)
		if got := reported(w); got != "none" {
			t.Errorf("the process still waits for %s", got)
		}
		requests := len(w.client.Actions())
		w.publish(valueAt(30, true))
		after(time.Second)
		w.expect("it is published for all", true)
		if n := len(w.client.Actions()) - requests - 1; n != 0 {
			t.Errorf("the process sent %d requests for a value that it has", n)
		}
	})
}

// TestMomentOfFeatureIsAwaited by a process that follows Features, and one that is called
// off is not.
func TestMomentOfFeatureIsAwaited(t *testing.T) {
	for name, calledOff := range map[string]bool{"it comes": false, "it is called off": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, at(10, feature("A", v1alpha1.ControlDynamic, false)))
				w.load()
				w.run()
				after(time.Second)
				moment := metav1.NewTime(time.Now().Add(time.Minute).Truncate(time.Second))
				f := at(20, awaiting(moment))
				w.put(f)
				after(time.Second)
				w.expect("before the moment", false)
				if calledOff {
					f = at(30, f.DeepCopy())
					f.Status.Rollout.MomentHeld = true
					w.put(f)
				}
				after(time.Minute)
				w.expect("after the moment", !calledOff)
				if calledOff {
					f = at(40, used(feature("A", v1alpha1.ControlDynamic, false), 0, 10))
					w.put(used(at(35, awaiting(metav1.NewTime(moment.Add(time.Hour)))), 70))
					after(time.Second)
					w.put(f)
					after(time.Second)
					if n := w.s.Peers("A"); n != 10 {
						t.Errorf("%d peers when the moment goes away with its rollout, want all 10", n)
					}
				}
			})
		})
	}
}

// awaiting is A, which all instances take at a moment that the server has accepted.
func awaiting(moment metav1.Time) *v1alpha1.Feature {
	f := feature("A", v1alpha1.ControlDynamic, true)
	f.Spec.Rollout = &v1alpha1.FeatureRollout{At: &moment}
	f.Status.State, f.Status.Configured.Previous = v1alpha1.StateTurningOn, ptr.To(false)
	f.Status.Rollout = &v1alpha1.FeatureRolloutStatus{Value: true, Observed: v1alpha1.FeatureRollout{Percent: ptr.To[int32](0), At: &moment}}
	return f
}

// TestMomentIsKeptOnDisk: a process that starts without a server takes the value that its
// last one would have by now, also while it runs.
func TestMomentIsKeptOnDisk(t *testing.T) {
	for name, tc := range map[string]struct {
		// away is how long the process does not run.
		away time.Duration
		want bool
	}{
		"it starts before the moment": {time.Minute, false},
		"it starts after the moment":  {2 * time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "values")
			synctest.Test(t, func(t *testing.T) {
				moment := metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second))
				before := newWorld(t, at(10, awaiting(moment)))
				before.config.File = path
				if origin := before.load(); origin != FromServer {
					t.Fatalf("values come from %s", origin)
				}
				before.expect("before the moment", false)
				after(tc.away)

				w := newWorld(t)
				w.config.File = path
				w.answers(errors.New("the server is down"))
				if origin := w.load(); origin != FromFile {
					t.Fatalf("values come from %s", origin)
				}
				w.expect("without a server", tc.want)
				w.run()
				after(time.Until(moment.Time))
				w.expect("after the moment, without a server", true)
			})
		})
	}
}

// TestClockThatIsSetBackTakesNoValueBack that the process took at its moment.
func TestClockThatIsSetBackTakesNoValueBack(t *testing.T) {
	moment := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	self := rollout.Instance{Component: "kubelet", Name: "node-1"}
	s := &Syncer{listed: map[string]*v1alpha1.Feature{"A": awaiting(metav1.NewTime(moment))}}
	takes := func(clock time.Time) bool { return s.choose("A", self, s.clockFor("A", self, clock)).Value }
	if takes(moment.Add(-time.Second)) || !takes(moment) || !takes(moment.Add(-time.Hour)) {
		t.Error("the value is not taken from the moment on")
	}
	s.listed["A"] = awaiting(metav1.NewTime(moment.Add(time.Minute)))
	if takes(moment) {
		t.Error("another moment counts before it comes")
	}
}

// TestServerWithoutValuesIsFollowedByFeatures, and asked again later.
func TestServerWithoutValuesIsFollowedByFeatures(t *testing.T) {
	for name, err := range map[string]error{
		"not served": apierrors.NewNotFound(v1alpha1.Resource("featurevalues"), ""),
		"forbidden":  apierrors.NewForbidden(v1alpha1.Resource("featurevalues"), "", errors.New("no")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, at(10, feature("A", v1alpha1.ControlDynamic, false)))
				w.serveValues(err)
				w.load()
				w.run()
				after(time.Second)
				w.wantWatched("at the start", "features")
				w.put(at(20, feature("A", v1alpha1.ControlDynamic, true)))
				after(time.Second)
				w.expect("the Feature was written", true)
				w.publish(valueAt(20, true))
				w.serveValues(nil)
				after(3 * valuesRefusedPause)
				w.wantWatched("the server has values now", "values")
				w.publish(valueAt(30, false))
				after(time.Second)
				w.expect("the value was published", false)
			})
		})
	}
}

// newWorldOfValues returns a world in which a process follows values, and its open watch.
func newWorldOfValues(t *testing.T) (*world, *atomic.Pointer[watch.FakeWatcher]) {
	t.Helper()
	w := newWorld(t, at(10, feature("A", v1alpha1.ControlDynamic, false)))
	w.serveValues(nil)
	open := &atomic.Pointer[watch.FakeWatcher]{}
	w.client.PrependWatchReactor("featurevalues", func(clienttesting.Action) (bool, watch.Interface, error) {
		open.Store(watch.NewFake())
		return true, w.counted("featurevalues", open.Load()), nil
	})
	w.publish(valueAt(10, false))
	w.load()
	w.run()
	after(time.Second)
	w.wantWatched("at the start", "values")
	return w, open
}

// TestServerThatLosesValuesIsFollowedByFeatures: it is replaced by one of the version
// before, whose coordinator publishes nothing.
func TestServerThatLosesValuesIsFollowedByFeatures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, open := newWorldOfValues(t)
		w.serveValues(apierrors.NewNotFound(v1alpha1.Resource("featurevalues"), ""))
		open.Load().Error(&apierrors.NewResourceExpired("too old").ErrStatus)
		after(time.Minute)
		w.wantWatched("the server has no values any more", "features")
		w.put(at(20, feature("A", v1alpha1.ControlDynamic, true)))
		after(time.Second)
		w.expect("the Feature was written", true)
	})
}

// TestServerThatRefusesForAMoment is not followed by Features: one that starts does not know
// its roles yet.
func TestServerThatRefusesForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, open := newWorldOfValues(t)
		for range 3 {
			w.client.ClearActions()
			w.serveValues(apierrors.NewForbidden(v1alpha1.Resource("featurevalues"), "", errors.New("no roles are known")))
			open.Load().Error(&apierrors.NewResourceExpired("too old").ErrStatus)
			after(valuesPatience / 2)
			w.serveValues(nil)
			after(valuesPatience)
			w.wantWatched("the server permits it again", "values")
			for _, action := range w.client.Actions() {
				if action.GetVerb() == "watch" && action.GetResource().Resource == "features" {
					t.Error("Features were watched meanwhile")
				}
			}
			after(time.Hour)
		}
		open.Load().Modify(valueAt(20, true))
		after(time.Second)
		w.expect("the value was published", true)
	})
}

// TestUnpublishedValueIsFollowedByFeature after some patience, and only until it is
// published.
func TestUnpublishedValueIsFollowedByFeature(t *testing.T) {
	for name, stored := range map[string]*v1alpha1.FeatureValue{"missing": nil, "outdated": valueAt(5, true)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, at(10, feature("A", v1alpha1.ControlDynamic, false)))
				w.serveValues(nil)
				if stored != nil {
					w.publish(stored)
				}
				w.load()
				w.run()
				after(valuesPatience - time.Second)
				w.wantWatched("before patience ends", "values")
				w.expect("the list counts", false)
				after(2 * time.Second)
				w.wantWatched("after patience has ended", "both")
				w.put(at(20, feature("A", v1alpha1.ControlDynamic, true)))
				after(time.Second)
				w.expect("the Feature was written", true)
				w.wantWatched("while nothing is published", "both")
				w.publish(valueAt(20, true))
				after(time.Second)
				w.wantWatched("the value was published", "values")
				w.publish(valueAt(30, false))
				after(time.Second)
				w.expect("another value was published", false)
			})
		})
	}
}

// TestListBeforeValueNeedsNoOtherWatch: the value is published a moment later.
func TestListBeforeValueNeedsNoOtherWatch(t *testing.T) {
	following(t, func(w *world) {
		w.put(at(20, feature("A", v1alpha1.ControlDynamic, true)))
		for range 600 {
			if w.gate.Enabled("A") {
				break
			}
			after(time.Second)
		}
		w.expect("a list has it", true)
		after(valuesPatience - 2*time.Second)
		w.publish(valueAt(20, true))
		after(time.Hour)
		w.wantWatched("later", "values")
		if n := w.count("watch"); n != 0 {
			t.Errorf("%d watches of Features were opened", n)
		}
	})
}

// TestValueOfUnlistedFeature: with AlwaysWatch the first dynamic feature is followed at
// once. What the last list lacks because it is local counts no more.
func TestValueOfUnlistedFeature(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.AlwaysWatch = true
		w.serveValues(nil)
		w.version.Store(100)
		w.load()
		w.run()
		after(time.Second)
		w.wantWatched("nothing is dynamic", "values")
		w.publish(valueAt(50, true))
		after(time.Second)
		w.expect("a value older than the list comes", false)
		w.publish(valueAt(150, true))
		after(time.Second)
		w.expect("a newer one comes", true)
		w.version.Store(200)
		after(time.Hour)
		w.expect("a list lacks its feature", false)
	})
}

// TestDeletedValueLeadsToList: its Feature is local, or the value will come again.
func TestDeletedValueLeadsToList(t *testing.T) {
	following(t, func(w *world) {
		w.publish(valueAt(20, true))
		after(time.Second)
		w.expect("turned on", true)
		lists := w.count("list")
		w.put(at(30, feature("A", v1alpha1.ControlLocal, true)))
		if err := w.client.FeaturesV1alpha1().FeatureValues("kube-system").Delete(t.Context(), "A", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.expect("the value is gone", true)
		after(removedJitter)
		w.expect("local again", false)
		if w.count("list") == lists {
			t.Error("no list was made")
		}
		w.wantWatched("nothing is dynamic", "nothing")
	})
}

// TestFilterNeedsFeatures: it decides by what values do not have.
func TestFilterNeedsFeatures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, at(10, feature("A", v1alpha1.ControlDynamic, false)))
		w.serveValues(nil)
		w.publish(valueAt(10, true))
		w.config.Filter = func(f *v1alpha1.Feature) bool { return f.Status.Configured.Source == v1alpha1.SourceCommandLine }
		w.load()
		w.run()
		after(time.Hour)
		w.wantWatched("with a filter", "features")
		w.expect("a value does not count", false)
	})
}

// TestPeersOfValueAreThoseOfItsTime: the reporter calls Peers as soon as the gate has the value.
func TestPeersOfValueAreThoseOfItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, at(10, used(feature("A", v1alpha1.ControlDynamic, false), 10, 0)))
		w.serveValues(nil)
		w.publish(valueAt(10, false))
		gate := &counting{Gate: w.gate, peers: func(feature string) int { return w.s.Peers(feature) }}
		w.config.Gate = gate
		w.load()
		w.run()
		after(time.Second)
		value := valueAt(20, true)
		value.ReportWithinSeconds = 20
		w.publish(value)
		after(time.Second)
		w.expect("published", true)
		if n := gate.seen.Load(); n != 20*v1alpha1.ReportsPerSecond {
			t.Errorf("%d peers when the gate got the value, want those that report in 20 s", n)
		}
	})
}

// TestVersionOfOtherClusterIsNotListed: a value that came with a backup must not make lists
// wait for a version that is not there.
func TestVersionOfOtherClusterIsNotListed(t *testing.T) {
	following(t, func(w *world) {
		bogus := valueAt(9000, true)
		bogus.ResourceVersion = "40"
		w.publish(bogus)
		after(time.Second)
		if w.s.version == bogus.FeatureVersion {
			t.Errorf("lists are to be as new as version %s", w.s.version)
		}
	})
}
