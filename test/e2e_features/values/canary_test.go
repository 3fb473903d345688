//go:build linux

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

package values

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/feature-lifecycle/rollout"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/examplegates"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// schedulers is a cluster with three schedulers, one of which is in a canary.
type schedulers struct {
	*framework.Cluster
	t *testing.T
	// canary is the name of its component, report that of its report; percent is
	// the share that it is.
	canary, report string
	percent        int32
}

// begin starts the schedulers one by one and finds out which of them the smallest
// canary has.
func (s *schedulers) begin(names []string) {
	s.t.Helper()
	s.percent = 100
	known := map[string]bool{}
	for i, name := range names {
		s.MustStart(name)
		// What a scheduler asks for may follow later.
		all := func(reports []v1alpha1.FeatureReport) []v1alpha1.FeatureReport {
			return slices.DeleteFunc(slices.Clone(reports), func(r v1alpha1.FeatureReport) bool { return r.Spec.Component != localcluster.Scheduler })
		}
		reports := s.WaitForReports("of another scheduler", func(reports []v1alpha1.FeatureReport) bool { return len(all(reports)) == i+1 })
		for _, r := range all(reports) {
			if bucket := rollout.Bucket(schedulerFeature, r.Spec.Instance); !known[r.Name] && bucket < s.percent {
				s.canary, s.report, s.percent = name, r.Name, bucket
			}
			known[r.Name] = true
		}
	}
	s.percent++
}

// ofSchedulers are the reports of schedulers that have asked for the feature.
func ofSchedulers(reports []v1alpha1.FeatureReport) []v1alpha1.FeatureReport {
	return slices.DeleteFunc(slices.Clone(reports), func(r v1alpha1.FeatureReport) bool {
		return framework.Reported([]v1alpha1.FeatureReport{r}, localcluster.Scheduler, schedulerFeature) == nil
	})
}

// waitCanary waits until the canary has reported a value, and no other
// instance has another than true.
func (s *schedulers) waitCanary(value bool) {
	s.t.Helper()
	s.WaitForReports(fmt.Sprintf("in which the canary has %s=%t and the others have it on", schedulerFeature, value), func(reports []v1alpha1.FeatureReport) bool {
		all := ofSchedulers(reports)
		for _, r := range all {
			want := value || r.Name != s.report
			if framework.Reported([]v1alpha1.FeatureReport{r}, localcluster.Scheduler, schedulerFeature).Enabled != want {
				return false
			}
		}
		return len(all) == 3
	})
}

