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
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/examplegates"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/utils/ptr"
)

// TestProcessesSwitchAtMoment: all confirm the moment, none has the value before it, and
// all have it after it. A pause and another moment reach all that wait.
func TestProcessesSwitchAtMoment(t *testing.T) {
	t.Parallel()
	const flipped = examplegates.Dynamic
	c := framework.Start(t, localcluster.Config{
		Only:      []string{localcluster.Etcd, localcluster.APIServer},
		ExtraArgs: map[string][]string{localcluster.APIServer: {"--dynamic-features=" + flipped, "--feature-settle-period=1s"}},
	})
	c.MustStart(localcluster.ControllerManager, localcluster.Scheduler)
	for _, component := range []string{localcluster.ControllerManager, localcluster.Scheduler} {
		c.WaitForValue(component, flipped, false)
	}
	c.WaitForFeature(flipped, "Off", func(f *v1alpha1.Feature) bool { return f.Status.State == v1alpha1.StateOff })

	// A time that is far away leaves a loaded machine the time that it needs.
	distant := time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	c.Request(flipped, fmt.Sprintf(`{"enabled":true,"rollout":{"at":%q}}`, distant))
	waitForSwitchTime(c, flipped, distant)
	c.WaitForFeature(flipped, "confirmed by all", func(f *v1alpha1.Feature) bool {
		message := firstMessage(f)
		return strings.HasSuffix(message, "all instances switch at "+distant)
	})
	value, err := c.Features.FeaturesV1alpha1().FeatureValues(metav1.NamespaceSystem).Get(t.Context(), flipped, metav1.GetOptions{})
	if err != nil || value.Rollout == nil || value.Rollout.At == nil || ptr.Deref(value.Rollout.Percent, 100) != 0 || ptr.Deref(value.Previous, true) {
		t.Errorf("published is %+v, %v; want the moment, and off before it", value, err)
	}

	c.Request(flipped, `{"paused":true}`)
	waitForSwitchTime(c, flipped, "")
	soon := time.Now().Add(10 * time.Second).UTC().Truncate(time.Second)
	c.Request(flipped, fmt.Sprintf(`{"paused":false,"rollout":{"at":%q}}`, soon.Format(time.RFC3339)))
	c.WaitForReports("all to have the value", func(reports []v1alpha1.FeatureReport) bool {
		having := 0
		for _, r := range reports {
			for _, f := range r.Spec.Features {
				if f.Name != flipped || !f.Enabled {
					continue
				}
				if having++; time.Now().Before(soon) {
					t.Fatalf("%s has the value before %s", r.Name, soon)
				}
			}
		}
		return having == 3
	})
	c.WaitForFeature(flipped, "On", func(f *v1alpha1.Feature) bool { return f.Status.State == v1alpha1.StateOn && f.Status.Rollout == nil })
	c.WaitForEvent(flipped, "RolloutSwitched", "the feature is on for all instances")
	framework.Eventually(t, "the value to be published for all", func() error {
		value, err := c.Features.FeaturesV1alpha1().FeatureValues(metav1.NamespaceSystem).Get(t.Context(), flipped, metav1.GetOptions{})
		if err == nil && (!value.Value || value.Rollout != nil) {
			err = fmt.Errorf("published is %+v", value)
		}
		return err
	})
}

func firstMessage(f *v1alpha1.Feature) string {
	if len(f.Status.Tasks) == 0 {
		return ""
	}
	return f.Status.Tasks[0].Message
}

// waitForSwitchTime waits until kube-apiserver, kube-controller-manager and kube-scheduler
// report that they have a feature off and wait for a moment, "" for none.
func waitForSwitchTime(c *framework.Cluster, feature, moment string) {
	c.WaitForReports("the moment "+moment, func(reports []v1alpha1.FeatureReport) bool {
		waiting := 0
		for _, r := range reports {
			for _, f := range r.Spec.Features {
				if f.Name == feature && !f.Enabled && f.SwitchTime == moment {
					waiting++
				}
			}
		}
		return waiting == 3
	})
}
