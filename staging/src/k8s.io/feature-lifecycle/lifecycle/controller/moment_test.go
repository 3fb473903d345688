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
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

// requestAt requests the feature on, for all at a moment from now.
func (w *trial) requestAt(in time.Duration) metav1.Time {
	w.t.Helper()
	at := metav1.NewTime(time.Now().Add(in).Truncate(time.Second))
	w.change(func(spec *v1alpha1.FeatureSpec) {
		spec.Enabled, spec.Rollout = ptr.To(true), &v1alpha1.FeatureRollout{At: &at}
	})
	return at
}

// taskMessage returns what the first task says.
func (w *trial) taskMessage() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if tasks := w.stored("A").Status.Tasks; len(tasks) > 0 {
		return tasks[0].Message
	}
	return ""
}

// publishedFor is what is published before a moment.
func publishedFor(at metav1.Time) string {
	return "update A: on, 0%, all at " + at.UTC().Format(time.TimeOnly) + " others off"
}

// TestValueIsPublishedBeforeItsMoment, and for all after it. Users that have not confirmed
// the moment are named, and the transition does not end before it.
func TestValueIsPublishedBeforeItsMoment(t *testing.T) {
	dynamicWorld(t, 1, func(w *trial) {
		off := dynamicGate(false)
		off.Control = ""
		for _, name := range []string{"a", "b"} {
			w.node(name, corev1.ConditionTrue)
			w.report(kubelet, name, off)
		}
		w.pass(time.Minute)
		at := w.requestAt(2 * time.Minute)
		waits, on := off, off
		waits.SwitchTime, on.Enabled = at.UTC().Format(time.RFC3339), true
		server := dynamicGate(false)
		server.SwitchTime = waits.SwitchTime
		w.report("server", "s1", server)
		w.pass(5 * time.Second)
		if got, want := w.taskMessage(), "2 users have not confirmed that: kubelet/a, kubelet/b"; !strings.Contains(got, want) {
			t.Errorf("the task says %q, want %q in it", got, want)
		}
		w.report(kubelet, "a", waits)
		w.pass(15 * time.Second)
		if got, want := w.taskMessage(), "all instances switch at "+waits.SwitchTime+", and 1 user has not confirmed that: kubelet/b"; !strings.Contains(got, want) {
			t.Errorf("the task says %q, want %q in it", got, want)
		}
		w.report(kubelet, "a", on)
		w.report(kubelet, "b", on)
		w.report("server", "s1", dynamicGate(true))
		w.pass(time.Until(at.Time))
		if got := w.state("A"); got != v1alpha1.StateTurningOn {
			t.Errorf("the state is %s before the moment, and all users have the value", got)
		}
		w.until(2*time.Minute, "on", func() bool { return w.state("A") == v1alpha1.StateOn })
		want := []string{"s1 create A: off", "s1 " + publishedFor(at), "s1 update A: on"}
		if diff := cmp.Diff(want, w.publications()); diff != "" {
			t.Errorf("unexpected writes (-want +got):\n%s", diff)
		}
	})
}

// TestServersWhoseClocksDifferAgreeOnMoment: the value is published once before it, and once
// after it, however far the clocks are apart.
func TestServersWhoseClocksDifferAgreeOnMoment(t *testing.T) {
	for _, ahead := range []time.Duration{-2 * time.Minute, -10 * time.Second, 10 * time.Second, 2 * time.Minute} {
		for _, id := range []string{"s1", "s2"} {
			t.Run(fmt.Sprintf("%s is %s ahead", id, ahead), func(t *testing.T) {
				worldOfClocks(t, 2, map[string]time.Duration{id: ahead}, func(w *trial) {
					w.pass(30 * time.Second)
					at := w.requestAt(3 * time.Minute)
					for range 10 {
						// Something to look at again.
						w.process("proxy", fmt.Sprint(time.Now().Unix()), false)
						w.pass(45 * time.Second)
					}
					var wrote []string
					for _, write := range w.publications() {
						_, what, _ := strings.Cut(write, " ")
						wrote = append(wrote, what)
					}
					if diff := cmp.Diff([]string{"create A: off", publishedFor(at), "update A: on"}, wrote); diff != "" {
						t.Errorf("unexpected writes (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

// TestMomentSurvivesServers: whenever one of two ends, the value is for all after the moment
// and for none before it.
func TestMomentSurvivesServers(t *testing.T) {
	for _, when := range []time.Duration{-5 * time.Second, 500 * time.Millisecond, 3 * time.Second} {
		for _, id := range []string{"s1", "s2"} {
			t.Run(fmt.Sprintf("%s ends after %s", id, when), func(t *testing.T) {
				dynamicWorld(t, 2, func(w *trial) {
					w.pass(30 * time.Second)
					at := w.requestAt(time.Minute)
					w.pass(time.Until(at.Time) + when)
					w.stop(w.servers[id])
					w.removeReport("server." + id)
					w.pass(5 * time.Second)
					for _, other := range []string{"s1", "s2"} {
						if other != id {
							w.report("server", other, dynamicGate(true))
						}
					}
					w.until(5*time.Minute, "on", func() bool { return w.state("A") == v1alpha1.StateOn })
					w.pass(time.Second)
					var wrote []string
					for _, write := range w.publications() {
						_, what, _ := strings.Cut(write, " ")
						wrote = append(wrote, what)
					}
					if diff := cmp.Diff([]string{"create A: off", publishedFor(at), "update A: on"}, wrote); diff != "" {
						t.Errorf("unexpected writes (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

// TestMomentIsTakenBack from all processes as soon as it does not count, also where the
// request that takes it back cannot be answered yet.
func TestMomentIsTakenBack(t *testing.T) {
	for name, takeBack := range map[string]func(w *trial){
		"paused": func(w *trial) { w.change(func(spec *v1alpha1.FeatureSpec) { spec.Paused = true }) },
		"paused and called off": func(w *trial) {
			w.change(func(spec *v1alpha1.FeatureSpec) { spec.Enabled, spec.Paused = ptr.To(false), true })
		},
		"called off while servers have different versions": func(w *trial) {
			w.emulated = "1.37"
			w.report("server", "s2", dynamicGate(false))
			w.emulated = ""
			w.pass(10 * time.Second)
			w.request(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dynamicWorld(t, 2, func(w *trial) {
				w.pass(30 * time.Second)
				at := w.requestAt(2 * time.Minute)
				w.pass(10 * time.Second)
				if got, want := w.publishedAs(), strings.TrimPrefix(publishedFor(at), "update A: "); got != want {
					t.Fatalf("%q is published, want %q", got, want)
				}
				takeBack(w)
				w.pass(10 * time.Second)
				for _, when := range []string{"before", "after"} {
					if got := w.publishedAs(); strings.Contains(got, "all at") || got != "on, 0% others off" {
						t.Errorf("%q is published %s the moment", got, when)
					}
					w.pass(time.Until(at.Time) + 10*time.Second)
				}
			})
		})
	}
}
