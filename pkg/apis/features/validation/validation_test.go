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

package validation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes-features/pkg/apis/features"
	"k8s.io/utils/ptr"
)

// problem is one expected error: its field and a part of its message.
type problem struct {
	field, text string
}

func check(t *testing.T, errs field.ErrorList, want ...problem) {
	t.Helper()
	if len(errs) != len(want) {
		t.Fatalf("%d problems, want %d: %v", len(errs), len(want), errs)
	}
	for _, w := range want {
		found := false
		for _, err := range errs {
			found = found || (err.Field == w.field && strings.Contains(err.Error(), w.text))
		}
		if !found {
			t.Errorf("no problem with %s that contains %q: %v", w.field, w.text, errs)
		}
	}
}

func feature(change func(*features.Feature)) *features.Feature {
	f := &features.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "SomeGate", ResourceVersion: "1"}}
	if change != nil {
		change(f)
	}
	return f
}

func TestValidateFeature(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*features.Feature)
		want   []problem
	}{
		"a plain feature": {},
		"a rollout": {change: func(f *features.Feature) {
			f.Spec.Rollout = &features.FeatureRollout{Percent: ptr.To[int32](100), Components: []string{"kubelet"}}
		}},
		"a name with a slash":       {func(f *features.Feature) { f.Name = "a/b" }, []problem{{"metadata.name", "feature gates"}}},
		"a name with a digit first": {func(f *features.Feature) { f.Name = "1a" }, []problem{{"metadata.name", "begin with a letter"}}},
		"a name that is too long":   {func(f *features.Feature) { f.Name = strings.Repeat("a", 254) }, []problem{{"metadata.name", "253"}}},
		"more than all": {func(f *features.Feature) { f.Spec.Rollout = &features.FeatureRollout{Percent: ptr.To[int32](101)} },
			[]problem{{"spec.rollout.percent", "between 0 and 100"}}},
		"less than none": {func(f *features.Feature) { f.Spec.Rollout = &features.FeatureRollout{Percent: ptr.To[int32](-1)} },
			[]problem{{"spec.rollout.percent", "between 0 and 100"}}},
		"an attempt below none": {func(f *features.Feature) { f.Spec.Rollout = &features.FeatureRollout{Attempt: -1} },
			[]problem{{"spec.rollout.attempt", "negative"}}},
		"a component twice": {func(f *features.Feature) { f.Spec.Rollout = &features.FeatureRollout{Components: []string{"a", "a"}} },
			[]problem{{"spec.rollout.components[1]", "Duplicate"}}},
		"a component that is no label": {func(f *features.Feature) { f.Spec.Rollout = &features.FeatureRollout{Components: []string{"A b"}} },
			[]problem{{"spec.rollout.components[0]", "RFC 1123"}}},
		"a moment": {change: func(f *features.Feature) {
			f.Spec.Rollout = &features.FeatureRollout{At: &metav1.Time{Time: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}, Attempt: 2}
		}},
		"a moment for some": {func(f *features.Feature) {
			f.Spec.Rollout = &features.FeatureRollout{At: &metav1.Time{Time: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}, Percent: ptr.To[int32](0), Components: []string{"kubelet"}}
		}, []problem{{"spec.rollout.percent", "must be unset with at"}, {"spec.rollout.components", "must be unset with at"}}},
		"a moment that JSON cannot write": {func(f *features.Feature) { f.Spec.Rollout = &features.FeatureRollout{At: &metav1.Time{}} },
			[]problem{{"spec.rollout.at", "must be a moment"}}},
		"a moment after all": {func(f *features.Feature) {
			f.Spec.Rollout = &features.FeatureRollout{At: &metav1.Time{Time: time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC)}}
		}, []problem{{"spec.rollout.at", "the years 0 to 9999"}}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, ValidateFeature(feature(tc.change)), tc.want...)
			check(t, ValidateFeatureUpdate(feature(tc.change), feature(func(f *features.Feature) { f.Name = feature(tc.change).Name })), withoutName(tc.want)...)
		})
	}
}

