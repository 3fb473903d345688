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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// notReady is a server that answers, and says that it is not ready as long as
// this is true.
type notReady struct{ atomic.Bool }

func (n *notReady) ask(context.Context, versioned.Interface) error {
	if n.Load() {
		return errors.New("[-]poststarthook/feature-lifecycle failed")
	}
	return nil
}

// TestLoadPrefersUnreadyServerToFile: Load waits for the server. If it does not become ready,
// its answer is better than none, and better than the file. The file keeps its content
// until a server is ready.
func TestLoadPrefersUnreadyServerToFile(t *testing.T) {
	const central = v1alpha1.ControlCentral
	for name, tc := range map[string]struct {
		stored map[string]choice
		// empty is a server whose list has nothing.
		empty bool
		// vanishes is the time at which the server does not even answer any more, becomes what
		// it answers then; ready is when it is ready. 0 means never.
		vanishes, ready time.Duration
		becomes         error
		waits           [2]time.Duration
	}{
		"it becomes ready": {ready: 20 * time.Second, waits: [2]time.Duration{20 * time.Second, 26 * time.Second}},
		"it does not":      {waits: [2]time.Duration{time.Minute, time.Minute}},
		"it does not, and the disk has the other":             {stored: map[string]choice{"A": {}}, waits: [2]time.Duration{time.Minute, time.Minute}},
		"it does not, and the list has not what the disk has": {stored: map[string]choice{"A": {Value: true}}, empty: true, waits: [2]time.Duration{time.Minute, time.Minute}},
		"it becomes ready, and nothing is central any more":   {stored: map[string]choice{"A": {Value: true}}, empty: true, ready: 20 * time.Second, waits: [2]time.Duration{20 * time.Second, 26 * time.Second}},
		"it answers no more":                                  {vanishes: 20 * time.Second, becomes: apierrors.NewServiceUnavailable("gone"), waits: [2]time.Duration{time.Minute, time.Minute}},
		"it answers no more, and the disk has another":        {stored: map[string]choice{"A": {}}, vanishes: 20 * time.Second, becomes: errors.New("connection refused"), waits: [2]time.Duration{time.Minute, time.Minute}},
		"another one has no such API":                         {vanishes: 20 * time.Second, becomes: apierrors.NewNotFound(resource, ""), waits: [2]time.Duration{20 * time.Second, 36 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "values.json")
			if tc.stored != nil {
				fileOf(path).write(t.Context(), tc.stored, saved)
			}
			synctest.Test(t, func(t *testing.T) {
				w, answer := newWorld(t), map[string]choice{}
				if !tc.empty {
					w.put(feature("A", central, true))
					answer["A"] = choice{Value: true}
				}
				w.config.File = path
				server := &notReady{}
				server.Store(true)
				w.config.Ready = server.ask
				if tc.ready > 0 {
					time.AfterFunc(tc.ready, func() { server.Store(false) })
				}
				if tc.vanishes > 0 {
					time.AfterFunc(tc.vanishes, func() { w.answers(tc.becomes) })
				}
				start := time.Now()
				if got := w.load(); got != FromServer {
					t.Errorf("values come from %s", got)
				}
				if took := time.Since(start); took < tc.waits[0] || took > tc.waits[1] {
					t.Errorf("it took %v, want %v", took, tc.waits)
				}
				w.expect("after Load", !tc.empty)
				if o := w.gate.RemoteOutcomes(); !tc.empty && (len(o) != 1 || o[0].Reason != featuregate.OutcomeInEffect) {
					t.Errorf("unexpected outcomes %+v", o)
				}
				kept := tc.stored
				if tc.ready > 0 {
					kept = answer
				}
				if !fileOf(path).has(kept) {
					t.Errorf("after Load the file has not %v", kept)
				}
				// It is no other while the process runs.
				w.run()
				after(time.Hour)
				if !fileOf(path).has(kept) {
					t.Errorf("later the file has not %v", kept)
				}
				w.answers(nil)
				server.Store(false)
				after(time.Hour)
				if !fileOf(path).has(answer) {
					t.Errorf("the server is ready, and the file has not %v", answer)
				}
			})
		})
	}
}

