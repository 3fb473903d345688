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
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/rollout"
)

// trial is a world in which A is turned on in half of the nodes.
type trial struct {
	*world
	// in and out are nodes with the value and without.
	in, out []string
	count   int
}

// inTrial runs a test in which A has gone to 4 of 8 nodes.
func inTrial(t *testing.T, test func(w *trial)) {
	t.Helper()
	inWorld(t, func(w *world) {
		tr := &trial{world: w}
		for i := 0; len(tr.in) < 4 || len(tr.out) < 4; i++ {
			name := fmt.Sprintf("n%d", i)
			group := &tr.out
			if rollout.Bucket("A", name) < 50 {
				group = &tr.in
			}
			if len(*group) < 4 {
				*group = append(*group, name)
			}
		}
		for _, name := range slices.Concat(tr.in, tr.out) {
			tr.node(name, corev1.ConditionTrue)
			tr.process(kubelet, name, false)
		}
		for _, id := range []string{"a", "b"} {
			tr.serve(id)
			tr.report("server", id, v1alpha1.ReportedFeature{Name: "A", Control: v1alpha1.ControlDynamic})
		}
		tr.until(time.Minute, "A is off", func() bool { return tr.state("A") == v1alpha1.StateOff })
		tr.change(func(spec *v1alpha1.FeatureSpec) {
			spec.Enabled, spec.Rollout = ptr.To(true), &v1alpha1.FeatureRollout{Percent: ptr.To[int32](50)}
		})
		tr.until(time.Minute, "a canary is under way", func() bool { return tr.canary() != nil && tr.state("A") == v1alpha1.StateTurningOn })
		for _, name := range tr.in {
			tr.process(kubelet, name, true)
		}
		tr.pass(time.Minute)
		if tr.canary().UnhealthySince != nil || tr.canary().Halted {
			t.Fatalf("a sound canary: %+v", tr.canary())
		}
		test(tr)
	})
}

// process reports for a new process, which takes the place of the one before.
func (w *trial) process(component, instance string, on bool) {
	w.count++
	w.processName = strconv.Itoa(w.count)
	w.report(component, instance, v1alpha1.ReportedFeature{Name: "A", Enabled: on, Queried: true})
	w.processName = ""
}

// silent reports for a new process that has not asked for A yet.
func (w *trial) silent(component, instance string) {
	w.count++
	w.processName = strconv.Itoa(w.count)
	w.report(component, instance, v1alpha1.ReportedFeature{Name: "B", Queried: true})
	w.processName = ""
}

// change changes the spec of A, as people do.
func (w *trial) change(f func(*v1alpha1.FeatureSpec)) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drain()
	feature := w.stored("A").DeepCopy()
	f(&feature.Spec)
	w.version++
	feature.ResourceVersion = strconv.Itoa(w.version)
	if err := w.tracker.Update(featuresResource, feature, "ns"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *trial) canary() *v1alpha1.FeatureRolloutStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stored("A").Status.Rollout.DeepCopy()
}