// withoutName drops problems with the name: it cannot change and was checked
// when the object was created.
func withoutName(problems []problem) []problem {
	var rest []problem
	for _, p := range problems {
		if p.field != "metadata.name" {
			rest = append(rest, p)
		}
	}
	return rest
}

func TestValidateFeatureStatus(t *testing.T) {
	now := metav1.NewMicroTime(time.Unix(1, 0))
	transition := &features.FeatureTransition{ID: "t", StartTime: now, Reason: features.TransitionConfiguration}
	late, lateMicro := metav1.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC), metav1.NewMicroTime(time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC))
	for name, tc := range map[string]struct {
		status features.FeatureStatus
		want   []problem
	}{
		"nothing known yet": {},
		"at rest":           {status: features.FeatureStatus{State: features.StateOn, Stage: features.StageBeta, Version: "1.36", Control: features.ControlLocal}},
		"in transition":     {status: features.FeatureStatus{State: features.StateTurningOff, Transition: transition, Tasks: []features.FeatureTask{{Name: "A"}, {Name: "B"}}}},
		"S1: a task is left in a state of rest": {features.FeatureStatus{State: features.StateOff, Tasks: []features.FeatureTask{{Name: "A"}}},
			[]problem{{"status.tasks", "no task left"}}},
		"a transition in a state of rest": {features.FeatureStatus{State: features.StateOff, Transition: transition}, []problem{{"status.transition", "must be unset"}}},
		"an empty transition": {features.FeatureStatus{State: features.StateTurningOn, Transition: &features.FeatureTransition{}},
			[]problem{{"status.transition.id", "Required"}, {"status.transition.startTime", "Required"}, {"status.transition.reason", "Required"}}},
		"unknown enums": {features.FeatureStatus{State: "Perhaps", Stage: "Gamma", Control: "Remote", Configured: &features.FeatureConfiguration{Source: "Dream"}},
			[]problem{{"status.state", "Unsupported"}, {"status.stage", "Unsupported"}, {"status.control", "Unsupported"}, {"status.configured.source", "Unsupported"}}},
		"a value from nowhere": {features.FeatureStatus{Configured: &features.FeatureConfiguration{}}, []problem{{"status.configured.source", "Required"}}},
		"a patch version":      {features.FeatureStatus{Version: "1.36.3"}, []problem{{"status.version", "1.36"}}},
		"a version with a v":   {features.FeatureStatus{Version: "v1.36"}, []problem{{"status.version", "1.36"}}},
		"a task twice": {features.FeatureStatus{State: features.StateTurningOn, Tasks: []features.FeatureTask{{Name: "A"}, {Name: "A"}}},
			[]problem{{"status.tasks[1].name", "Duplicate"}}},
		"a task without a name, and negative counts": {features.FeatureStatus{State: features.StateTurningOn, Tasks: []features.FeatureTask{{Done: -1, Total: -1, Attempts: -1}}},
			[]problem{{"status.tasks[0].name", "Required"}, {"status.tasks[0].done", "greater than or equal to 0"}, {"status.tasks[0].total", "greater than"}, {"status.tasks[0].attempts", "greater than"}}},
		"too many tasks": {features.FeatureStatus{State: features.StateTurningOn, Tasks: tasks(MaxTasks + 1)}, []problem{{"status.tasks", "100"}}},
		"six examples": {features.FeatureStatus{Uses: []features.FeatureUse{{Component: "kubelet", Examples: make([]string, 6)}}},
			[]problem{{"status.uses[0].examples", "5"}}},
		"a use without users": {features.FeatureStatus{Uses: []features.FeatureUse{{Count: -1}}},
			[]problem{{"status.uses[0].component", "Required"}, {"status.uses[0].count", "greater than"}}},
		"a canary": {status: features.FeatureStatus{State: features.StateTurningOn, Rollout: &features.FeatureRolloutStatus{Value: true, StartTime: now}}},
		"a halted canary": {status: features.FeatureStatus{State: features.StateTurningOn, Rollout: &features.FeatureRolloutStatus{StartTime: now, Halted: true, HaltTime: &metav1.Time{Time: now.Time},
			Message: "2 of 3 died", FailedInstances: []string{"kubelet/node-1.example.com", "kube-scheduler/host-10259"}}}},
		"a suspected canary": {status: features.FeatureStatus{State: features.StateTurningOn, Rollout: &features.FeatureRolloutStatus{StartTime: now, UnhealthySince: &now, Message: "2 of 3 died"}}},
		"a canary that is suspected and was halted, for no reason": {features.FeatureStatus{Rollout: &features.FeatureRolloutStatus{StartTime: now, Halted: true, HaltTime: &metav1.Time{Time: now.Time}, UnhealthySince: &now}},
			[]problem{{"status.rollout.unhealthySince", "once halted is true"}, {"status.rollout.message", "Required"}}},
		"a moment that is held": {status: features.FeatureStatus{State: features.StateTurningOn, Rollout: &features.FeatureRolloutStatus{StartTime: now, MomentHeld: true,
			Observed: features.FeatureRollout{Percent: ptr.To[int32](0), At: &metav1.Time{Time: now.Time}}}}},
		"no moment that is held": {features.FeatureStatus{Rollout: &features.FeatureRolloutStatus{StartTime: now, MomentHeld: true}},
			[]problem{{"status.rollout.momentHeld", "without observed.at"}}},
		"a canary that lost what is no instance": {features.FeatureStatus{Rollout: &features.FeatureRolloutStatus{StartTime: now, FailedInstances: []string{"node-1", "/node-1", "kubelet/", "Kubelet/node 1"}}},
			[]problem{{"status.rollout.failedInstances[0]", "<component>/<name of the instance>"}, {"status.rollout.failedInstances[1]", "Required"}, {"status.rollout.failedInstances[2]", "Required"}, {"status.rollout.failedInstances[3]", "RFC 1123 label"}, {"status.rollout.failedInstances[3]", "RFC 1123 subdomain"}}},
		"a canary of no rollout, halted at no time": {features.FeatureStatus{Rollout: &features.FeatureRolloutStatus{Halted: true, Message: "2 of 3 died", Observed: features.FeatureRollout{Percent: ptr.To[int32](101)}}},
			[]problem{{"status.rollout.observed.percent", "between 0 and 100"}, {"status.rollout.startTime", "Required"}, {"status.rollout.haltTime", "if and only if"}}},
		"a canary under way that was halted": {features.FeatureStatus{Rollout: &features.FeatureRolloutStatus{StartTime: now, HaltTime: &metav1.Time{Time: now.Time}}},
			[]problem{{"status.rollout.haltTime", "if and only if"}}},
		"years of five digits": {features.FeatureStatus{
			State: features.StateTurningOff, StateSince: &late,
			Transition: &features.FeatureTransition{ID: "t", StartTime: lateMicro, Reason: features.TransitionConfiguration},
			Tasks:      []features.FeatureTask{{Name: "A"}, {Name: "B", LastAttemptTime: &lateMicro}},
			Rollout:    &features.FeatureRolloutStatus{StartTime: lateMicro, Halted: true, HaltTime: &late, UnhealthySince: &lateMicro, Message: "m"},
			Conditions: []metav1.Condition{{Type: "Clean", Status: "True", Reason: "R", LastTransitionTime: late}},
		}, []problem{
			{"status.rollout.unhealthySince", "once halted is true"},
			{"status.stateSince", "year 12345"}, {"status.transition.startTime", "the years 0 to 9999"}, {"status.rollout.startTime", "year"}, {"status.rollout.unhealthySince", "year"},
			{"status.rollout.haltTime", "year"}, {"status.tasks[1].lastAttemptTime", "year"}, {"status.conditions[0].lastTransitionTime", "year"},
		}},
		"the last year that can be written": {status: features.FeatureStatus{StateSince: ptr.To(metav1.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC))}},
		"a condition without a reason": {features.FeatureStatus{Conditions: []metav1.Condition{{Type: "Clean", Status: "True", LastTransitionTime: metav1.Now()}}},
			[]problem{{"status.conditions[0].reason", "Required"}}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, ValidateFeatureStatusUpdate(feature(func(f *features.Feature) { f.Status = tc.status }), feature(nil)), tc.want...)
		})
	}
}

