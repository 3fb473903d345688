/*
Copyright 2026 The Kubernetes Authors.

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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/utils/ptr"
)

// shown reads what a collector shows, sorted, without the prefix of the names.
func shown(t *testing.T, led *ledFeatures, reports *index) []string {
	t.Helper()
	registry := metrics.NewKubeRegistry()
	registry.CustomMustRegister(&collector{led: led, reports: reports})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			lines = append(lines, fmt.Sprintf("%s{%s} %.15g", strings.TrimPrefix(family.GetName(), subsystem+"_"), strings.Join(labels, ","), metric.GetGauge().GetValue()))
		}
	}
	slices.Sort(lines)
	return lines
}

func condition(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason}
}

func TestCollector(t *testing.T) {
	began := metav1.NewMicroTime(time.UnixMilli(1_800_000_000_250))
	on, off := ptr.To(true), ptr.To(false)
	leftovers := []v1alpha1.ResourceLeftovers{
		{Group: "apps", Resource: "statefulsets", Field: "spec.x", Count: 2},
		{Group: "apps", Resource: "statefulsets", Field: "spec.x", Count: 1},
		{Resource: "pods", Count: 7},
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
					condition(v1alpha1.ConditionDowngradeSafe, metav1.ConditionFalse, v1alpha1.ReasonNotInNeighbour),
				},
			},
			want: []string{"leader{} 1", "running{} 0", "state{feature=A,state=On} 1", "uses{component=kubelet,enabled=true,feature=A} 3"},
		},
		"users that differ, and those that nobody heard of": {
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
				"condition{condition=UsesMatch,feature=A,reason=UsersDiffer} 1",
				"leader{} 1", "mismatched_uses{component=kubelet,feature=A} 2", "running{} 0", "state{feature=A,state=Off} 1",
				"uses{component=kube-proxy,enabled=true,feature=A} 0",
				"uses{component=kube-scheduler,enabled=false,feature=A} 1",
				"uses{component=kubelet,enabled=false,feature=A} 3",
				"uses{component=kubelet,enabled=true,feature=A} 2",
				"uses{component=kubelet,enabled=unknown,feature=A} 5",
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
				"condition{condition=Progressing,feature=A,reason=Blocked} 1",
				"leader{} 1", "running{} 0", "state{feature=A,state=TurningOff} 1", "tasks{feature=A} 2",
				"transition_start_time_seconds{feature=A,state=TurningOff} 1800000000.25",
			},
		},
		"a version transition keeps the value": {
			status: v1alpha1.FeatureStatus{
				State:      v1alpha1.StateUpgrading,
				Transition: &v1alpha1.FeatureTransition{StartTime: began, FromState: v1alpha1.StateOn},
				Uses:       []v1alpha1.FeatureUse{{Component: "kubelet", Enabled: off, Count: 1}},
			},
			want: []string{
				"leader{} 1", "mismatched_uses{component=kubelet,feature=A} 1", "running{} 0", "state{feature=A,state=Upgrading} 1", "tasks{feature=A} 0",
				"transition_start_time_seconds{feature=A,state=Upgrading} 1800000000.25",
				"uses{component=kubelet,enabled=false,feature=A} 1",
			},
		},
		"what a feature left, added up by place": {
			status: v1alpha1.FeatureStatus{State: v1alpha1.StateOff, Conditions: []metav1.Condition{condition(v1alpha1.ConditionClean, metav1.ConditionFalse, v1alpha1.ReasonLeftovers)}},
			found:  &transition.Leftovers{Resources: leftovers},
			want: []string{
				"condition{condition=Clean,feature=A,reason=Leftovers} 1",
				"dangling_objects{feature=A,field=,resource=pods} 7", "dangling_objects{feature=A,field=spec.x,resource=statefulsets.apps} 3",
				"leader{} 1", "running{} 0", "state{feature=A,state=Off} 1",
			},
		},
		"leftovers that nobody could look for are told although Clean is Unknown": {
			status: v1alpha1.FeatureStatus{State: v1alpha1.StateOff, Conditions: []metav1.Condition{condition(v1alpha1.ConditionClean, metav1.ConditionUnknown, v1alpha1.ReasonNotExamined)}},
			found:  &transition.Leftovers{Err: "pods is forbidden"},
			want:   []string{"condition{condition=Clean,feature=A,reason=NotExamined} 1", "leader{} 1", "running{} 0", "state{feature=A,state=Off} 1"},
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
				"condition{condition=Progressing,feature=A,reason=WaitingForUses} 1",
				"leader{} 1", "rollout{enabled=true,feature=A} 1", "running{} 0", "state{feature=A,state=TurningOn} 1", "tasks{feature=A} 1",
				"transition_start_time_seconds{feature=A,state=TurningOn} 1800000000.25",
			},
		},
		"a halted canary is told although Progressing is False, and holds nothing on purpose": {
			status: v1alpha1.FeatureStatus{Rollout: &v1alpha1.FeatureRolloutStatus{Value: true, Halted: true}, Conditions: []metav1.Condition{condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonRolloutHalted)}},
			want:   []string{"condition{condition=Progressing,feature=A,reason=RolloutHalted} 1", "leader{} 1", "running{} 0", "state{feature=A,state=} 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			led := newLedFeatures()
			led.set("A", &test.status, test.found)
			slices.Sort(test.want)
			if diff := cmp.Diff(test.want, shown(t, led, newIndex(1))); diff != "" {
				t.Errorf("unexpected metrics (-want +got):\n%s", diff)
			}
			led.forget("A")
			if diff := cmp.Diff([]string{"leader{} 0", "running{} 0"}, shown(t, led, newIndex(1))); diff != "" {
				t.Errorf("after another server took over (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMetricsOfAFlow lets a feature that left something go off, on a server that
// begins to run and ends.
func TestMetricsOfAFlow(t *testing.T) {
	leave := task.Func("Leave", "leave what is there",
		func(context.Context, task.Clients) ([]v1alpha1.ResourceLeftovers, error) {
			return []v1alpha1.ResourceLeftovers{{Resource: "pods", Count: 3}}, nil
		},
		func(context.Context, task.Clients, task.Attempt) error { return nil })
	inWorld(t, func(w *world) {
		s1 := turnOff(w)
		w.until(time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
		want := "dangling_objects{feature=A,field=,resource=pods} 3"
		w.until(time.Minute, want, func() bool {
			return slices.Contains(shown(t, s1.controller.led, s1.controller.reports), want)
		})
		got := shown(t, s1.controller.led, s1.controller.reports)
		for _, line := range []string{"running{} 1", "leader{} 1", "reports{component=server} 1", "state{feature=A,state=Off} 1", "condition{condition=Clean,feature=A,reason=Leftovers} 1"} {
			if !slices.Contains(got, line) {
				t.Errorf("%s is missing in:\n%s", line, strings.Join(got, "\n"))
			}
		}
		s1.cancel()
		<-s1.done
		if got := shown(t, s1.controller.led, s1.controller.reports); !slices.Contains(got, "running{} 0") {
			t.Errorf("a server that ended says:\n%s", strings.Join(got, "\n"))
		}
	}, lifecycle.Feature{Name: "A", OnDisable: lifecycle.Tasks{leave}})
}