// TestUnreadyServerCausesNoRestart: with the policy Restart, processes that start with a
// server that never becomes ready keep running, start after start.
func TestUnreadyServerCausesNoRestart(t *testing.T) {
	const central = v1alpha1.ControlCentral
	path := filepath.Join(t.TempDir(), "values.json")
	server := &notReady{}
	server.Store(true)
	for start := range 3 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, feature("A", central, true))
			w.config.Policy, w.config.File, w.config.Ready = PolicyRestart, path, server.ask
			w.load()
			w.expect(fmt.Sprintf("start %d", start), true)
			w.run()
			after(100 * time.Hour)
			if w.restarts.Load() != 0 {
				t.Errorf("start %d ended itself", start)
			}
			// Another value would make the process end itself, if that helped.
			w.put(feature("A", central, false))
			after(100 * time.Hour)
			if w.restarts.Load() != 0 {
				t.Error("it ended for the answer of a server that is not ready")
			}
			if w.s.heldBy == "" {
				t.Error("it does not say why it does not end")
			}
			if start < 2 {
				return
			}
			server.Store(false)
			after(time.Hour)
			if w.restarts.Load() != 1 {
				t.Errorf("ended %d times once the server was ready", w.restarts.Load())
			}
		})
	}
}

// TestRunTakesValuesOnceConfigurationIsFixed: Load has not waited.
func TestRunTakesValuesOnceConfigurationIsFixed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, feature("A", v1alpha1.ControlDynamic, true))
		var mended atomic.Bool
		w.config.Connect = func() (versioned.Interface, error) {
			if !mended.Load() {
				return nil, fmt.Errorf("%w: no such file", ErrConfiguration)
			}
			return w.client, nil
		}
		if got := w.load(); got != FromNowhere {
			t.Fatalf("values come from %s", got)
		}
		w.run()
		after(time.Hour)
		w.expect("not mended", false)
		mended.Store(true)
		after(maxSyncBackoff)
		w.expect("mended", true)
	})
}

// TestTemporaryClientIsReplaced: and so is its watch.
func TestTemporaryClientIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, feature("A", v1alpha1.ControlDynamic, true))
		meantime, own := w.client, newWorld(t, feature("A", v1alpha1.ControlDynamic, true)).client
		var joined, connected atomic.Bool
		w.config.Connect = func() (versioned.Interface, error) {
			connected.Store(joined.Load())
			if joined.Load() {
				return own, nil
			}
			return meantime, nil
		}
		w.config.Reconnect = func() bool { return joined.Load() && !connected.Load() }
		if got := w.load(); got != FromServer {
			t.Fatalf("values come from %s", got)
		}
		w.expect("before it joined", true)
		w.run()
		after(time.Hour)
		joined.Store(true)
		after(w.s.config.ResyncPeriod)
		meantime.ClearActions()
		w.client = own
		w.put(feature("A", v1alpha1.ControlDynamic, false))
		after(time.Second)
		w.expect("a second after a change", false)
		after(time.Hour)
		if actions := meantime.Actions(); len(actions) > 0 {
			t.Errorf("the first client is still used: %v", actions)
		}
	})
}

// TestServerWithoutAPITakesNoValueBack: behind one address some servers have the API and some do
// not. The latter take back no value of the others, and are not trusted for long.
func TestServerWithoutAPITakesNoValueBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "values.json")
	fileOf(path).write(t.Context(), map[string]choice{"A": {Value: true, Dynamic: true}}, saved)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, feature("A", v1alpha1.ControlDynamic, false))
		w.config.File = path
		// Sooner than at a server of a cluster that has none with the API.
		w.config.ResyncPeriod = notServedResync / 2
		w.answers(apierrors.NewNotFound(resource, ""))
		if got := w.load(); got != FromFile {
			t.Fatalf("values come from %s", got)
		}
		w.run()
		after(10 * time.Hour)
		if got := w.count("list"); got < 120 {
			t.Errorf("%d looks in 10 hours, although another server of the cluster has the API", got)
		}
		w.expect("of the disk", true)
		if !fileOf(path).has(map[string]choice{"A": {Value: true, Dynamic: true}}) {
			t.Error("the file was changed")
		}
		w.answers(nil)
		after(w.s.config.ResyncPeriod)
		w.expect("of a server that has the API", false)
	})
}

