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
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/klog/v2"
)

// reconciler reconciles the features that this server leads.
type reconciler struct {
	*observer
	queue  *featureQueue
	values *publisher
	// shown is what metrics show.
	shown *shownFeatures
}

// sync reconciles one feature: gather, decide, commit.
func (r *reconciler) sync(ctx context.Context, name string) error {
	now := r.config.Clock.Now()
	view := r.gather(name, now)
	feature, err := r.lister.Get(name)
	if !r.leads(name, view.Servers) {
		r.drop(name)
		return r.assist(ctx, name, feature, view, now)
	}
	r.led.take(name, now)
	if apierrors.IsNotFound(err) {
		r.drop(name)
		if transition.ShouldCreate(view) {
			// Its value stays: processes need not notice that it was deleted.
			return r.createFeature(ctx, name)
		}
		return r.values.publish(ctx, name, nil, nil)
	}
	if err != nil {
		return err
	}
	if feature.DeletionTimestamp != nil {
		r.drop(name)
		return nil
	}
	if attempt := r.runner.attempt(name); attempt != nil && attempt.Orphaned(feature) {
		r.runner.stop(name)
		view.Attempt = nil
	}
	if feature.Status.State != v1alpha1.StateOff {
		// The request for a cleanup writes its beginning, on any server: earlier findings do
		// not show what is left after it.
		r.finder.forgetLeftovers(name)
		view.Leftovers = r.finder.result(name)
	}
	decision := transition.Next(feature, view, r.config.Settings, now)
	if decision.Delete {
		return r.remove(ctx, feature)
	}
	if decision.Hold {
		r.runner.stop(name)
	}
	stored, err := r.commit(ctx, feature, decision)
	if isConflict(err) {
		return err
	}
	if err != nil {
		// Processes follow what is stored, whatever becomes of the next status.
		return errors.Join(err, r.values.publish(ctx, name, feature, view.Instances))
	}
	// The status is stored. What else follows from it does not wait for processes.
	published := r.values.publish(ctx, name, stored, view.Instances)
	r.shown.set(name, &stored.Status, view.Leftovers)
	if decision.Start != "" {
		r.start(ctx, stored, decision.Start)
	}
	if next := r.look(ctx, &stored.Status, r.features[name]); next > 0 {
		r.queue.AddAfter(name, next)
	}
	if decision.RequeueAfter > 0 {
		r.queue.addDue(name, decision.RequeueAfter)
	}
	return published
}

// assist publishes the value of a feature that another server leads if that one does not.
func (r *reconciler) assist(ctx context.Context, name string, feature *v1alpha1.Feature, view transition.View, now time.Time) error {
	after, err := r.values.assist(ctx, name, feature, view.Instances, now)
	if after > 0 {
		r.queue.AddAfter(name, after)
	}
	return err
}

// look starts a search for leftovers, and an inspection of the declaration, when that
// is due, and returns when it is due again, 0 for not before the state changes.
func (r *reconciler) look(ctx context.Context, status *v1alpha1.FeatureStatus, feature lifecycle.Feature) time.Duration {
	switch status.State {
	case v1alpha1.StateOff:
		if len(feature.OnDisable) > 0 {
			return r.finder.refresh(ctx, feature)
		}
	case v1alpha1.StateOn:
	default:
		return 0
	}
	return r.finder.inspect(ctx, feature)
}

// drop ends what this server does for a feature, and forgets it.
func (r *reconciler) drop(name string) {
	r.runner.stop(name)
	r.finder.forget(name)
	r.led.forget(name)
	r.shown.forget(name)
}

// createFeature creates the Feature of a gate that live processes know.
func (r *reconciler) createFeature(ctx context.Context, name string) error {
	feature := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: r.config.Namespace, Name: name}}
	if r.config.Owner != nil {
		feature.OwnerReferences = []metav1.OwnerReference{*r.config.Owner}
	}
	_, err := r.config.Client.FeaturesV1alpha1().Features(r.config.Namespace).Create(ctx, feature, metav1.CreateOptions{})
	// Another server may have been faster; the watch brings the object.
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating feature %s: %w", name, err)
	}
	return nil
}

