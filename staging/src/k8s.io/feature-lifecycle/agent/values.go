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

package agent

import (
	"context"
	"maps"
	"slices"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/feature-lifecycle/rollout"
	"k8s.io/klog/v2"
)

const (
	// valuesPatience is how long FeatureValues may lack, or contradict, what the last list
	// has, before the process follows Features as well. A value is published right after
	// the Feature that it is derived from; in a cluster with servers of a version without
	// FeatureValues it takes some seconds. Thousands of processes with two watches would
	// cost a busy server more than values that come late.
	valuesPatience = 30 * time.Second
	// valuesRefusedPause is the longest pause after a server did not have FeatureValues, or
	// did not permit to read them. The first is valuesFirstPause: a server that has just
	// started refuses for a moment what it permits once it knows its roles.
	valuesFirstPause, valuesRefusedPause = 5 * time.Second, 10 * time.Minute
)

// manageWatch opens the watch of dynamic values when there are some, and closes it when
// there are none. Features are watched in place of values that the server does not have.
func (s *Syncer) manageWatch(ctx context.Context) {
	wanted := s.listed != nil && s.config.AlwaysWatch
	for _, feature := range s.listed {
		wanted = wanted || feature.Status.Control == v1alpha1.ControlDynamic
	}
	s.manageValueWatch(ctx, wanted)
	features := wanted && !s.valuesSuffice(ctx)
	switch {
	case features && s.watch == nil:
		s.watch = startWatch(ctx, s.client, s.config.Namespace)
	case !features && s.watch != nil:
		s.watch.stop()
		s.watch = nil
	}
}

func (s *Syncer) manageValueWatch(ctx context.Context, wanted bool) {
	// A filter decides by what only Features have. Few processes have one.
	wanted = wanted && s.config.Filter == nil
	now := s.config.Clock.Now()
	refused := s.valueWatch != nil && s.valueWatch.refused.Load()
	switch {
	case refused:
		if s.refusals++; s.refusals == 1 {
			s.refusedSince = now
		}
		s.refusedLast = now
		s.valuesAfter = now.Add(shorten(backoff.Exponential(s.refusals, valuesFirstPause, valuesRefusedPause)))
		if end := s.refusedSince.Add(valuesPatience); now.Before(end) {
			s.valuesAfter = earlier(s.valuesAfter, end)
		}
	case s.valueWatch.complete():
		s.valuesServed, s.refusals, s.refusedSince = true, 0, time.Time{}
	}
	switch {
	case s.valueWatch != nil && (refused || !wanted):
		s.valueWatch.stop()
		s.valueWatch = nil
	case s.valueWatch == nil && wanted && !now.Before(s.valuesAfter):
		s.valueWatch = startValueWatch(ctx, s.client, s.config.Namespace)
	}
	if s.valuesWanted = wanted; !wanted {
		s.valuesServed, s.refusals, s.refusedSince, s.valuesAfter = false, 0, time.Time{}, time.Time{}
	}
}

// refused returns true while the server refuses to let this process watch values. One that
// did let it before may do so again in a moment, and is asked again when that is over.
func (s *Syncer) refused() bool {
	return s.refusals > 0 && (!s.valuesServed || !s.refusedLast.Before(s.refusedSince.Add(valuesPatience)))
}

// valuesSuffice returns true if the process need not watch Features: it watches their
// values, and these are what the last list has, or were it a moment ago. While it is not
// known yet what values there are, the process watches what it watched before.
func (s *Syncer) valuesSuffice(ctx context.Context) bool {
	if !s.valueWatch.complete() {
		s.behindSince = time.Time{}
		switch {
		case s.watch != nil, !s.valuesWanted:
			return false
		case s.refused():
			klog.FromContext(ctx).V(2).Info("Following Features, since the server does not have FeatureValues or does not permit to read them", "component", s.config.Component)
			return false
		}
		return true
	}
	behind := s.behind()
	if len(behind) == 0 {
		s.behindSince, s.unpublished = time.Time{}, nil
		return true
	}
	if s.watch != nil {
		return false
	}
	now := s.config.Clock.Now()
	if s.behindSince.IsZero() {
		s.behindSince = now
	}
	if now.Before(s.behindSince.Add(valuesPatience)) {
		return true
	}
	s.unpublished = behind
	klog.FromContext(ctx).V(2).Info("Following Features, since a server does not publish their values", "component", s.config.Component, "features", slices.Sorted(maps.Keys(behind)))
	return false
}

// behind returns the dynamic features of the last list whose values are missing or
// outdated, with the versions that these were derived from.
func (s *Syncer) behind() map[string]string {
	s.takeValues()
	behind := map[string]string{}
	for name, feature := range s.listed {
		if feature.Status.Control != v1alpha1.ControlDynamic {
			continue
		}
		value := s.values[name]
		version, unpublished := s.unpublished[name]
		switch want, known := rollout.ValueOf(feature); {
		case known && want == nil:
			// The Feature specifies none.
		case value == nil:
			behind[name] = ""
		case known && newer(feature.ResourceVersion, value.FeatureVersion) && !rollout.SameValue(want, value), unpublished && version == value.FeatureVersion:
			// That the Feature returns to a value that was published before does not show that
			// its values are published again.
			behind[name] = value.FeatureVersion
		}
	}
	return behind
}

// takeValues takes the values that are watched. One that left the watch stays until a new
// list.
func (s *Syncer) takeValues() {
	for name, value := range s.valueWatch.values() {
		if s.values == nil {
			s.values = map[string]*v1alpha1.FeatureValue{}
		}
		s.values[name] = value
		// Lists must not be older than what they are compared with. A value is stored after
		// the Feature that it was derived from: one that claims the opposite is from another
		// cluster, by a backup.
		if newer(value.FeatureVersion, s.version) && !newer(value.FeatureVersion, value.ResourceVersion) {
			s.version = value.FeatureVersion
		}
	}
}

// valueOf returns the FeatureValue of a feature if it is not older than what the last list
// has of the feature, else nil.
func (s *Syncer) valueOf(name string) *v1alpha1.FeatureValue {
	value := s.values[name]
	if value == nil {
		return nil
	}
	if feature := s.listed[name]; feature != nil {
		if newer(feature.ResourceVersion, value.FeatureVersion) {
			return nil
		}
	} else if !newer(value.FeatureVersion, s.listVersion) {
		// The list lacks the feature, which specifies no value any more.
		return nil
	}
	return value
}

// choose returns what this process takes from a feature at a moment.
func (s *Syncer) choose(name string, instance rollout.Instance, now time.Time) rollout.Choice {
	if value := s.valueOf(name); value != nil {
		return rollout.ChooseValue(value, instance, now)
	}
	feature := s.listed[name]
	if feature == nil || s.config.Filter != nil && !s.config.Filter(feature) {
		return rollout.Choice{}
	}
	var held *bool
	if before, ok := s.chosen[name]; ok {
		held = &before.Value
	}
	return rollout.Choose(feature, instance, held, now)
}

// stopWatches ends all watches and forgets what they brought.
func (s *Syncer) stopWatches() {
	s.watch.stop()
	s.valueWatch.stop()
	s.watch, s.valueWatch, s.values, s.unpublished, s.behindSince = nil, nil, nil, nil, time.Time{}
}
