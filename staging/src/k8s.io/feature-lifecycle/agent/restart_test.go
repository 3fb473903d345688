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
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

func TestRestartDependsOnPolicyAndOutcome(t *testing.T) {
	const central, dynamic = v1alpha1.ControlCentral, v1alpha1.ControlDynamic
	unavailable := apierrors.NewServiceUnavailable("down")
	for name, tc := range map[string]struct {
		policy ChangePolicy
		set    string
		// feature and change are A before and after the start.
		feature, change *v1alpha1.Feature
		// then happens after the change was seen.
		then func(w *world)
		// late loads after the gate is final.
		late bool
		// unasked leaves A alone.
		unasked bool
		want    int32
	}{
		"with another value":             {policy: PolicyRestart, feature: feature("A", central, false), change: feature("A", central, true), want: 1},
		"that is set for the first time": {policy: PolicyRestart, feature: feature("B", central, false), change: feature("A", central, true), want: 1},
		"that was withdrawn":             {policy: PolicyRestart, feature: feature("A", central, true), change: feature("A", v1alpha1.ControlLocal, true), want: 1},
		"not with the policy Report":     {policy: PolicyReport, feature: feature("A", central, false), change: feature("A", central, true)},
		"not without a change":           {policy: PolicyRestart, feature: feature("A", central, true), change: feature("A", central, true)},
		"not for a dynamic value":        {policy: PolicyRestart, feature: feature("A", dynamic, false), change: feature("A", dynamic, true)},
		"not when it is explicit here":   {policy: PolicyRestart, set: "A=false", feature: feature("B", central, false), change: feature("A", central, true)},
		"not for a locked gate":          {policy: PolicyRestart, feature: feature("B", central, false), change: feature("L", central, false)},
		"not for an unknown gate":        {policy: PolicyRestart, feature: feature("B", central, false), change: feature("Unknown", central, true)},
		"not when the value comes back":  {policy: PolicyRestart, feature: feature("A", central, false), change: feature("A", central, true), then: func(w *world) { w.put(feature("A", central, false)) }},
		"not while the server is away":   {policy: PolicyRestart, feature: feature("A", central, false), change: feature("A", central, true), then: func(w *world) { w.answers(unavailable) }},
		"not if it cannot be saved": {policy: PolicyRestart, feature: feature("A", central, false), change: feature("A", central, true), then: func(w *world) {
			if err := os.RemoveAll(filepath.Dir(w.config.File)); err != nil {
				w.t.Error(err)
			}
			if err := os.WriteFile(filepath.Dir(w.config.File), nil, 0o600); err != nil {
				w.t.Error(err)
			}
		}},
		"not for what it never asked for": {policy: PolicyRestart, unasked: true, feature: feature("A", central, false), change: feature("A", central, true)},
		"for what it asks for later":      {policy: PolicyRestart, unasked: true, feature: feature("A", central, false), change: feature("A", central, true), then: func(w *world) { w.gate.Enabled("A") }, want: 1},
		"not if every start is too late":  {policy: PolicyRestart, late: true, feature: feature("A", central, true), change: feature("A", central, true)},
	} {
		t.Run(name, func(t *testing.T) {
			// When the process ends is drawn from the window: it may be too early for
			// what the case does first, and is drawn again then.
			for draws, early := 0, true; early; draws++ {
				if early = false; draws == 10 {
					t.Fatal("it always ends too early for this test")
				}
				dir := filepath.Join(t.TempDir(), "d")
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, tc.feature)
					w.config.Policy, w.config.File, w.config.RestartWindow = tc.policy, filepath.Join(dir, "values.json"), 24*time.Hour
					if tc.set != "" {
						if err := w.gate.Set(tc.set); err != nil {
							t.Fatal(err)
						}
					}
					if tc.late {
						w.gate.Finalize()
						var err error
						if w.s, err = NewSyncer(w.config); err != nil {
							t.Fatal(err)
						}
						w.s.Load(t.Context())
					} else {
						w.load()
					}
					if !tc.unasked {
						w.gate.Enabled("A")
					}
					w.run()
					after(time.Second)
					w.put(tc.change)
					after(5 * time.Minute)
					if tc.then != nil {
						if early = w.restarts.Load() != 0; early {
							return
						}
						tc.then(w)
					}
					after(100 * time.Hour)
					if got := w.restarts.Load(); got != tc.want {
						t.Errorf("it ended %d times, want %d", got, tc.want)
					}
				})
			}
		})
	}
}

// TestHeldRestartIsLoggedOnceEachTime: once while a value is outdated, and again the next time.
func TestHeldRestartIsLoggedOnceEachTime(t *testing.T) {
	const central = v1alpha1.ControlCentral
	synctest.Test(t, func(t *testing.T) {
		w, server := newWorld(t, feature("A", central, false)), &notReady{}
		w.config.Policy, w.config.Ready = PolicyRestart, server.ask
		w.load()
		w.gate.Enabled("A")
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		said := func() int {
			return strings.Count(logger.GetSink().(ktesting.Underlier).GetBuffer().String(), "Restart held")
		}
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.s.Run(ctx)
		}()
		defer func() { cancel(); <-done }()
		server.Store(true)
		for round := range 3 {
			w.put(feature("A", central, true))
			after(10 * 24 * time.Hour)
			if got := said(); got != round+1 {
				t.Errorf("outdated for the %d. time, and it was said %d times", round+1, got)
			}
			w.put(feature("A", central, false))
			after(time.Hour)
		}
		if n := w.restarts.Load(); n != 0 {
			t.Errorf("it ended %d times", n)
		}
	})
}

func TestRestartsAreSpreadOverWindow(t *testing.T) {
	const window = 10 * time.Hour
	var ended []time.Duration
	for range 40 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, feature("A", v1alpha1.ControlCentral, false))
			w.config.Policy, w.config.RestartWindow = PolicyRestart, window
			w.load()
			w.gate.Enabled("A")
			start := time.Now()
			w.s.config.Restart = func() { ended = append(ended, time.Since(start)) }
			w.put(feature("A", v1alpha1.ControlCentral, true))
			w.run()
			after(window + time.Minute)
		})
	}
	early, late := 0, 0
	for _, at := range ended {
		switch {
		case at < window/2:
			early++
		case at <= window+time.Minute:
			late++
		}
	}
	// Fewer than 5 of 40 in one half happens once in ten million runs.
	if early+late != 40 || early < 5 || late < 5 {
		t.Errorf("ended at %v", ended)
	}
}

func TestChangePolicyIsValidated(t *testing.T) {
	var policy ChangePolicy
	for text, ok := range map[string]bool{"Report": true, "Restart": true, "": false, "restart": false} {
		if err := policy.Set(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	for name, config := range map[string]SyncerConfig{
		"no identity": {Gate: newWorld(t).gate, Connect: newWorld(t).config.Connect},
		"no gate":     {Namespace: "n", Component: "c", Instance: "i", Connect: newWorld(t).config.Connect},
		"no restart":  {Namespace: "n", Component: "c", Instance: "i", Gate: newWorld(t).gate, Connect: newWorld(t).config.Connect, Policy: PolicyRestart},
	} {
		if _, err := NewSyncer(config); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