func tasks(n int) []features.FeatureTask {
	var list []features.FeatureTask
	for i := range n {
		list = append(list, features.FeatureTask{Name: fmt.Sprint(i)})
	}
	return list
}

func report(change func(*features.FeatureReport)) *features.FeatureReport {
	r := &features.FeatureReport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubelet.node-1", ResourceVersion: "1"},
		Spec: features.FeatureReportSpec{
			Component: "kubelet", Instance: "node-1", NodeName: "node-1", BinaryVersion: "v1.36.3+feature.1", EmulationVersion: "1.36",
			Features: []features.ReportedFeature{{Name: "A"}, {Name: "B", Stage: features.StageAlpha}},
			Username: "system:node:node-1",
		},
	}
	if change != nil {
		change(r)
	}
	return r
}

// leased is a report of a process with a Lease of its own.
func leased(change func(*features.FeatureReport)) *features.FeatureReport {
	return report(func(r *features.FeatureReport) {
		r.Name = "kube-scheduler.host-1"
		r.Spec.Component, r.Spec.Instance, r.Spec.NodeName, r.Spec.Username = "kube-scheduler", "host-1", "", "system:kube-scheduler"
		r.Spec.Liveness.Lease = &features.LeaseReference{Namespace: "kube-feature-lease", Name: r.Name}
		if change != nil {
			change(r)
		}
	})
}

