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

package demo

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/wait"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// watchFeature calls seen with the Feature now and whenever it changes, until
// seen returns true.
func (s *story) watchFeature(ctx context.Context, seen func(*v1alpha1.Feature) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last *v1alpha1.Feature
	err := localcluster.WatchFeature(ctx, s.features, gate, func(feature *v1alpha1.Feature) (bool, error) {
		last = feature
		return seen(feature)
	})
	if wait.Interrupted(err) && last != nil {
		return fmt.Errorf("feature %s is %s after %s and does not go on: %s", gate, last.Status.State, patience, why(last))
	}
	return err
}

// why returns the cause for which a transition waits.
func why(feature *v1alpha1.Feature) string {
	for _, c := range feature.Status.Conditions {
		if c.Type == v1alpha1.ConditionProgressing {
			return c.Reason + ": " + c.Message
		}
	}
	return "it has no condition Progressing"
}

// awaitState waits until the Feature is in a state of rest.
func (s *story) awaitState(ctx context.Context, state v1alpha1.FeatureState) error {
	return s.watchFeature(ctx, func(feature *v1alpha1.Feature) (bool, error) {
		if feature.Status.State != state {
			return false, nil
		}
		s.show(feature)
		return true, nil
	})
}

// awaitUsers waits until kube-apiserver and kube-scheduler have reported that they
// use the feature.
func (s *story) awaitUsers(ctx context.Context) error {
	s.say("waiting until the users of the gate have reported (at most a minute: reports are batched)")
	return s.watchFeature(ctx, func(feature *v1alpha1.Feature) (bool, error) {
		found := map[string]bool{}
		for _, use := range feature.Status.Uses {
			found[use.Component] = use.Enabled != nil && *use.Enabled && use.Count > 0
		}
		if !found["kube-apiserver"] || !found["kube-scheduler"] {
			return false, nil
		}
		s.show(feature)
		return true, nil
	})
}

// errNoTransition: the feature was Off without having been TurningOff.
var errNoTransition = errors.New("the feature went Off without a transition; nothing can have cleaned up")

// follow prints the Feature whenever something about it changes, until it is
// Off. It fails when the feature did not get there by way of TurningOff, waiting
// for uses and clearing the field.
func (s *story) follow(ctx context.Context) error {
	var last *v1alpha1.Feature
	turning := false
	return s.watchFeature(ctx, func(feature *v1alpha1.Feature) (bool, error) {
		if last != nil && equality.Semantic.DeepEqual(visible(last), visible(feature)) {
			return false, nil
		}
		last = feature
		s.show(feature)
		if feature.Status.State == v1alpha1.StateTurningOff {
			turning = true
		}
		if feature.Status.State != v1alpha1.StateOff {
			return false, nil
		}
		if !turning {
			return false, errNoTransition
		}
		return true, nil
	})
}

// visible is the part of a Feature that follow shows.
func visible(feature *v1alpha1.Feature) []any {
	status := &feature.Status
	return []any{status.State, status.Configured, status.Tasks, users(status.Uses)}
}
