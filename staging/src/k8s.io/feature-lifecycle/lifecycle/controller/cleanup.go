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

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// cleanAttempts is how often a cleanup is restarted whose Feature was written
// meanwhile: its leader counts users in it.
const cleanAttempts = 5

// cleaner starts clean-ups. Any server may do that; the leader of the feature carries on.
type cleaner struct {
	*observer
	// requeue has a feature reconciled after a time.
	requeue func(feature string, after time.Duration)
}

// clean starts the removal of the leftovers of a feature that is off, as a transition
// like any other. The write has the resourceVersion of the feature that was read; if
// the feature was written since, it is read again. An error for which
// apierrors.IsConflict is true explains why there is nothing to clean, or not now.
func (o *cleaner) clean(ctx context.Context, feature *v1alpha1.Feature) (*v1alpha1.FeatureCleanupStatus, error) {
	found := false
	for attempt := 1; ; attempt++ {
		update, err := o.cleanUp(ctx, feature, &found)
		if err != nil {
			return nil, err
		}
		features := o.config.Client.FeaturesV1alpha1().Features(feature.Namespace)
		stored, err := features.UpdateStatus(ctx, update, metav1.UpdateOptions{})
		if err == nil {
			return &v1alpha1.FeatureCleanupStatus{TransitionID: stored.Status.Transition.ID, Tasks: stored.Status.Tasks}, nil
		}
		if !apierrors.IsConflict(err) {
			return nil, err
		}
		if attempt == cleanAttempts {
			return nil, apierrors.NewConflict(v1alpha1.Resource("features"), feature.Name, errors.New("the feature kept changing meanwhile; try again"))
		}
		if feature, err = features.Get(ctx, feature.Name, metav1.GetOptions{}); err != nil {
			return nil, err
		}
	}
}

// cleanUp returns a feature with a cleanup that has started. Its errors are those of
// clean. It searches for leftovers, unless some were found.
func (o *cleaner) cleanUp(ctx context.Context, feature *v1alpha1.Feature, found *bool) (*v1alpha1.Feature, error) {
	view := o.gather(feature.Name, o.config.Clock.Now())
	if err := transition.MayClean(feature, view); err != nil {
		return nil, apierrors.NewConflict(v1alpha1.Resource("features"), feature.Name, err)
	}
	if !*found {
		// The condition Clean may be half an hour old, and the caller may know better.
		if err := o.mayRemove(ctx, feature.Name); err != nil {
			return nil, err
		}
		*found = true
	}
	update := feature.DeepCopy()
	transition.Begin(&update.Status, false, v1alpha1.TransitionClean, view.Declared, string(uuid.NewUUID()), o.config.Clock.Now())
	return update, nil
}

// mayRemove finds out whether something is left of a feature that is off, and whether a task
// removes it. Its errors are those of clean.
func (o *cleaner) mayRemove(ctx context.Context, feature string) error {
	var held []string
	for _, t := range o.features[feature].OnDisable {
		p, err := planned(ctx, o.config.Tasks, t)
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("looking for what feature %s has left: task %s: %w", feature, t.Name, err))
		}
		switch {
		case len(p.Leftovers) == 0:
		case t.Waits:
			held = append(held, waitsFor(p)...)
		default:
			return nil
		}
	}
	// The condition Clean may report that there is something to remove.
	o.finder.expire(feature)
	o.requeue(feature, 0)
	reason := errors.New("nothing is left of the feature")
	if len(held) > 0 {
		reason = fmt.Errorf("nothing may remove from live objects what is left of the feature; delete or replace them: %s", strings.Join(held, "; "))
	}
	return apierrors.NewConflict(v1alpha1.Resource("features"), feature, reason)
}