// TestDyingCanaryHalted: a scheduler that took a value and is killed stops
// the rollout; started again it has the value from before, until people resume.
func TestDyingCanaryHalted(t *testing.T) {
	t.Parallel()
	const central = "--central-features=" + schedulerFeature
	s := &schedulers{t: t, Cluster: framework.Start(t, localcluster.Config{
		Replicas: 3, Only: []string{localcluster.Etcd, localcluster.APIServer}, ExtraArgs: map[string][]string{localcluster.APIServer: {central}},
	})}
	var all []string
	for i := range 3 {
		all = append(all, localcluster.Nth(localcluster.Scheduler, i+1))
	}
	s.begin(all)
	s.WaitForFeature(schedulerFeature, "On", func(f *v1alpha1.Feature) bool { return f.Status.State == v1alpha1.StateOn })

	s.Request(schedulerFeature, fmt.Sprintf(`{"rollout":{"percent":%d}}`, s.percent))
	s.SetArgs(localcluster.APIServer, central, "--feature-gates="+schedulerFeature+"=false")
	s.MustRestart(localcluster.APIServer)
	s.WaitForFeature(schedulerFeature, "a canary of off", func(f *v1alpha1.Feature) bool {
		return f.Status.Rollout != nil && !f.Status.Rollout.Value && f.Status.State == v1alpha1.StateTurningOff
	})
	s.MustRestart(all...)
	s.waitCanary(false)

	s.MustKill(s.canary)
	halted := s.WaitForFeature(schedulerFeature, "halted", func(f *v1alpha1.Feature) bool {
		return f.Status.Rollout != nil && f.Status.Rollout.Halted
	})
	t.Logf("the canary was halted: %s", halted.Status.Rollout.Message)
	if want := "kube-scheduler/" + strings.TrimPrefix(s.report, "kube-scheduler."); !slices.Equal(halted.Status.Rollout.FailedInstances, []string{want}) {
		t.Errorf("halted for %v, want %s", halted.Status.Rollout.FailedInstances, want)
	}
	for _, c := range halted.Status.Conditions {
		if c.Type == v1alpha1.ConditionProgressing && (c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonRolloutHalted) {
			t.Errorf("Progressing is %s, %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	s.WaitForEvent(schedulerFeature, "RolloutHalted", "go back to on")

	s.MustStart(s.canary)
	s.waitCanary(true)
	s.MustRestart(localcluster.APIServer)
	after := s.WaitForFeature(schedulerFeature, "known again", func(f *v1alpha1.Feature) bool { return f.Status.Rollout != nil })
	if !after.Status.Rollout.Halted || !after.Status.Rollout.HaltTime.Equal(halted.Status.Rollout.HaltTime) {
		t.Errorf("a restart of the server changed the halt: %+v", after.Status.Rollout)
	}

	s.Request(schedulerFeature, `{"rollout":{"attempt":1}}`)
	s.WaitForFeature(schedulerFeature, "resumed", func(f *v1alpha1.Feature) bool {
		return f.Status.Rollout != nil && !f.Status.Rollout.Halted && f.Status.Rollout.Observed.Attempt == 1
	})
	s.WaitForEvent(schedulerFeature, "RolloutResumed", "off")
	s.MustRestart(s.canary)
	s.waitCanary(false)
}

// TestCrashLoopingCanaryHalted: a scheduler that got a dynamic value, and no
// other process did, crashes again and again, and comes back each time. It then has
// the value from before, until people resume the rollout.
func TestCrashLoopingCanaryHalted(t *testing.T) {
	t.Parallel()
	// The server and the schedulers query it when they start.
	const feature, scheduler = examplegates.Dynamic, "kube-scheduler"
	c := framework.Start(t, localcluster.Config{
		Only:      []string{localcluster.Etcd, localcluster.APIServer, localcluster.Scheduler},
		ExtraArgs: map[string][]string{localcluster.APIServer: {"--dynamic-features=" + feature, "--feature-settle-period=1s"}},
	})
	c.WaitForFeature(feature, "Off", func(f *v1alpha1.Feature) bool { return f.Status.State == v1alpha1.StateOff })
	// wait waits for what the scheduler reports, which no other process has.
	wait := func(value bool) {
		t.Helper()
		c.WaitForReports(fmt.Sprintf("in which the scheduler has %s=%t and the server has it off", feature, value), func(reports []v1alpha1.FeatureReport) bool {
			server, canary := framework.Reported(reports, localcluster.APIServer, feature), framework.Reported(reports, scheduler, feature)
			return server != nil && !server.Enabled && canary != nil && canary.Enabled == value
		})
	}
	wait(false)
	c.Request(feature, `{"enabled":true,"rollout":{"components":["`+scheduler+`"]}}`)
	wait(true)
	for range transition.DefaultCanarySettings().CrashLoop {
		before := processOf(c.Reports(), scheduler)
		c.MustKill(localcluster.Scheduler)
		c.MustStart(localcluster.Scheduler)
		c.WaitForReports("in which the next process of the scheduler has asked for "+feature, func(reports []v1alpha1.FeatureReport) bool {
			return processOf(reports, scheduler) != before && framework.Reported(reports, scheduler, feature) != nil
		})
	}
	halted := c.WaitForFeature(feature, "halted", func(f *v1alpha1.Feature) bool {
		return f.Status.Rollout != nil && f.Status.Rollout.Halted
	})
	if gone := halted.Status.Rollout.FailedInstances; len(gone) != 1 || !strings.HasPrefix(gone[0], scheduler+"/") {
		t.Errorf("halted for %v, want the scheduler", gone)
	}
	progressing := meta.FindStatusCondition(halted.Status.Conditions, v1alpha1.ConditionProgressing)
	if progressing == nil || progressing.Status != metav1.ConditionFalse || progressing.Reason != v1alpha1.ReasonRolloutHalted {
		t.Errorf("Progressing is %+v", progressing)
	}
	c.WaitForEvent(feature, "RolloutHalted", "go back to off")
	wait(false)

	c.Request(feature, `{"rollout":{"attempt":1}}`)
	c.WaitForFeature(feature, "resumed", func(f *v1alpha1.Feature) bool {
		return f.Status.Rollout != nil && !f.Status.Rollout.Halted && f.Status.Rollout.Observed.Attempt == 1
	})
	wait(true)
	// For all: the canary is over, and the transition continues to its end.
	c.Request(feature, `{"rollout":null}`)
	c.WaitForFeature(feature, "On", func(f *v1alpha1.Feature) bool { return f.Status.State == v1alpha1.StateOn && f.Status.Rollout == nil })
}

// processOf is how the reporter of a component's process calls itself, which differs
// from those before and after. It is "" if there is no report.
func processOf(reports []v1alpha1.FeatureReport, component string) string {
	for _, r := range reports {
		if r.Spec.Component == component {
			return r.Spec.Process
		}
	}
	return ""
}
