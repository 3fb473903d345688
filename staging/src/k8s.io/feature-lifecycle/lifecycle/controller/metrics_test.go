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
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/utils/ptr"
)

// shown reads what a collector shows of a controller, as gauges does.
func shown(t *testing.T, controllers ...*Controller) []string {
	t.Helper()
	registry, c := metrics.NewKubeRegistry(), newCollector()
	registry.CustomMustRegister(c)
	for _, controller := range controllers {
		c.add(controller)
	}
	return gauges(t, registry)
}

// gauges reads the gauges of this project, sorted, without the prefix of the names.
func gauges(t *testing.T, from metrics.Gatherer) []string {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, family := range families {
		name, own := strings.CutPrefix(family.GetName(), subsystem+"_")
		for _, metric := range family.GetMetric() {
			if !own || metric.GetGauge() == nil {
				continue
			}
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			lines = append(lines, fmt.Sprintf("%s{%s} %.15g", name, strings.Join(labels, ","), metric.GetGauge().GetValue()))
		}
	}
	slices.Sort(lines)
	return lines
}

// idle is a controller that looks after A and does nothing.
func idle(namespace string, status *v1alpha1.FeatureStatus, found *transition.Leftovers) *Controller {
	c := &Controller{observer: &observer{config: &Config{Namespace: namespace}, tracker: tracker.New(tracker.Config{MaxCrashes: 1})}, shown: newShownFeatures()}
	c.shown.set("A", status, found)
	return c
}

func condition(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason}
}