func TestValidateFeatureReport(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*features.FeatureReport)
		want   []problem
	}{
		"a plain report":                         {},
		"a name other than that of the reporter": {func(r *features.FeatureReport) { r.Name = "other" }, []problem{{"metadata.name", "kubelet.node-1"}}},
		"no component and no instance": {func(r *features.FeatureReport) { r.Spec.Component, r.Spec.Instance = "", "" },
			[]problem{{"spec.component", "Required"}, {"spec.instance", "Required"}}},
		"an instance in capitals": {func(r *features.FeatureReport) {
			r.Spec.Instance, r.Spec.NodeName = "Node", "Node"
			r.Name = "kubelet.node"
		},
			[]problem{{"spec.instance", "RFC 1123"}, {"metadata.name", "kubelet.Node"}, {"spec.nodeName", "RFC 1123"}}},
		"a node that cannot be": {func(r *features.FeatureReport) { r.Spec.NodeName = "a/b" },
			[]problem{{"spec.nodeName", "RFC 1123"}, {"spec.nodeName", "node-1"}}},
		"a process with a path":      {func(r *features.FeatureReport) { r.Spec.Process = "../a" }, []problem{{"spec.process", "lowercase"}}},
		"a version that is none":     {func(r *features.FeatureReport) { r.Spec.BinaryVersion = "new" }, []problem{{"spec.binaryVersion", "v1.37.2"}}},
		"a version that is too long": {func(r *features.FeatureReport) { r.Spec.BinaryVersion = "v1.36.3+" + strings.Repeat("a", 200) }, []problem{{"spec.binaryVersion", "128"}}},
		"an emulated patch version":  {func(r *features.FeatureReport) { r.Spec.EmulationVersion = "1.36.3" }, []problem{{"spec.emulationVersion", "1.36"}}},
		"a feature twice":            {func(r *features.FeatureReport) { r.Spec.Features[1].Name = "A" }, []problem{{"spec.features[1].name", "Duplicate"}}},
		"a feature without a name":   {func(r *features.FeatureReport) { r.Spec.Features[0].Name = "" }, []problem{{"spec.features[0].name", "begin with a letter"}}},
		"a feature in an odd stage":  {func(r *features.FeatureReport) { r.Spec.Features[0].Stage = "Gamma" }, []problem{{"spec.features[0].stage", "Unsupported"}}},
		"more features than there are": {func(r *features.FeatureReport) {
			r.Spec.Features = make([]features.ReportedFeature, MaxReportedFeatures+1)
		}, []problem{{"spec.features", "1000"}}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, ValidateFeatureReport(report(tc.change)), tc.want...)
		})
	}
}