func (r *reconciler) remove(ctx context.Context, feature *v1alpha1.Feature) error {
	klog.FromContext(ctx).Info("Deleting a feature that no process knows any more", "feature", klog.KObj(feature), "version", feature.Status.Version)
	err := r.config.Client.FeaturesV1alpha1().Features(feature.Namespace).Delete(ctx, feature.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &feature.UID, ResourceVersion: &feature.ResourceVersion},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting unknown feature %s: %w", feature.Name, err)
	}
	r.led.forget(feature.Name)
	r.shown.forget(feature.Name)
	return nil
}

// commit stores the decided status if it differs from the stored one. The
// resourceVersion of what was read goes with it, so that a decision made on an
// old picture is refused.
func (r *reconciler) commit(ctx context.Context, feature *v1alpha1.Feature, decision transition.Decision) (*v1alpha1.Feature, error) {
	if equality.Semantic.DeepEqual(feature.Status, decision.Status) {
		return feature, nil
	}
	update := feature.DeepCopy()
	update.Status = decision.Status
	stored, err := r.config.Client.FeaturesV1alpha1().Features(feature.Namespace).UpdateStatus(ctx, update, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("storing the status of feature %s: %w", feature.Name, err)
	}
	if stored.Status.State != feature.Status.State {
		r.finder.forget(feature.Name)
		if t := feature.Status.Transition; t != nil && stored.Status.Transition == nil {
			transitionSeconds.WithLabelValues(feature.Namespace, string(stored.Status.State)).Observe(r.config.Clock.Since(t.StartTime.Time).Seconds())
		}
		klog.FromContext(ctx).Info("Feature changed state", "feature", klog.KObj(feature), "from", feature.Status.State, "to", stored.Status.State)
	}
	if transition.Differs(&feature.Status) && !transition.Differs(&stored.Status) {
		// An instance with the other value may have stored what turning off had removed; one
		// kube-apiserver is enough.
		r.finder.forget(feature.Name)
	}
	if attempt := r.runner.attempt(feature.Name); attempt != nil && attempt.Orphaned(stored) {
		r.runner.stop(feature.Name)
	}
	for _, event := range decision.Events {
		kind := corev1.EventTypeNormal
		if event.Warning {
			kind = corev1.EventTypeWarning
		}
		if event.Reason == transition.EventMisdeclared {
			// Its author reads the log.
			klog.FromContext(ctx).Error(nil, "Feature does not fit the server", "feature", klog.KObj(stored), "problem", event.Message)
		}
		r.config.Recorder.Event(stored, kind, event.Reason, event.Message)
	}
	return stored, nil
}

// start begins an attempt at a task. The status that has it as begun is stored.
func (r *reconciler) start(ctx context.Context, feature *v1alpha1.Feature, name string) {
	t, ok := r.features.taskOf(feature, name)
	if !ok {
		return
	}
	first, id := feature.Status.Tasks[0], feature.Status.Transition.ID
	var previous transition.Outcome
	if transition.SaysBlocked(feature) {
		previous = transition.Blocked
	}
	r.runner.start(ctx, t, task.Attempt{
		Feature:      feature.Name,
		TransitionID: id,
		Last:         task.Progress{Done: first.Done, Total: first.Total, Checkpoint: first.Checkpoint},
		Check:        func(ctx context.Context) error { return r.stillWanted(ctx, feature.Name, id) },
	}, previous)
}

// stillWanted reads from the API whether a transition is under way. This process's
// cache may be stale.
func (r *reconciler) stillWanted(ctx context.Context, name, transitionID string) error {
	feature, err := r.config.Client.FeaturesV1alpha1().Features(r.config.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("reading whether the transition of %s is still wanted: %w", name, err)
	case feature.Status.Transition == nil || feature.Status.Transition.ID != transitionID:
		return fmt.Errorf("transition %s of %s has ended or was replaced", transitionID, name)
	case feature.Spec.Paused:
		return fmt.Errorf("%s is paused", name)
	}
	return nil
}

func isConflict(err error) bool { return apierrors.IsConflict(err) }