func TestCollector(t *testing.T) {
	began := metav1.NewMicroTime(time.UnixMilli(1_800_000_000_250))
	on, off := ptr.To(true), ptr.To(false)
	var leftovers []transition.Finding
	for _, l := range []v1alpha1.ResourceLeftovers{
		{Group: "apps", Resource: "statefulsets", Field: "spec.x", Count: 2},
		{Group: "apps", Resource: "statefulsets", Field: "spec.x", Count: 1},
		{Resource: "pods", Count: 7},
	} {
		leftovers = append(leftovers, transition.Finding{ResourceLeftovers: l})
	}
	for name, test := range map[string]struct {
		status v1alpha1.FeatureStatus
		found  *transition.Leftovers
		want   []string
	}{
		"a feature at rest has its state and its uses": {
			status: v1alpha1.FeatureStatus{
				State: v1alpha1.StateOn,
				Uses: []v1alpha1.FeatureUse{
					{Component: "kubelet", Version: "v1.36.3", Enabled: on, Count: 2},
					{Component: "kubelet", Version: "v1.35.1", Enabled: on, Count: 1},
				},
				Conditions: []metav1.Condition{
					condition(v1alpha1.ConditionConsistent, metav1.ConditionTrue, v1alpha1.ReasonServersAgree),
					condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonComplete),
					condition(v1alpha1.ConditionClean, metav1.ConditionUnknown, v1alpha1.ReasonNothingDeclared),
					condition(v1alpha1.ConditionUpgradeSafe, metav1.ConditionFalse, v1alpha1.ReasonRefusesToStart),
					condition(v1alpha1.ConditionDowngradeSafe, metav1.ConditionFalse, v1alpha1.ReasonNotInAdjacentVersion),
				},
			},
			want: []string{"leader{namespace=ns} 1", "running{namespace=ns} 0", "state{feature=A,namespace=ns,state=On} 1", "uses{component=kubelet,enabled=true,feature=A,namespace=ns} 3"},
		},
		"users that differ, and unreachable ones": {
			status: v1alpha1.FeatureStatus{
				State: v1alpha1.StateOff,
				Uses: []v1alpha1.FeatureUse{
					{Component: "kube-scheduler", Enabled: off, Count: 1},
					{Component: "kubelet", Enabled: off, Count: 3},
					{Component: "kubelet", Enabled: on, Count: 2, Expected: 2, Stale: 4},
					{Component: "kubelet", Expected: 5},
					{Component: "kube-proxy", Enabled: on, Stale: 1},
				},
				Conditions: []metav1.Condition{condition(v1alpha1.ConditionUsesMatch, metav1.ConditionFalse, v1alpha1.ReasonUsersDiffer)},
			},
			want: []string{
				"condition{condition=UsesMatch,feature=A,namespace=ns,reason=UsersDiffer} 1",
				"leader{namespace=ns} 1", "mismatched_uses{component=kubelet,feature=A,namespace=ns} 2", "running{namespace=ns} 0", "state{feature=A,namespace=ns,state=Off} 1",
				"uses{component=kube-proxy,enabled=true,feature=A,namespace=ns} 0",
				"uses{component=kube-scheduler,enabled=false,feature=A,namespace=ns} 1",
				"uses{component=kubelet,enabled=false,feature=A,namespace=ns} 3",
				"uses{component=kubelet,enabled=true,feature=A,namespace=ns} 2",
				"uses{component=kubelet,enabled=unknown,feature=A,namespace=ns} 5",
			},
		},
		"a transition under way": {
			status: v1alpha1.FeatureStatus{
				State:      v1alpha1.StateTurningOff,
				Transition: &v1alpha1.FeatureTransition{StartTime: began},
				Tasks:      []v1alpha1.FeatureTask{{Name: "ClearX"}, {Name: "ClearY"}},
				Conditions: []metav1.Condition{
					condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonBlocked),
					condition(v1alpha1.ConditionDowngradeSafe, metav1.ConditionFalse, v1alpha1.ReasonInTransition),
				},
			},
			// What was found before the transition is not dangling any more.
			found: &transition.Leftovers{Resources: leftovers},
			want: []string{
				"condition{condition=Progressing,feature=A,namespace=ns,reason=Blocked} 1",
				"leader{namespace=ns} 1", "running{namespace=ns} 0", "state{feature=A,namespace=ns,state=TurningOff} 1", "tasks{feature=A,namespace=ns} 2",
				"transition_start_time_seconds{feature=A,namespace=ns,state=TurningOff} 1800000000.25",
			},
		},
		"a version transition keeps the value": {
			status: v1alpha1.FeatureStatus{
				State:      v1alpha1.StateUpgrading,
				Transition: &v1alpha1.FeatureTransition{StartTime: began, FromState: v1alpha1.StateOn},
				Uses:       []v1alpha1.FeatureUse{{Component: "kubelet", Enabled: off, Count: 1}},
			},
			want: []string{
				"leader{namespace=ns} 1", "mismatched_uses{component=kubelet,feature=A,namespace=ns} 1", "running{namespace=ns} 0", "state{feature=A,namespace=ns,state=Upgrading} 1", "tasks{feature=A,namespace=ns} 0",
				"transition_start_time_seconds{feature=A,namespace=ns,state=Upgrading} 1800000000.25",
				"uses{component=kubelet,enabled=false,feature=A,namespace=ns} 1",
			},
		},
		"what a feature left, added up by place": {
			status: v1alpha1.FeatureStatus{State: v1alpha1.StateOff, Conditions: []metav1.Condition{condition(v1alpha1.ConditionClean, metav1.ConditionFalse, v1alpha1.ReasonLeftovers)}},
			found:  &transition.Leftovers{Resources: leftovers},
			want: []string{
				"condition{condition=Clean,feature=A,namespace=ns,reason=Leftovers} 1",
				"dangling_objects{feature=A,field=,namespace=ns,resource=pods} 7", "dangling_objects{feature=A,field=spec.x,namespace=ns,resource=statefulsets.apps} 3",
				"leader{namespace=ns} 1", "running{namespace=ns} 0", "state{feature=A,namespace=ns,state=Off} 1",
			},
		},
		"leftovers that could not be searched are shown although Clean is Unknown": {
			status: v1alpha1.FeatureStatus{State: v1alpha1.StateOff, Conditions: []metav1.Condition{condition(v1alpha1.ConditionClean, metav1.ConditionUnknown, v1alpha1.ReasonNotExamined)}},
			found:  &transition.Leftovers{Err: "pods is forbidden"},
			want:   []string{"condition{condition=Clean,feature=A,namespace=ns,reason=NotExamined} 1", "leader{namespace=ns} 1", "running{namespace=ns} 0", "state{feature=A,namespace=ns,state=Off} 1"},
		},
		"a canary that people hold": {
			status: v1alpha1.FeatureStatus{
				State:      v1alpha1.StateTurningOn,
				Transition: &v1alpha1.FeatureTransition{StartTime: began},
				Tasks:      []v1alpha1.FeatureTask{{Name: v1alpha1.TaskWaitForUses}},
				Rollout:    &v1alpha1.FeatureRolloutStatus{Value: true},
				Conditions: []metav1.Condition{condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonWaitingForUses)},
			},
			want: []string{
				"condition{condition=Progressing,feature=A,namespace=ns,reason=WaitingForUses} 1",
				"leader{namespace=ns} 1", "rollout{enabled=true,feature=A,namespace=ns} 1", "running{namespace=ns} 0", "state{feature=A,namespace=ns,state=TurningOn} 1", "tasks{feature=A,namespace=ns} 1",
				"transition_start_time_seconds{feature=A,namespace=ns,state=TurningOn} 1800000000.25",
			},
		},
		"a halted canary is told although Progressing is False, and holds nothing on purpose": {
			status: v1alpha1.FeatureStatus{Rollout: &v1alpha1.FeatureRolloutStatus{Value: true, Halted: true}, Conditions: []metav1.Condition{condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonRolloutHalted)}},
			want:   []string{"condition{condition=Progressing,feature=A,namespace=ns,reason=RolloutHalted} 1", "leader{namespace=ns} 1", "running{namespace=ns} 0", "state{feature=A,namespace=ns,state=} 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := idle("ns", &test.status, test.found)
			slices.Sort(test.want)
			if diff := cmp.Diff(test.want, shown(t, c)); diff != "" {
				t.Errorf("unexpected metrics (-want +got):\n%s", diff)
			}
			c.shown.forget("A")
			if diff := cmp.Diff([]string{"leader{namespace=ns} 0", "running{namespace=ns} 0"}, shown(t, c)); diff != "" {
				t.Errorf("after another server took over (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMetricsOfAFlow lets a feature that left something go off, on a server that
// begins to run and ends.
func TestMetricsOfAFlow(t *testing.T) {
	leave := task.Func(task.Own{
		Name: "Leave", Description: "leave what is there",
		Find: func(context.Context, task.Clients) ([]v1alpha1.ResourceLeftovers, error) {
			return []v1alpha1.ResourceLeftovers{{Resource: "pods", Count: 3}}, nil
		},
		Run: func(context.Context, task.Clients, task.Attempt) error { return nil },
	})
	inWorld(t, func(w *world) {
		s1 := turnOff(w)
		w.until(time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
		want := "dangling_objects{feature=A,field=,namespace=ns,resource=pods} 3"
		w.until(time.Minute, want, func() bool {
			return slices.Contains(shown(t, s1.controller), want)
		})
		got := shown(t, s1.controller)
		for _, line := range []string{"running{namespace=ns} 1", "leader{namespace=ns} 1", "reports{component=server,namespace=ns} 1", "state{feature=A,namespace=ns,state=Off} 1", "condition{condition=Clean,feature=A,namespace=ns,reason=Leftovers} 1"} {
			if !slices.Contains(got, line) {
				t.Errorf("%s is missing in:\n%s", line, strings.Join(got, "\n"))
			}
		}
		s1.cancel()
		<-s1.done
		if got := shown(t, s1.controller); !slices.Contains(got, "running{namespace=ns} 0") {
			t.Errorf("a server that ended says:\n%s", strings.Join(got, "\n"))
		}
	}, lifecycle.Feature{Name: "A", OnDisable: lifecycle.Tasks{leave}})
}

// TestControllersOfAProcess: each is shown by its namespace, and one that took the
// place of another instead of it, since a registry shows nothing at all when two
// have the same series.
func TestControllersOfAProcess(t *testing.T) {
	registry, c := metrics.NewKubeRegistry(), newCollector()
	registry.CustomMustRegister(c)
	one := idle("a", &v1alpha1.FeatureStatus{State: v1alpha1.StateOn}, nil)
	two := idle("b", &v1alpha1.FeatureStatus{State: v1alpha1.StateOff}, nil)
	next := idle("a", &v1alpha1.FeatureStatus{State: v1alpha1.StateTurningOn}, nil)
	oneShown := []string{"leader{namespace=a} 1", "running{namespace=a} 0", "state{feature=A,namespace=a,state=On} 1"}
	twoShown := []string{"leader{namespace=b} 1", "running{namespace=b} 0", "state{feature=A,namespace=b,state=Off} 1"}
	nextShown := []string{"leader{namespace=a} 1", "running{namespace=a} 0", "state{feature=A,namespace=a,state=TurningOn} 1"}
	for _, step := range []struct {
		does string
		do   func(*Controller)
		with *Controller
		want []string
	}{
		{"the first is made", c.add, one, oneShown},
		{"one of another namespace is made", c.add, two, slices.Concat(oneShown, twoShown)},
		{"one takes the place of the first", c.add, next, slices.Concat(nextShown, twoShown)},
		{"the first ends", c.remove, one, slices.Concat(nextShown, twoShown)},
		{"the first is told to end again", c.remove, one, slices.Concat(nextShown, twoShown)},
		{"the other namespace's ends", c.remove, two, nextShown},
		{"the last ends", c.remove, next, nil},
		{"one is made after all have ended", c.add, two, twoShown},
	} {
		step.do(step.with)
		slices.Sort(step.want)
		if diff := cmp.Diff(step.want, gauges(t, registry), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.does, diff)
		}
	}
}

// alone hides, for one test, controllers that others made and never ran.
func alone(t *testing.T) {
	swap := func(controllers map[string][]*Controller) (before map[string][]*Controller) {
		collected.mu.Lock()
		defer collected.mu.Unlock()
		before, collected.controllers = collected.controllers, controllers
		return before
	}
	before := swap(map[string][]*Controller{})
	t.Cleanup(func() { swap(before) })
}

// TestAFlowThatIsStartedAgainIsShown in the registry of the process, under the
// name of its namespace, and nothing is left of the one before.
func TestAFlowThatIsStartedAgainIsShown(t *testing.T) {
	alone(t)
	inWorld(t, func(w *world) {
		s1 := turnOff(w)
		w.until(time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
		for range 2 {
			for _, line := range []string{"running{namespace=ns} 1", "leader{namespace=ns} 1", "state{feature=A,namespace=ns,state=Off} 1"} {
				if got := gauges(t, legacyregistry.DefaultGatherer); !slices.Contains(got, line) {
					t.Errorf("%s is missing in:\n%s", line, strings.Join(got, "\n"))
				}
			}
			// What is no longer reconciled is not left to the next queue.
			s1.controller.queue.Add("A")
			s1.cancel()
			<-s1.done
			if got := gauges(t, legacyregistry.DefaultGatherer); len(got) > 0 {
				t.Errorf("of a controller that ended is left:\n%s", strings.Join(got, "\n"))
			}
			if depth := s1.controller.queue.Len(); depth != 0 {
				t.Errorf("the depth of a queue that ended: %d", depth)
			}
			s1 = w.serve("s1")
			w.until(2*time.Minute, "it looks after A again", func() bool { return slices.Contains(shown(t, s1.controller), "leader{namespace=ns} 1") })
		}
	}, lifecycle.Feature{Name: "A"})
}

// TestControllerWithoutReconciliationLeavesNoSeries: it is told to end before it has a
// complete picture.
func TestControllerWithoutReconciliationLeavesNoSeries(t *testing.T) {
	alone(t)
	c, err := New(Config{Namespace: "other", Component: "server", ServerID: "s", Tasks: emptyCluster(), Client: newWorld(t).api(&serverProcess{})})
	if err != nil {
		t.Fatal(err)
	}
	defer c.queue.ShutDown()
	want := []string{"leader{namespace=other} 0", "running{namespace=other} 0"}
	if diff := cmp.Diff(want, gauges(t, legacyregistry.DefaultGatherer)); diff != "" {
		t.Errorf("before it runs (-want +got):\n%s", diff)
	}
	for _, name := range []string{"A", "B"} {
		c.queue.Add(name)
	}
	if depth := c.queue.Len(); depth != 2 {
		t.Errorf("the depth of its queue: %d", depth)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.Run(ctx, 1, nil)
	if got := gauges(t, legacyregistry.DefaultGatherer); len(got) > 0 {
		t.Errorf("of a controller that ended is left:\n%s", strings.Join(got, "\n"))
	}
	if depth := c.queue.Len(); depth != 0 {
		t.Errorf("the depth of its queue when it has ended: %d", depth)
	}
}

// TestMetricsOfACanary: it is told while people hold it, and not when it is halted.
func TestMetricsOfACanary(t *testing.T) {
	inTrial(t, func(w *trial) {
		told := func(line string) bool {
			return slices.Contains(shown(t, w.servers["a"].controller), line) || slices.Contains(shown(t, w.servers["b"].controller), line)
		}
		const held, waits = "rollout{enabled=true,feature=A,namespace=ns} 1", "condition{condition=Progressing,feature=A,namespace=ns,reason=WaitingForUses} 1"
		if !told(held) || !told(waits) {
			t.Errorf("a canary that people hold: %v, it waits: %v", told(held), told(waits))
		}
		w.node(w.in[0], corev1.ConditionFalse)
		w.node(w.in[1], corev1.ConditionFalse)
		w.halts("kubelet/"+w.in[0], "kubelet/"+w.in[1])
		w.until(time.Minute, "it is told no longer", func() bool { return !told(held) })
		if line := "condition{condition=Progressing,feature=A,namespace=ns,reason=RolloutHalted} 1"; !told(line) {
			t.Errorf("%s is missing", line)
		}
	})
}
