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

package operator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/leader"
	"k8s.io/utils/ptr"
)

// TestAReplicaThatDrains: Start of the replica that looks after the feature has returned,
// and its own work continues, so Close is not called. The other replica takes the feature to
// the value that is asked for, and both follow it.
func TestAReplicaThatDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		keepSpec(s.features)
		instances := []string{"a", "b"}
		drains := leader.Of(string(colors), instances)
		ends := map[string]func() error{}
		replicas := map[string]*Replica{}
		gates := map[string]Config{}
		for _, instance := range instances {
			config := valid(t)
			config.Instance = instance
			config.Gate.Enabled(colors)
			gates[instance] = config
			replicas[instance], ends[instance] = s.running(config)
		}
		ask := func(value bool, want v1alpha1.FeatureState) {
			t.Helper()
			f, err := s.feature()
			if err != nil {
				t.Fatal(err)
			}
			f.Spec.Enabled = ptr.To(value)
			if _, err := s.features.FeaturesV1alpha1().Features("widgets").Update(t.Context(), f, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			pass(3 * time.Minute)
			if f, err = s.feature(); err != nil || f.Status.State != want {
				t.Errorf("the feature is %s, %v; want %s", f.Status.State, err, want)
			}
			for instance, config := range gates {
				if config.Gate.Enabled(colors) != value {
					t.Errorf("replica %s has the feature on: %t", instance, !value)
				}
			}
		}
		ask(true, v1alpha1.StateOn)
		if err := ends[drains](); err != nil {
			t.Fatal(err)
		}
		ask(false, v1alpha1.StateOff)
		f, err := s.feature()
		if err != nil || len(f.Status.Uses) != 1 || f.Status.Uses[0].Count != 2 {
			t.Errorf("the users are %+v, %v; want both replicas", f.Status.Uses, err)
		}
		for _, instance := range instances {
			if instance != drains {
				err = errors.Join(err, ends[instance]())
			}
			err = errors.Join(err, replicas[instance].Close(context.WithoutCancel(t.Context())))
		}
		if err != nil {
			t.Error(err)
		}
	})
}
