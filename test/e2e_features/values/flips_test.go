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
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/examplegates"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/utils/ptr"
)

// flips is how often TestFlipsWhileServersAreKilled changes the value.
const flips = 10

// TestFlipsWhileServersAreKilled: in the middle of each flip a server is killed, in turn
// once the request is stored, once the transition is, and once the value is published. It
// returns at once, or after the end of the transition. Each transition ends, when all live
// users have the value and not before; all are counted once.
func TestFlipsWhileServersAreKilled(t *testing.T) {
	t.Parallel()
	const feature = examplegates.Dynamic
	s := startServers(t, feature)
	s.MustStart(localcluster.ControllerManager, localcluster.Scheduler)
	s.wait(feature, false, 3)
	for _, component := range []string{localcluster.ControllerManager, localcluster.Scheduler} {
		s.WaitForValue(component, feature, false)
	}
	s.waitCounted(feature, false, v1alpha1.StateOff)

	for flip := range flips {
		on := flip%2 == 0
		// The clients of this test, kube-controller-manager and kube-scheduler have the first.
		killed := s.names[1+flip%2]
		state, turning := v1alpha1.StateOff, v1alpha1.StateTurningOff
		if on {
			state, turning = v1alpha1.StateOn, v1alpha1.StateTurningOn
		}
		s.Request(feature, fmt.Sprintf(`{"enabled":%t}`, on))
		switch flip % 3 {
		case 1:
			s.WaitForFeature(feature, "in transition", func(f *v1alpha1.Feature) bool { return f.Status.State == turning || f.Status.State == state })
		case 2:
			s.waitPublished(feature, on)
		}
		s.MustKill(killed)
		late := flip%4 >= 2
		if !late {
			s.MustStart(killed)
		}
		s.WaitForFeature(feature, string(state), func(f *v1alpha1.Feature) bool { return f.Status.State == state })
		s.haveAll(feature, on, killed)
		if late {
			s.MustStart(killed)
		}
		s.waitCounted(feature, on, state)
	}
}

// waitPublished waits until processes that follow a feature get a value.
func (s *servers) waitPublished(feature string, on bool) {
	s.t.Helper()
	framework.Eventually(s.t, fmt.Sprintf("the value %t to be published", on), func() error {
		value, err := s.Features.FeaturesV1alpha1().FeatureValues(metav1.NamespaceSystem).Get(s.t.Context(), feature, metav1.GetOptions{})
		if err == nil && value.Value != on {
			err = fmt.Errorf("published is %t", value.Value)
		}
		return err
	})
}

// haveAll checks that all users but a server that was killed have a value, right after a
// transition to it ended. On a slow machine that server may be back too late to be waited
// for.
func (s *servers) haveAll(feature string, on bool, killed string) {
	s.t.Helper()
	var others []string
	for _, r := range s.Reports() {
		for _, f := range r.Spec.Features {
			if f.Name == feature && f.Queried && f.Enabled != on {
				others = append(others, r.Spec.Component)
			}
		}
	}
	if len(others) > 1 || len(others) == 1 && others[0] != localcluster.APIServer {
		s.t.Errorf("users of %q have the other value than %t after the end of the transition, and only %s was killed", others, on, killed)
	}
}

// waitCounted waits until each user is counted once, with a value.
func (s *servers) waitCounted(feature string, on bool, state v1alpha1.FeatureState) {
	s.t.Helper()
	s.WaitForFeature(feature, fmt.Sprintf("%s, and 5 users with %t", state, on), func(f *v1alpha1.Feature) bool {
		counted := map[string]int32{}
		for _, use := range f.Status.Uses {
			if use.Stale > 0 || ptr.Deref(use.Enabled, !on) != on {
				return false
			}
			counted[use.Component] += use.Count
		}
		return f.Status.State == state && len(counted) == 3 &&
			counted[localcluster.APIServer] == 3 && counted[localcluster.ControllerManager] == 1 && counted[localcluster.Scheduler] == 1
	})
}