// TestReportsAreSmall: there is one for each process.
func TestReportsAreSmall(t *testing.T) {
	names := func(n, length int) []features.ReportedFeature {
		var list []features.ReportedFeature
		for i := range n {
			list = append(list, features.ReportedFeature{Name: fmt.Sprintf("F%0*d", length-1, i)})
		}
		return list
	}
	for title, tc := range map[string]struct {
		change func(*features.FeatureReport)
		want   []problem
	}{
		"names of 64 KiB":   {func(r *features.FeatureReport) { r.Spec.Features = names(512, 128) }, nil},
		"longer names":      {func(r *features.FeatureReport) { r.Spec.Features = names(513, 128) }, []problem{{"spec.features", "65536"}}},
		"4 KiB of metadata": {func(r *features.FeatureReport) { r.Annotations = map[string]string{"a": strings.Repeat("x", 4095)} }, nil},
		"more metadata":     {func(r *features.FeatureReport) { r.Annotations = map[string]string{"a": strings.Repeat("x", 4096)} }, []problem{{"metadata", "annotations together may have at most 4096 bytes"}}},
		"eleven finalizers": {func(r *features.FeatureReport) { r.Finalizers = slices.Repeat([]string{"example.com/f"}, 11) }, []problem{{"metadata.ownerReferences", "10"}}},
	} {
		t.Run(title, func(t *testing.T) { check(t, ValidateFeatureReport(report(tc.change)), tc.want...) })
	}
}

// TestLivenessNamesOwnLeaseOrNode: a process may name a Lease that is its own, or
// its Node, and nothing that would make it seem alive without it.
func TestLivenessNamesOwnLeaseOrNode(t *testing.T) {
	lease := func(namespace, name string) func(*features.FeatureReport) {
		return func(r *features.FeatureReport) {
			r.Spec.Liveness.Lease = &features.LeaseReference{Namespace: namespace, Name: name}
		}
	}
	server := func(change func(*features.FeatureReport)) *features.FeatureReport {
		return leased(func(r *features.FeatureReport) {
			r.Name, r.Spec.Component, r.Spec.Instance = "kube-apiserver.a", "kube-apiserver", "a"
			change(r)
		})
	}
	elsewhere := func(change func(*features.FeatureReport)) *features.FeatureReport {
		return leased(func(r *features.FeatureReport) {
			r.Namespace = "widgets"
			change(r)
		})
	}
	const namespace, name = "spec.liveness.lease.namespace", "spec.liveness.lease.name"
	for title, tc := range map[string]struct {
		report *features.FeatureReport
		want   []problem
	}{
		"by a Lease named like the report":  {report: leased(nil)},
		"by its Node":                       {report: report(nil)},
		"a server likewise, in kube-system": {report: server(lease("kube-system", "kube-apiserver.a"))},
		"a server not by its identity":      {server(lease("kube-system", "apiserver-x")), []problem{{name, "kube-apiserver.a"}}},
		"a server not where others write":   {server(lease("kube-feature-lease", "kube-apiserver.a")), []problem{{namespace, "kube-system"}}},
		"somewhere else by a Lease there":   {report: elsewhere(lease("widgets", "kube-scheduler.host-1"))},
		"somewhere else a kubelet is free":  {report: report(func(r *features.FeatureReport) { r.Namespace, r.Spec.NodeName = "widgets", "other" })},
		"not at all":                        {leased(func(r *features.FeatureReport) { r.Spec.Liveness.Lease = nil }), []problem{{"spec.liveness.lease", "spec.nodeName"}}},
		"not by both":                       {report(lease("kube-feature-lease", "kubelet.node-1")), []problem{{"spec.liveness.lease", "together"}}},
		"not by a Lease that cannot be":     {leased(lease("A", "/")), []problem{{namespace, "RFC 1123"}, {name, "RFC 1123"}}},
		"not by another process's Lease":    {leased(lease("kube-feature-lease", "kube-scheduler.b")), []problem{{name, "kube-scheduler.host-1"}}},
		"not by a server's identity Lease":  {leased(lease("kube-system", "apiserver-x")), []problem{{namespace, "kube-feature-lease"}, {name, "kube-scheduler.host-1"}}},
		"not by a Lease in a third place":   {server(lease("default", "kube-apiserver.a")), []problem{{namespace, "kube-system"}}},
		"elsewhere not by Kubernetes' own":  {elsewhere(lease("kube-feature-lease", "kube-scheduler.host-1")), []problem{{namespace, "widgets"}}},
		"elsewhere no server's": {elsewhere(func(r *features.FeatureReport) {
			r.Name, r.Spec.Component = "kube-apiserver.host-1", "kube-apiserver"
			lease("kube-system", "apiserver-x")(r)
		}), []problem{{namespace, "widgets"}, {name, "kube-apiserver.host-1"}}},
		"a kubelet not by a Lease":        {report(func(r *features.FeatureReport) { r.Spec.NodeName = ""; lease("kube-feature-lease", r.Name)(r) }), []problem{{"spec.nodeName", "node-1"}}},
		"a kubelet not by another's Node": {report(func(r *features.FeatureReport) { r.Spec.NodeName = "node-2" }), []problem{{"spec.nodeName", "node-1"}}},
		"nor a kube-proxy": {report(func(r *features.FeatureReport) {
			r.Name, r.Spec.Component, r.Spec.NodeName = "kube-proxy.node-1", "kube-proxy", "node-2"
		}), []problem{{"spec.nodeName", "node-1"}}},
		"another agent is free on its node": {report: report(func(r *features.FeatureReport) { r.Name, r.Spec.Component, r.Spec.Instance = "agent.a", "agent", "a" })},
	} {
		t.Run(title, func(t *testing.T) { check(t, ValidateFeatureReport(tc.report), tc.want...) })
	}
	check(t, ValidateFeatureReportUpdate(leased(lease("kube-feature-lease", "kube-scheduler.b")), leased(nil)), problem{name, "kube-scheduler.host-1"})
}

