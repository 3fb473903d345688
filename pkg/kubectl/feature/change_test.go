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

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
