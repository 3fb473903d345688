//go:build linux

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

package values

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/values/rollout"
	"k8s.io/kubernetes-features/cmd/local-up/cluster"
	"k8s.io/kubernetes-features/test/integration/framework"
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
		if err := s.Start(s.t.Context(), name); err != nil {
			s.t.Fatal(err)
		}
		reports := s.WaitForReports("of another scheduler", func(reports []v1alpha1.FeatureReport) bool { return len(ofSchedulers(reports)) == i+1 })
		for _, r := range ofSchedulers(reports) {
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
		return found([]v1alpha1.FeatureReport{r}, cluster.Scheduler, schedulerFeature) == nil
	})
}

// waitCanary waits until the canary has reported a value, and nobody else has
// another than true.
func (s *schedulers) waitCanary(value bool) {
	s.t.Helper()
	s.WaitForReports(fmt.Sprintf("in which the canary has %s=%t and the others have it on", schedulerFeature, value), func(reports []v1alpha1.FeatureReport) bool {
		all := ofSchedulers(reports)
		for _, r := range all {
			want := value || r.Name != s.report
			if found([]v1alpha1.FeatureReport{r}, cluster.Scheduler, schedulerFeature).Enabled != want {
				return false
			}
		}
		return len(all) == 3
	})
}

// TestACanaryThatDiesIsHalted: a scheduler that took a value and is killed stops
// the rollout; started again it has the value from before, until people resume.
func TestACanaryThatDiesIsHalted(t *testing.T) {
	t.Parallel()
	const central = "--central-features=" + schedulerFeature
	s := &schedulers{t: t, Cluster: framework.Start(t, cluster.Config{
		Replicas: 3, Only: []string{cluster.Etcd, cluster.APIServer}, ExtraArgs: map[string][]string{cluster.APIServer: {central}},
	})}
	var all []string
	for i := range 3 {
		all = append(all, cluster.Nth(cluster.Scheduler, i+1))
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s.begin(all)
	s.WaitForFeature(schedulerFeature, "On", func(f *v1alpha1.Feature) bool { return f.Status.State == v1alpha1.StateOn })

	do(patch(t, s.Cluster, schedulerFeature, fmt.Sprintf(`{"rollout":{"percent":%d}}`, s.percent)))
	s.SetArgs(cluster.APIServer, central, "--feature-gates="+schedulerFeature+"=false")
	do(s.Restart(t.Context(), nil, cluster.APIServer))
	s.WaitForFeature(schedulerFeature, "a canary of off", func(f *v1alpha1.Feature) bool {
		return f.Status.Rollout != nil && !f.Status.Rollout.Value && f.Status.State == v1alpha1.StateTurningOff
	})
	do(s.Restart(t.Context(), nil, all...))
	s.waitCanary(false)

	begun := time.Now()
	do(s.Kill(t.Context(), s.canary))
	halted := s.WaitForFeature(schedulerFeature, "halted", func(f *v1alpha1.Feature) bool {
		return f.Status.Rollout != nil && f.Status.Rollout.Halted
	})
	t.Logf("killed, the canary was halted after %s: %s", time.Since(begun).Round(time.Second), halted.Status.Rollout.Message)
	if want := "kube-scheduler/" + strings.TrimPrefix(s.report, "kube-scheduler."); !slices.Equal(halted.Status.Rollout.Gone, []string{want}) {
		t.Errorf("halted for %v, want %s", halted.Status.Rollout.Gone, want)
	}
	for _, c := range halted.Status.Conditions {
		if c.Type == v1alpha1.ConditionProgressing && (c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonRolloutHalted) {
			t.Errorf("Progressing is %s, %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	s.WaitForEvent(schedulerFeature, "RolloutHalted", "go back to on")

	do(s.Start(t.Context(), s.canary))
	s.waitCanary(true)
	do(s.Restart(t.Context(), nil, cluster.APIServer))
	after := s.WaitForFeature(schedulerFeature, "known again", func(f *v1alpha1.Feature) bool { return f.Status.Rollout != nil })
	if !after.Status.Rollout.Halted || !after.Status.Rollout.HaltTime.Equal(halted.Status.Rollout.HaltTime) {
		t.Errorf("a restart of the server changed the halt: %+v", after.Status.Rollout)
	}

	do(patch(t, s.Cluster, schedulerFeature, `{"rollout":{"attempt":1}}`))
	s.WaitForFeature(schedulerFeature, "resumed", func(f *v1alpha1.Feature) bool {
		return f.Status.Rollout != nil && !f.Status.Rollout.Halted && f.Status.Rollout.Observed.Attempt == 1
	})
	s.WaitForEvent(schedulerFeature, "RolloutResumed", "off")
	do(s.Restart(t.Context(), nil, s.canary))
	s.waitCanary(false)
}
