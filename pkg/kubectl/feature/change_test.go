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

package feature

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

func TestPauseAndResume(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, dynamic("A", v1alpha1.StateOn), dynamic("B", v1alpha1.StateOff))
		r := c.start("pause", "A")
		if r.ended() {
			t.Errorf("it ended before a server answered:\n%s", r.out.String())
		}
		c.answer("A", v1alpha1.StateOn, v1alpha1.ReasonPaused, "spec.paused holds the feature")
		r.want(t, ExitDone, "feature.features.k8s.io/A paused: On, spec.paused holds the feature")
		golden(t, "pause.txt", c.session(
			"pause A",
			"pause A Missing --dry-run=server",
			"resume A", // without a server's response
			"resume B",
			"pause",
			"pause A --dry-run=client",
		))
		want := []string{
			`A by kubectl-feature: {"metadata":{"resourceVersion":""},"spec":{"paused":true}}`,
			`A by kubectl-feature: {"metadata":{"resourceVersion":""},"spec":{"paused":true}}`,
			`A by kubectl-feature dry run: {"metadata":{"resourceVersion":""},"spec":{"paused":true}}`,
			`A by kubectl-feature: {"metadata":{"resourceVersion":""},"spec":{"paused":false}}`,
			`B by kubectl-feature: {"metadata":{"resourceVersion":""},"spec":{"paused":false}}`,
		}
		if diff := cmp.Diff(want, c.patches); diff != "" {
			t.Errorf("patches (-want +got):\n%s", diff)
		}
		if c.get("A").Spec.Paused {
			t.Error("A is still paused")
		}
	})
}

// TestObjects checks the objects that are printed in place of sentences.
func TestObjects(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, dynamic("A", v1alpha1.StateOn), dynamic("B", v1alpha1.StateOff), danglingFeature("Dangling"))
		c.cleaning()
		golden(t, "objects.txt", c.session(
			"pause A B -o name", // without a server's response
			"resume A B --dry-run=server -o jsonpath={.metadata.name}/{.kind}/{.spec.paused}",
			"resume B -o yaml",
			"wait A B --for=condition=Consistent --timeout=1s -o name",
			"wait A B --for=state=On --timeout=1s -o json",
			"clean Dangling -o name",
			"resume B --dry-run=server -o jsonpath-as-json={.metadata.name}",
			"resume B --dry-run=server -o jsonpath --template={.kind}",
			"pause A -o table",
			"wait A --for=state=On -o wide",
			"clean A -o wide",
			"pause A -o jsonpath",
			"pause A -o go-template={{.kind}}",
			"clean A --template={{.kind}}",
		))
	})
}

// TestConflictIsRetried checks that a concurrent write of the status is no
// obstacle, and that one attempt is not counted twice.
func TestConflictIsRetried(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newSampleCluster(t)
		conflicts := 0
		c.client.PrependReactor("patch", "features", func(clienttesting.Action) (bool, runtime.Object, error) {
			conflicts++
			return conflicts < 3, nil, apierrors.NewConflict(schema.GroupResource{Resource: "features"}, "SchedulerAsyncPreemption", errors.New("modified"))
		})
		out, code := c.run("rollout", "SchedulerAsyncPreemption", "--retry", "--dry-run=server")
		if want := "feature.features.k8s.io/SchedulerAsyncPreemption rollout tried again (server dry run)\n"; code != ExitDone || out != want {
			t.Errorf("exit code %d: %s", code, out)
		}
		conflicts = -100
		out, code = c.run("rollout", "SchedulerAsyncPreemption", "--retry")
		if code != ExitFailed || !strings.Contains(out, "SchedulerAsyncPreemption in kube-system changes faster than it can be changed; try again") {
			t.Errorf("exit code %d: %s", code, out)
		}
		// Another administrator was faster: there is nothing to retry.
		conflicts = 2
		c.client.PrependReactor("patch", "features", func(clienttesting.Action) (bool, runtime.Object, error) {
			f := c.get("SchedulerAsyncPreemption")
			if !f.Status.Rollout.Halted {
				return false, nil, nil
			}
			f.Status.Rollout.Halted = false
			if err := c.client.Tracker().Update(featuresResource, f, f.Namespace); err != nil {
				return true, nil, err
			}
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "features"}, f.Name, errors.New("modified"))
		})
		out, code = c.run("rollout", "SchedulerAsyncPreemption", "--retry")
		if code != ExitFailed || !strings.Contains(out, "is not halted, so there is nothing to retry") {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
}

