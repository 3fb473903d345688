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
	"math"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/feature-lifecycle/internal/stagger"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/rollout"
	"k8s.io/klog/v2"
)

// assistDelay is the time after which a server that does not lead a feature publishes its
// value. The leader may be a server of a version without FeatureValues.
const assistDelay = 3 * time.Second

// publisher keeps the FeatureValue of each Feature that this server knows: what processes
// follow in place of the Feature. It is written after the status that it is derived from,
// so that no process takes a value before the transition to it is stored (S2). It is
// level-triggered: what a crash between the two writes leaves undone is done by the next
// reconciliation, on any server. It is safe for concurrent use.
type publisher struct {
	*observer
	// stored reads FeatureValues from the cache by their keys.
	stored cache.Store
	// listed is done once the cache is complete. It never is if the server does not have
	// FeatureValues, or does not permit to list them: then nothing is written, and
	// processes follow Features.
	listed cache.DoneChecker
	// refused is true once the server has refused a write, which is logged once.
	refused atomic.Bool

	mu sync.Mutex
	// since is when this server noticed first that a value is not published, by feature.
	since map[string]time.Time
	// answers are the values as this server's last writes left them, by feature, while the
	// cache lags behind.
	answers map[string]answer
}

// answer is what a write left, and when.
type answer struct {
	value *v1alpha1.FeatureValue
	at    time.Time
}

// answerLasts is how long an answer counts: a cache that lacks it for longer may be right,
// as after a restore of the server from a backup.
const answerLasts = time.Minute

func newPublisher(o *observer, stored cache.Store, listed cache.DoneChecker) *publisher {
	return &publisher{observer: o, stored: stored, listed: listed, since: map[string]time.Time{}, answers: map[string]answer{}}
}

// errNotPermitted means that the server did not accept a write of a FeatureValue for a
// reason that only an administrator, or an upgrade, changes.
var errNotPermitted = errors.New("writing a FeatureValue is refused")

// valueWrite is a write that a FeatureValue needs. Have is nil to create it, want to delete it.
type valueWrite struct {
	have, want *v1alpha1.FeatureValue
}

func (w valueWrite) none() bool { return w.have == nil && w.want == nil }

// complete returns true once the cache is complete.
func (p *publisher) complete() bool {
	select {
	case <-p.listed.Done():
		return true
	default:
		return false
	}
}

// pending returns the write that the value of a feature needs. The feature is nil if there
// is none.
func (p *publisher) pending(name string, feature *v1alpha1.Feature) valueWrite {
	if !p.complete() {
		return valueWrite{}
	}
	var cached *v1alpha1.FeatureValue
	// Reading from the cache cannot fail.
	if object, exists, _ := p.stored.GetByKey(p.config.Namespace + "/" + name); exists {
		cached, _ = object.(*v1alpha1.FeatureValue)
	}
	have := p.newest(name, cached)
	if have != nil && have.DeletionTimestamp != nil {
		return valueWrite{}
	}
	if feature == nil {
		return valueWrite{have: have}
	}
	want, known := rollout.ValueOf(feature)
	switch {
	case !known, have == nil && want == nil:
		return valueWrite{}
	case have == nil:
		return valueWrite{want: want}
	case want != nil && rollout.SameValue(have, want), overtaken(feature, have):
		return valueWrite{}
	}
	return valueWrite{have, want}
}

// behind returns true if a value needs a write, as far as the caches show.
func (p *publisher) behind(name string) bool {
	feature, err := p.lister.Get(name)
	if err != nil {
		feature = nil
	}
	if p.pending(name, feature).none() {
		p.forget(name)
		return false
	}
	return true
}

// overtaken returns true if a value was derived from a newer version of its Feature than
// the one given, which is from a cache that lags behind. A value is stored after the
// version that it was derived from: one that claims the opposite is from another cluster,
// by a backup, and does not count.
func overtaken(feature *v1alpha1.Feature, value *v1alpha1.FeatureValue) bool {
	return newerVersion(value.FeatureVersion, feature.ResourceVersion) && !newerVersion(value.FeatureVersion, value.ResourceVersion)
}

// newerVersion returns true if a resource version is newer than another. Versions that
// cannot be compared are not.
func newerVersion(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0
}

// publish writes the value of a feature that this server leads if it has changed. Instances
// are those that use the feature. A feature that is nil is not stored.
func (p *publisher) publish(ctx context.Context, name string, feature *v1alpha1.Feature, instances []tracker.Instance) error {
	needed := p.pending(name, feature)
	p.forget(name)
	if needed.none() {
		return nil
	}
	return p.write(ctx, name, needed, instances)
}

// assist writes the value of a feature that another server leads if that one has not done
// so for assistDelay. After is when to look again, 0 for never.
func (p *publisher) assist(ctx context.Context, name string, feature *v1alpha1.Feature, instances []tracker.Instance, now time.Time) (after time.Duration, err error) {
	needed := p.pending(name, feature)
	if needed.none() {
		p.forget(name)
		return 0, nil
	}
	if after = p.noticed(name, now).Add(assistDelay).Sub(now); after > 0 {
		return after, nil
	}
	klog.FromContext(ctx).V(2).Info("Publishing the value of a feature whose leader does not", "feature", klog.KRef(p.config.Namespace, name))
	return 0, p.write(ctx, name, needed, instances)
}