// halts waits until the canary is halted, and checks for whom.
func (w *trial) halts(gone ...string) {
	w.t.Helper()
	w.until(2*time.Minute, "the canary is halted", func() bool { return w.canary().Halted })
	slices.Sort(gone)
	if got := w.canary().FailedInstances; !slices.Equal(got, gone) {
		w.t.Errorf("halted for %v, want %v", got, gone)
	}
	if c := w.condition("A", v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonRolloutHalted || !strings.Contains(c.Message, gone[0]) {
		w.t.Errorf("Progressing is %s: %s", c.Reason, c.Message)
	}
}

// continuesFor lets time go by, in which the canary is not halted.
func (w *trial) continuesFor(d time.Duration) {
	w.t.Helper()
	w.pass(d)
	if current := w.canary(); current.Halted {
		w.t.Errorf("halted: %s", current.Message)
	}
}

// TestFailedNodesHaltCanary, for whatever server looks after it, until
// people resume it.
func TestFailedNodesHaltCanary(t *testing.T) {
	inTrial(t, func(w *trial) {
		w.node(w.in[0], corev1.ConditionFalse)
		w.continuesFor(2 * time.Minute)
		w.node(w.in[1], corev1.ConditionUnknown)
		w.halts("kubelet/"+w.in[0], "kubelet/"+w.in[1])
		since := *w.canary().HaltTime
		for _, id := range []string{"a", "b"} {
			w.stop(w.servers[id])
			w.pass(2 * time.Minute)
			w.serve(id)
			w.pass(2 * time.Minute)
		}
		if current := w.canary(); !current.Halted || !current.HaltTime.Equal(&since) {
			t.Fatalf("after other servers took over: %+v", current)
		}
		w.change(func(spec *v1alpha1.FeatureSpec) { spec.Rollout.Attempt++ })
		w.until(time.Minute, "the canary is resumed", func() bool { return !w.canary().Halted })
		w.continuesFor(10 * time.Minute)
		w.node(w.in[2], corev1.ConditionFalse)
		w.node(w.in[3], corev1.ConditionFalse)
		w.halts("kubelet/"+w.in[2], "kubelet/"+w.in[3])
	})
}

// TestReplacedMachinesAddUp: one after the other fails, and its Node goes.
func TestReplacedMachinesAddUp(t *testing.T) {
	inTrial(t, func(w *trial) {
		for i, name := range w.in[:2] {
			w.node(name, corev1.ConditionUnknown)
			w.pass(5 * time.Second)
			w.removeNode(name)
			w.pass(time.Second)
			w.removeReport("kubelet." + name)
			if i == 0 {
				w.continuesFor(time.Hour)
			}
		}
		w.halts("kubelet/"+w.in[0], "kubelet/"+w.in[1])
	})
}

// TestDrainedNodesDoNotHaltCanary.
func TestDrainedNodesDoNotHaltCanary(t *testing.T) {
	inTrial(t, func(w *trial) {
		for _, name := range w.in {
			w.removeNode(name)
			w.pass(time.Second)
			w.removeReport("kubelet." + name)
		}
		w.continuesFor(10 * time.Minute)
	})
}

// TestGeneralOutageDoesNotHaltCanary, nor that some come back late.
func TestGeneralOutageDoesNotHaltCanary(t *testing.T) {
	inTrial(t, func(w *trial) {
		all := slices.Concat(w.in, w.out)
		for _, name := range all {
			w.node(name, corev1.ConditionUnknown)
			w.pass(time.Second)
		}
		w.continuesFor(10 * time.Minute)
		slices.Reverse(all)
		for _, name := range all {
			w.node(name, corev1.ConditionTrue)
			w.pass(time.Second)
		}
		w.continuesFor(10 * time.Minute)
	})
}

// TestInstanceLostBeforeServerStartNotCounted: the server saw no death.
func TestInstanceLostBeforeServerStartNotCounted(t *testing.T) {
	inTrial(t, func(w *trial) {
		for _, id := range []string{"a", "b"} {
			w.stop(w.servers[id])
		}
		w.node(w.in[0], corev1.ConditionUnknown)
		w.node(w.in[1], corev1.ConditionUnknown)
		w.serve("a")
		w.continuesFor(10 * time.Minute)
	})
}

// TestCrashLoopHaltsCanary, and restarts in order do not.
func TestCrashLoopHaltsCanary(t *testing.T) {
	inTrial(t, func(w *trial) {
		for range 5 {
			for _, name := range w.in {
				w.removeReport("kubelet." + name)
				w.pass(time.Second)
				w.process(kubelet, name, true)
			}
			w.pass(time.Minute)
		}
		w.continuesFor(time.Minute)
		for i := range 3 {
			if i > 0 {
				w.continuesFor(time.Minute)
			}
			w.process(kubelet, w.in[0], true)
			w.process(kubelet, w.in[1], true)
		}
		w.halts("kubelet/"+w.in[0], "kubelet/"+w.in[1])
	})
}

// TestFailedLeaseHolderHaltsCanary when it dies, and not when it ends in order.
func TestFailedLeaseHolderHaltsCanary(t *testing.T) {
	for name, orderly := range map[string]bool{"it is killed": false, "it ends": true} {
		t.Run(name, func(t *testing.T) {
			inTrial(t, func(w *trial) {
				stop := w.lease("scheduler", w.in[0])
				w.leased = true
				w.process("scheduler", w.in[0], true)
				w.pass(time.Minute)
				stop()
				if !orderly {
					w.halts("scheduler/" + w.in[0])
					return
				}
				if err := w.kube.Tracker().Delete(leasesResource, "leases", "scheduler."+w.in[0]); err != nil {
					t.Fatal(err)
				}
				w.pass(time.Second)
				w.removeReport("scheduler." + w.in[0])
				w.continuesFor(10 * time.Minute)
			})
		})
	}
}

// TestCrashAtQueryHaltsCanary, although what it asks for never gets
// into a report: restarts after a crash, and the first after one in order.
func TestCrashAtQueryHaltsCanary(t *testing.T) {
	for name, orderly := range map[string]bool{"it runs as the value comes": false, "it restarts for the value": true} {
		t.Run(name, func(t *testing.T) {
			inTrial(t, func(w *trial) {
				if orderly {
					for _, name := range w.in {
						w.removeReport("kubelet." + name)
					}
					w.pass(30 * time.Second)
				}
				for range 4 {
					for _, name := range w.in {
						w.silent(kubelet, name)
					}
					w.pass(20 * time.Second)
				}
				w.halts("kubelet/"+w.in[0], "kubelet/"+w.in[1], "kubelet/"+w.in[2], "kubelet/"+w.in[3])
			})
		})
	}
}

// TestProcessesWithoutQueryNotInCanary: they have lived long
// enough to report it.
func TestProcessesWithoutQueryNotInCanary(t *testing.T) {
	inTrial(t, func(w *trial) {
		for _, name := range w.in {
			w.silent(kubelet, name)
		}
		w.pass(2 * time.Minute)
		for _, name := range w.in {
			w.node(name, corev1.ConditionUnknown)
		}
		w.continuesFor(10 * time.Minute)
	})
}

// TestFailureBeforeNextReportHaltsCanary, also when its Node goes with it.
func TestFailureBeforeNextReportHaltsCanary(t *testing.T) {
	for name, goes := range map[string]bool{"its Node stays": false, "its Node goes": true} {
		t.Run(name, func(t *testing.T) {
			inTrial(t, func(w *trial) {
				for _, name := range w.in[:2] {
					w.silent(kubelet, name)
				}
				w.pass(90 * time.Second)
				for _, name := range w.in[:2] {
					w.node(name, corev1.ConditionUnknown)
					w.pass(time.Second)
					if goes {
						w.removeNode(name)
						w.pass(time.Second)
						w.removeReport("kubelet." + name)
					}
				}
				w.halts("kubelet/"+w.in[0], "kubelet/"+w.in[1])
			})
		})
	}
}

// TestTransitionHeldWhileExcludedInstancesRestart: they report what they ask
// for a minute later, and would then have the value.
func TestTransitionHeldWhileExcludedInstancesRestart(t *testing.T) {
	inTrial(t, func(w *trial) {
		for _, name := range w.out {
			w.removeReport("kubelet." + name)
			w.silent(kubelet, name)
		}
		w.pass(time.Minute)
		if w.state("A") != v1alpha1.StateTurningOn {
			t.Fatalf("the state is %s", w.state("A"))
		}
		w.until(time.Minute, "no user may have the old value", func() bool { return w.state("A") == v1alpha1.StateOn })
	})
}

// TestFailureBeforeResumeDoesNotHaltCanary, although that shows later.
func TestFailureBeforeResumeDoesNotHaltCanary(t *testing.T) {
	inTrial(t, func(w *trial) {
		stop := w.lease("scheduler", w.in[0])
		w.leased = true
		w.process("scheduler", w.in[0], true)
		w.pass(time.Minute)
		stop()
		w.pass(15 * time.Second)
		w.change(func(spec *v1alpha1.FeatureSpec) { spec.Rollout.Attempt++ })
		w.pass(30 * time.Second)
		for _, name := range w.in {
			w.node(name, corev1.ConditionUnknown)
		}
		w.pass(time.Second)
		// Nodes are not heard of for 40 seconds before that, and these might have
		// died since.
		w.halts("kubelet/"+w.in[0], "kubelet/"+w.in[1], "kubelet/"+w.in[2], "kubelet/"+w.in[3])
		w.change(func(spec *v1alpha1.FeatureSpec) { spec.Rollout.Attempt++ })
		w.continuesFor(10 * time.Minute)
	})
	inTrial(t, func(w *trial) {
		w.change(func(spec *v1alpha1.FeatureSpec) { spec.Rollout.Attempt++ })
		w.pass(25 * time.Second)
		for _, name := range w.in {
			w.node(name, corev1.ConditionUnknown)
		}
		w.continuesFor(10 * time.Minute)
	})
}

// TestFailureAtValueChangeHaltsCanary: it was last seen before the canary
// began, and never reported the value.
func TestFailureAtValueChangeHaltsCanary(t *testing.T) {
	inTrial(t, func(w *trial) {
		w.change(func(spec *v1alpha1.FeatureSpec) { spec.Enabled = ptr.To(false) })
		for _, name := range w.in {
			w.process(kubelet, name, false)
		}
		w.leased = true
		stop := w.lease("scheduler", w.in[0])
		w.process("scheduler", w.in[0], false)
		w.until(time.Minute, "A is off", func() bool { return w.state("A") == v1alpha1.StateOff })
		w.pass(9 * time.Second)
		stop()
		w.change(func(spec *v1alpha1.FeatureSpec) { spec.Enabled = ptr.To(true) })
		w.until(time.Minute, "another canary is under way", func() bool { return w.canary() != nil })
		w.halts("scheduler/" + w.in[0])
	})
}

// TestNotReturnedKubeletsHaltCanary: they ended in order, to start with the
// value, and never reported again. Those that come back late do not, nor those
// that are expected to be away.
func TestNotReturnedKubeletsHaltCanary(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(w *trial)
		// all is true when as many of the others end.
		all, halts bool
	}{
		"they never come": {func(*trial) {}, false, true},
		"they come after four minutes": {func(w *trial) {
			w.pass(4 * time.Minute)
			for _, name := range w.in[:2] {
				w.node(name, corev1.ConditionTrue)
				w.process(kubelet, name, true)
			}
		}, false, false},
		"their Nodes go": {func(w *trial) {
			w.removeNode(w.in[0])
			w.removeNode(w.in[1])
		}, false, false},
		"others do not come either": {func(*trial) {}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			inTrial(t, func(w *trial) {
				gone := w.in[:2]
				if tc.all {
					gone = slices.Concat(gone, w.out[:2])
				}
				for _, name := range gone {
					w.removeReport("kubelet." + name)
					w.pass(time.Second)
				}
				w.pass(45 * time.Second)
				for _, name := range gone {
					w.node(name, corev1.ConditionUnknown)
				}
				tc.change(w)
				if !tc.halts {
					w.continuesFor(20 * time.Minute)
					return
				}
				w.continuesFor(4 * time.Minute)
				w.halts("kubelet/"+w.in[0], "kubelet/"+w.in[1])
			})
		})
	}
}