func TestRollout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newSampleCluster(t)
		golden(t, "rollout.txt", c.session(
			"rollout SchedulerAsyncPreemption",
			"rollout MaxUnavailableStatefulSet",
			"rollout SchedulerAsyncPreemption -o yaml",
			"rollout MaxUnavailableStatefulSet --retry",
			"rollout HPAScaleToZero --percent=5",
			"rollout MaxUnavailableStatefulSet --percent=101",
			"rollout MaxUnavailableStatefulSet --components=a,",
			"rollout MaxUnavailableStatefulSet --dry-run=server",
			"rollout MaxUnavailableStatefulSet --percent=5 -o json",
			"rollout MaxUnavailableStatefulSet -o name",
			"rollout SchedulerAsyncPreemption --at=5",
			"rollout Missing",
		))
		if len(c.patches) > 0 {
			t.Errorf("it wrote %s", c.patches)
		}
	})
}

// TestRolloutChanges shows that what is not named stays.
func TestRolloutChanges(t *testing.T) {
	was := v1alpha1.FeatureRollout{Percent: ptr.To[int32](25), Components: []string{"kube-scheduler", "kubelet"}, Attempt: 1}
	moment, hence := metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), metav1.Time{}
	inBubble(t, func(*testing.T) { hence = metav1.NewTime(time.Now().UTC().Add(time.Hour)) })
	for name, tc := range map[string]struct {
		args []string
		want v1alpha1.FeatureRollout
	}{
		"a share":               {[]string{"--percent=50"}, v1alpha1.FeatureRollout{Percent: ptr.To[int32](50), Components: was.Components, Attempt: 1}},
		"no instance":           {[]string{"--percent=0"}, v1alpha1.FeatureRollout{Percent: ptr.To[int32](0), Components: was.Components, Attempt: 1}},
		"components":            {[]string{"--components=kubelet"}, v1alpha1.FeatureRollout{Percent: was.Percent, Components: []string{"kubelet"}, Attempt: 1}},
		"all components":        {[]string{"--components="}, v1alpha1.FeatureRollout{Percent: was.Percent, Attempt: 1}},
		"again":                 {[]string{"--retry"}, v1alpha1.FeatureRollout{Percent: was.Percent, Components: was.Components, Attempt: 2}},
		"again, for fewer":      {[]string{"--retry", "--percent=5"}, v1alpha1.FeatureRollout{Percent: ptr.To[int32](5), Components: was.Components, Attempt: 2}},
		"a moment":              {[]string{"--at=2030-01-01T00:00:00Z"}, v1alpha1.FeatureRollout{Attempt: 1, At: &moment}},
		"a moment from now":     {[]string{"--at=1h"}, v1alpha1.FeatureRollout{Attempt: 1, At: &hence}},
		"again, at a moment":    {[]string{"--retry", "--at=1h"}, v1alpha1.FeatureRollout{Attempt: 2, At: &hence}},
		"for all, in all parts": {[]string{"--percent=100", "--components="}, v1alpha1.FeatureRollout{Percent: ptr.To[int32](100), Attempt: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newSampleCluster(t)
				r := c.start(append([]string{"rollout", "SchedulerAsyncPreemption"}, tc.args...)...)
				c.answer("SchedulerAsyncPreemption", v1alpha1.StateTurningOn, v1alpha1.ReasonWaitingForUses, "waiting for 2 users")
				done := "changed"
				if tc.want.Attempt == 2 {
					done = "tried again"
				}
				r.want(t, ExitDone, "feature.features.k8s.io/SchedulerAsyncPreemption rollout "+done+": TurningOn, waiting for 2 users")
				if diff := cmp.Diff(&tc.want, c.get("SchedulerAsyncPreemption").Spec.Rollout); diff != "" {
					t.Errorf("spec.rollout (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestRolloutWithMoment shows a rollout for all at a moment, and what else changes it.
func TestRolloutWithMoment(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		moment := metav1.NewTime(time.Now().UTC().Add(time.Hour).Truncate(time.Second))
		c := newCluster(t, dynamic("A", v1alpha1.StateTurningOn, func(f *v1alpha1.Feature) {
			f.Spec.Enabled, f.Spec.Rollout = ptr.To(true), &v1alpha1.FeatureRollout{At: &moment}
			f.Status.Configured = &v1alpha1.FeatureConfiguration{Value: true, Source: v1alpha1.SourceAPI}
			f.Status.Rollout = &v1alpha1.FeatureRolloutStatus{Value: true, StartTime: metav1.NewMicroTime(time.Now()),
				Observed: v1alpha1.FeatureRollout{Percent: ptr.To[int32](20), Components: []string{"kubelet"}, At: &moment}}
		}))
		shows := func(want string) {
			t.Helper()
			if out, _ := c.run("rollout", "A"); !strings.Contains(out, want) {
				t.Errorf("it shows\n%s\nwant %q in it", out, want)
			}
		}
		shows("(in 60m)")
		shows("for 20 percent of the instances of the components kubelet, and for all from " + moment.Format(time.RFC3339) + " on")
		change := func(change func(*v1alpha1.Feature)) {
			f := c.get("A")
			change(f)
			c.store(f)
		}
		change(func(f *v1alpha1.Feature) { f.Status.Rollout.MomentHeld = true })
		shows("for those that have it; the moment does not count while")
		if out, code := c.run("rollout", "A", "--percent=50", "--dry-run=server"); code != ExitDone {
			t.Errorf("exit code %d: %s", code, out)
		}
		if want := `"spec":{"rollout":{"at":null,"components":["kubelet"],"percent":50}}`; !strings.Contains(c.patches[0], want) {
			t.Errorf("it wrote %s, want %s in it", c.patches[0], want)
		}
		change(func(f *v1alpha1.Feature) {
			f.Status.Rollout.Observed.Percent, f.Status.Rollout.Observed.Components = ptr.To[int32](0), nil
		})
		if out, code := c.run("rollout", "A", "--components=kube-scheduler", "--dry-run=server"); code != ExitDone {
			t.Errorf("exit code %d: %s", code, out)
		}
		if want := `"spec":{"rollout":{"at":null,"components":["kube-scheduler"]}}`; !strings.Contains(c.patches[1], want) {
			t.Errorf("it wrote %s, want %s in it", c.patches[1], want)
		}
		passed := metav1.NewTime(time.Now().UTC().Add(-time.Hour).Truncate(time.Second))
		change(func(f *v1alpha1.Feature) {
			f.Spec.Rollout.At, f.Status.Rollout.Observed.At, f.Status.Rollout.MomentHeld = &passed, &passed, false
			f.Status.Rollout.Halted, f.Status.Rollout.HaltTime, f.Status.Rollout.Message = true, &passed, "2 of 3 died"
		})
		shows("for none: it was halted")
		if out, code := c.run("rollout", "A", "--retry"); code != ExitFailed || !strings.Contains(out, "has passed, so another attempt would give the value to all instances at once; set another one with --at") {
			t.Errorf("exit code %d: %s", code, out)
		}
		change(func(f *v1alpha1.Feature) { f.Status.Rollout = nil })
		shows("no: spec.rollout does not limit the value")
		change(func(f *v1alpha1.Feature) { f.Spec.Rollout.At, f.Spec.Paused = &moment, true })
		shows("no: spec.paused holds the feature")
	})
}
