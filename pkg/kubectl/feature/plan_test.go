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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

// plans answers questions for plans by feature.
func (c *cluster) plans(answers map[string]v1alpha1.FeaturePlanStatus) {
	c.client.PrependReactor("create", "features/plan", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create := action.(clienttesting.CreateActionImpl)
		plan := create.GetObject().(*v1alpha1.FeaturePlan).DeepCopy()
		plan.Status = answers[create.Name]
		if create.Name == "GenericWorkload" {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "features/plan"}, create.Name, errors.New("because"))
		}
		return true, plan, nil
	})
}

func TestPlan(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newSampleCluster(t)
		c.plans(map[string]v1alpha1.FeaturePlanStatus{
			"PodDeletionCost": {
				Configured: &v1alpha1.FeatureConfiguration{Value: false, Source: v1alpha1.SourceAPI},
				Tasks: []v1alpha1.PlannedTask{
					{Name: v1alpha1.TaskWaitForUses, Message: "wait until every live user has the value", State: v1alpha1.StateTurningOff},
					{Name: "ClearField/statefulsets.apps/spec.a", State: v1alpha1.StateTurningOff, Message: "clear the field", Leftovers: []v1alpha1.ResourceLeftovers{
						{Group: "apps", Resource: "statefulsets", Field: "spec.a", Count: 7, Examples: []string{"shop/web", "shop/api"}},
						{Resource: "services", Count: 1, Examples: []string{"shop/1st"}},
					}},
				},
				Uses: []v1alpha1.FeatureUse{
					{Component: "kubelet", Version: "v1.36.3", Enabled: ptr.To(true), Count: 3, Stale: 1, Examples: []string{"n1", "n2"}},
					{Component: "kubelet", Expected: 2, Examples: []string{"n7", "n8"}},
				},
				Dependents: []string{"A", "B"},
				Blockers:   []string{"kubelet/n1 has PodDeletionCost=true in its own --feature-gates; restart it without", "spec.paused holds the feature"},
				Unknown:    []string{"what the scheduler's plugins store"},
			},
			"HPAScaleToZero": {
				Tasks:        []v1alpha1.PlannedTask{{Name: "ClearField/x", Leftovers: []v1alpha1.ResourceLeftovers{{Resource: "xs", Count: 12}}}},
				Dependencies: []string{"C"},
				Unknown:      []string{"whether 1.37 has it"},
			},
		})
		golden(t, "plan.txt", c.session(
			"plan PodDeletionCost --disable",
			"plan HPAScaleToZero --to=1.37",
			"plan InPlacePodVerticalScaling --enable",
			"plan PodDeletionCost --disable -o yaml",
			"plan HPAScaleToZero --to 1.37 -o json",
			"plan GenericWorkload --enable",
			"plan PodDeletionCots --enable",
			"plan PodDeletionCost",
			"plan PodDeletionCost --enable --disable",
			"plan PodDeletionCost --to=soon",
			"plan PodDeletionCost --to=v1.35",
			"plan PodDeletionCost --to=1.35.2",
			"plan PodDeletionCost --to=",
			"plan PodDeletionCost --enable -o name",
			"plan",
		))
		out, _ := c.onScreen("plan", "InPlacePodVerticalScaling", "--enable")
		if erased := strings.LastIndex(out, "\r\x1b[K"); !strings.Contains(out[:max(0, erased)], "looking for") || strings.Contains(out[max(0, erased):], "looking for") {
			t.Errorf("on a terminal it does not say what it waits for and take that away: %q", out)
		}
		out, _ = c.onScreen("plan", "PodDeletionCost", "--disable")
		if !strings.Contains(out, "     \x1b[33m- 7 statefulsets.apps with spec.a: shop/web, shop/api, …\x1b[0m\n") {
			t.Errorf("among the tasks it does not stand out what they would touch: %q", out)
		}
	})
}

// TestPlanOfRunningPods: what becomes of Pods is said where a gate is turned off, as it was
// seen on nodes.
func TestPlanOfRunningPods(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, dynamic("PodLevelResources", v1alpha1.StateOn), dynamic("HPAScaleToZero", v1alpha1.StateOn))
		c.plans(nil)
		const ends = "Each ends, as kubelet refuses it like a new one"
		for command, want := range map[string]bool{
			"plan PodLevelResources --disable": true, "plan PodLevelResources --enable": false, "plan HPAScaleToZero --disable": false,
		} {
			if out, _ := c.run(strings.Fields(command)...); strings.Contains(out, ends) != want {
				t.Errorf("%s: want %q: %t, got\n%s", command, ends, want, out)
			}
		}
	})
}