// reports runs ResyncWhenServed until the test ends. What it returns says whether a server
// takes reports, as it does at first.
func (w *world) reports() func(now bool) {
	var mu sync.Mutex
	is, changed := true, make(chan struct{})
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.s.ResyncWhenServed(ctx, func() (bool, <-chan struct{}) {
			mu.Lock()
			defer mu.Unlock()
			return is, changed
		})
	}()
	w.t.Cleanup(func() { cancel(); <-done })
	return func(now bool) {
		mu.Lock()
		defer mu.Unlock()
		close(changed)
		is, changed = now, make(chan struct{})
	}
}

// TestListIsMadeSoonOnceReportsAreAccepted: the reporter finds out soon, and the list does not
// wait for its own period, whether the syncer has noticed the outage itself or not.
func TestListIsMadeSoonOnceReportsAreAccepted(t *testing.T) {
	for name, away := range map[string]time.Duration{"after long": notServedResync + time.Minute, "before the next list": 3 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, feature("A", v1alpha1.ControlCentral, false))
				w.load()
				w.run()
				reports := w.reports()
				after(time.Hour)
				// The next look is minutes away.
				for before := w.count("list"); w.count("list") == before; {
					after(time.Second)
				}
				w.answers(apierrors.NewNotFound(resource, ""))
				reports(false)
				after(away)
				before := w.count("list")
				after(time.Minute)
				if n := w.count("list") - before; n > 1 {
					t.Errorf("%d looks in a minute at a server that does not take reports", n)
				}
				before = w.count("list")
				w.answers(nil)
				reports(true)
				after(servedJitter + time.Second)
				if w.count("list") == before {
					t.Error("no list of a server that accepts reports again")
				}
			})
		})
	}
}

// TestListWithoutAPIIsRetriedSoonWhileReportsAreAccepted: the server restarts, or is one of
// several.
func TestListWithoutAPIIsRetriedSoonWhileReportsAreAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, feature("A", v1alpha1.ControlDynamic, false))
		w.load()
		w.run()
		w.reports()
		after(time.Hour)
		before := w.count("list")
		w.answers(apierrors.NewNotFound(resource, ""))
		for w.count("list") == before {
			after(time.Second)
		}
		w.put(feature("A", v1alpha1.ControlDynamic, true))
		w.answers(nil)
		after(2 * firstResync)
		w.expect("of a server that did not have the API for a moment", true)
		before = w.count("list")
		w.answers(apierrors.NewNotFound(resource, ""))
		after(10 * time.Hour)
		if n := w.count("list") - before; n > 90 {
			t.Errorf("%d looks in 10 hours at a server without the API", n)
		}
	})
}

// TestFirstListNoticesLossOfAPI: a process that has observed the API knows at the first response
// that it is not served any more, and logs that once.
func TestFirstListNoticesLossOfAPI(t *testing.T) {
	for name, answer := range map[string]error{
		"a server without the API": apierrors.NewNotFound(resource, ""),
		// An unpatched server refuses unpermitted reads also of what it lacks.
		"one that refuses": apierrors.NewForbidden(resource, "", errors.New("no")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, feature("A", v1alpha1.ControlCentral, true))
				w.load()
				if w.s.version = "5"; w.s.origin != FromServer {
					t.Fatalf("values come from %s", w.s.origin)
				}
				w.answers(answer)
				w.client.Resources = nil
				logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
				logs, ok := logger.GetSink().(ktesting.Underlier)
				if !ok {
					t.Fatal("the logger does not keep what is logged")
				}
				ctx := klog.NewContext(t.Context(), logger)
				for range 3 {
					if err := w.s.relist(ctx); !errors.Is(err, errAPINotServed) {
						t.Errorf("the look fails with %v, want %v", err, errAPINotServed)
					}
				}
				if said := logs.GetBuffer().String(); strings.Count(said, "Central feature values unavailable") != 1 {
					t.Errorf("it says %q, want once that nothing is known", said)
				}
			})
		})
	}
}