func TestReportImmutableFields(t *testing.T) {
	changed := report(func(r *features.FeatureReport) {
		r.Spec.Component, r.Spec.Instance, r.Spec.NodeName, r.Spec.Username = "a", "b", "b", "d"
	})
	check(t, ValidateFeatureReportUpdate(changed, report(nil)),
		problem{"spec.component", "immutable"}, problem{"spec.instance", "immutable"}, problem{"spec.nodeName", "immutable"}, problem{"spec.username", "immutable"})
	check(t, ValidateFeatureReportUpdate(report(func(r *features.FeatureReport) { r.Spec.Features = nil }), report(nil)))
}

func TestValidateFeaturePlan(t *testing.T) {
	for name, tc := range map[string]struct {
		spec features.FeaturePlanSpec
		want []problem
	}{
		"a value":    {features.FeaturePlanSpec{Enabled: ptr.To(false)}, nil},
		"a version":  {features.FeaturePlanSpec{TargetVersion: "1.37"}, nil},
		"neither":    {features.FeaturePlanSpec{}, []problem{{"spec", "either"}}},
		"both":       {features.FeaturePlanSpec{Enabled: ptr.To(true), TargetVersion: "1.37"}, []problem{{"spec", "not both"}}},
		"letters":    {features.FeaturePlanSpec{TargetVersion: "1.3x"}, []problem{{"spec.targetVersion", "such as 1.36"}}},
		"a v":        {features.FeaturePlanSpec{TargetVersion: "v1.35"}, []problem{{"spec.targetVersion", "such as 1.36"}}},
		"a patch":    {features.FeaturePlanSpec{TargetVersion: "1.35.2"}, []problem{{"spec.targetVersion", "such as 1.36"}}},
		"no version": {features.FeaturePlanSpec{TargetVersion: "next"}, []problem{{"spec.targetVersion", "1.36"}}},
	} {
		t.Run(name, func(t *testing.T) { check(t, ValidateFeaturePlan(&features.FeaturePlan{Spec: tc.spec}), tc.want...) })
	}
}
