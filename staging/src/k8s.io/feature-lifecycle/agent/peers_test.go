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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentfeaturegate "k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/utils/ptr"
)

// used is a Feature that kubelets use, so many with it off and on in turn.
func used(f *v1alpha1.Feature, counts ...int32) *v1alpha1.Feature {
	for i, count := range counts {
		f.Status.Uses = append(f.Status.Uses, v1alpha1.FeatureUse{Component: "kubelet", Enabled: ptr.To(i%2 == 1), Count: count})
	}
	return f
}

// counting is a gate that notes what Peers says when a value is given to it.
type counting struct {
	*featuregate.Gate
	peers func(feature string) int
	seen  atomic.Int64
}

func (g *counting) SetRemote(values map[componentfeaturegate.Feature]featuregate.Remote) []featuregate.Outcome {
	g.seen.Store(int64(g.peers("A")))
	return g.Gate.SetRemote(values)
}

// TestPeersCountsUsersOfOtherValue: the reporter calls Peers as soon as the gate has the value.
func TestPeersCountsUsersOfOtherValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, used(feature("A", v1alpha1.ControlDynamic, false), 3, 4), used(feature("B", v1alpha1.ControlCentral, true), 500, 500))
		gate := &counting{Gate: w.gate, peers: func(feature string) int { return w.s.Peers(feature) }}
		w.config.Gate = gate
		if w.load(); w.s.Peers("A") != 4 {
			t.Errorf("after loading: %d peers, want the 4 that have A on", w.s.Peers("A"))
		}
		if n := w.s.Peers("B"); n != 0 {
			t.Errorf("%d peers for a feature that processes do not follow", n)
		}
		w.run()
		synctest.Wait()
		w.put(used(feature("A", v1alpha1.ControlDynamic, false), 10000, 0))
		after(time.Second)
		// A transition starts counting again.
		w.put(feature("A", v1alpha1.ControlDynamic, true))
		after(time.Second)
		w.expect("a second after the write", true)
		if n := gate.seen.Load(); n != 10000 {
			t.Errorf("%d peers when the gate got the value, want 10000", n)
		}
		w.put(used(feature("A", v1alpha1.ControlDynamic, true), 20, 9980))
		after(time.Second)
		if n := w.s.Peers("A"); n != 20 {
			t.Errorf("%d peers, want the 20 that do not have it yet", n)
		}
		w.put(used(feature("A", v1alpha1.ControlLocal, true), 10000, 0))
		after(10 * time.Minute)
		if n := w.s.Peers("A"); n != 0 {
			t.Errorf("%d peers although nothing is dynamic", n)
		}
	})
}

// TestPeersOfRolloutExcludeOthers: the others get no value.
func TestPeersOfRolloutExcludeOthers(t *testing.T) {
	users := []v1alpha1.FeatureUse{
		{Component: "kubelet", Enabled: ptr.To(false), Count: 5000}, {Component: "kubelet", Enabled: ptr.To(true), Count: 50},
		{Component: "kube-scheduler", Enabled: ptr.To(false), Count: 2}, {Component: "kubelet", Expected: 7},
	}
	canary := func(value, halted bool, r v1alpha1.FeatureRollout) *v1alpha1.Feature {
		f := feature("A", v1alpha1.ControlDynamic, value)
		f.Status.Rollout = &v1alpha1.FeatureRolloutStatus{Value: true, Observed: r, Halted: halted}
		return f
	}
	together := func(change func(*v1alpha1.Feature)) *v1alpha1.Feature {
		f := awaiting(metav1.NewTime(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)))
		f.Status.Transition = &v1alpha1.FeatureTransition{}
		if change != nil {
			change(f)
		}
		return f
	}
	// The server ends a rollout whose value is not requested any more; the spec keeps it.
	calledOff := feature("A", v1alpha1.ControlDynamic, false)
	calledOff.Status.Configured.Previous, calledOff.Spec.Rollout = ptr.To(false), &v1alpha1.FeatureRollout{Percent: ptr.To[int32](20)}
	schedulers, percent := v1alpha1.FeatureRollout{Components: []string{"kube-scheduler"}}, v1alpha1.FeatureRollout{Percent: ptr.To[int32](1)}
	for name, test := range map[string]struct {
		feature     *v1alpha1.Feature
		value, told bool
		want        int
	}{
		"to all":                   {feature("A", v1alpha1.ControlDynamic, true), true, true, 5002},
		"back from all":            {feature("A", v1alpha1.ControlDynamic, false), false, true, 50},
		"of one component":         {canary(true, false, schedulers), true, true, 2},
		"of a part":                {canary(true, false, percent), true, true, 51},
		"at a moment, before it":   {together(nil), false, true, 5052},
		"at a moment that is held": {together(func(f *v1alpha1.Feature) { f.Status.Rollout.MomentHeld = true }), false, true, 5052},
		"of a moment that is called off": {together(func(f *v1alpha1.Feature) {
			f.Status.Rollout, f.Status.Configured.Value = nil, false
		}), false, true, 5052},
		"back from a part":              {canary(true, true, percent), false, true, 50},
		"called off":                    {calledOff, false, true, 50},
		"to values of processes' own":   {feature("A", v1alpha1.ControlDynamic, true), false, false, 5052},
		"to those, from a server's own": {&v1alpha1.Feature{}, false, false, 5052},
	} {
		if got := changing(test.feature, users, test.value, test.told, waits(test.feature)); got != test.want {
			t.Errorf("%s: %d processes, want %d", name, got, test.want)
		}
	}
}