// newest returns the value as this server left it if the cache does not have that yet, and
// else the cached one, nil for none.
func (p *publisher) newest(name string, cached *v1alpha1.FeatureValue) *v1alpha1.FeatureValue {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.answers[name]
	switch {
	case !ok:
		return cached
	case cached != nil && last.value.UID == cached.UID && newerVersion(last.value.ResourceVersion, cached.ResourceVersion) &&
		p.config.Clock.Since(last.at) < answerLasts:
		return last.value
	}
	delete(p.answers, name)
	return cached
}

// answered records what a write left.
func (p *publisher) answered(name string, value *v1alpha1.FeatureValue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[name] = answer{value, p.config.Clock.Now()}
}

// noticed returns when this server noticed that a value is not published: now, if it did
// not before.
func (p *publisher) noticed(name string, now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	since, ok := p.since[name]
	if !ok {
		since = now
		p.since[name] = now
	}
	return since
}

func (p *publisher) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.since, name)
}

// write makes the change. What was read goes with it, so that a change by another server is
// not overwritten.
func (p *publisher) write(ctx context.Context, name string, needed valueWrite, instances []tracker.Instance) (err error) {
	values := p.config.Client.FeaturesV1alpha1().FeatureValues(p.config.Namespace)
	verb := "creating"
	switch {
	case needed.want == nil:
		verb = "deleting"
		if err = p.mayDelete(ctx, name, needed.have); err == nil {
			err = values.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &needed.have.UID, ResourceVersion: &needed.have.ResourceVersion}})
			p.count("delete", err)
		}
		if apierrors.IsNotFound(err) || errors.Is(err, errStillSpecified) {
			err = nil
		}
	case needed.have == nil:
		value := needed.want
		value.ReportWithinSeconds = stagger.Seconds(takers(value, instances))
		if p.config.Owner != nil {
			value.OwnerReferences = []metav1.OwnerReference{*p.config.Owner}
		}
		_, err = values.Create(ctx, value, metav1.CreateOptions{})
		p.count("create", err)
		// Another server may have been faster; the watch brings the object.
		if apierrors.IsAlreadyExists(err) {
			err = nil
		}
	default:
		verb = "changing"
		value := needed.want
		value.ObjectMeta, value.ReportWithinSeconds = *needed.have.ObjectMeta.DeepCopy(), stagger.Seconds(takers(value, instances))
		if value, err = values.Update(ctx, value, metav1.UpdateOptions{}); err == nil {
			p.answered(name, value)
		}
		p.count("update", err)
	}
	switch {
	case err == nil:
		p.forget(name)
		return nil
	case backoff.IsForbidden(err), backoff.IsAPINotServed(err):
		if p.refused.CompareAndSwap(false, true) && ctx.Err() == nil {
			klog.FromContext(ctx).Info("Values of features are not published, will retry; processes follow Features instead, which costs the server more", "namespace", p.config.Namespace, "err", err)
		}
		err = fmt.Errorf("%w: %w", errNotPermitted, err)
	}
	return fmt.Errorf("%s the value of feature %s: %w", verb, name, err)
}

// Results of writes of FeatureValues, for the metric.
const (
	resultDone      = "Done"
	resultConflict  = "Conflict"
	resultMissing   = "Missing"
	resultForbidden = "Forbidden"
	resultFailed    = "Failed"
)

// count counts a write by the answer to it.
func (p *publisher) count(verb string, err error) {
	result := resultFailed
	switch {
	case err == nil:
		result = resultDone
	case backoff.IsForbidden(err):
		result = resultForbidden
	case backoff.IsAPINotServed(err):
		result = resultMissing
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		result = resultConflict
	}
	valueWritesTotal.WithLabelValues(p.config.Namespace, verb, result).Inc()
}

// errStillSpecified means that a Feature specifies a value after all.
var errStillSpecified = errors.New("the Feature specifies a value")

// mayDelete reads from the API whether a Feature specifies no value, as the cache has it:
// the cache of Features may lag behind that of values. It happens rarely.
func (p *publisher) mayDelete(ctx context.Context, name string, have *v1alpha1.FeatureValue) error {
	feature, err := p.config.Client.FeaturesV1alpha1().Features(p.config.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		// Without a Feature nothing specifies a value.
		return ignoreNotFound(err)
	}
	if want, known := rollout.ValueOf(feature); !known || want != nil || overtaken(feature, have) {
		return errStillSpecified
	}
	return nil
}

// ignoreNotFound returns nil for an object that is not there, and not for an API that is
// not.
func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) && !backoff.IsAPINotServed(err) {
		return nil
	}
	return err
}

// takers returns how many processes change their value with a FeatureValue, or the moment
// for which they wait, and report that. Instances that have it set explicitly do not.
func takers(value *v1alpha1.FeatureValue, instances []tracker.Instance) int {
	told := ""
	if value.Rollout != nil && value.Rollout.At != nil {
		told = value.Rollout.At.UTC().Format(time.RFC3339)
	}
	users := 0.0
	for _, i := range instances {
		if !i.Reported || !i.Alive || i.Potential || i.Explicit {
			continue
		}
		share := rollout.ShareOf(value, i.Component)
		switch {
		case told == "" && i.SwitchTime != "":
			// It waits for a moment no longer.
			users += float64(i.Count())
		case i.Enabled != value.Value:
			users += share * float64(i.Count())
		case value.Previous != nil && *value.Previous != i.Enabled:
			// A rollout that shrinks takes the value from some.
			users += (1 - share) * float64(i.Count())
		}
	}
	return int(math.Ceil(users))
}
