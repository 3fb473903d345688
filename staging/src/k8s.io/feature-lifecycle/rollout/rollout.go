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

package rollout

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// Instance is one process.
type Instance struct {
	// Component is the kind of process, for example kubelet.
	Component string
	// Name is the instance's name in reports: the node's name for node components.
	// A canary includes all components of a node or none.
	Name string
}

// Choice is what an instance takes from a Feature.
type Choice struct {
	// Told is false if the Feature specifies no value: its control is Local or
	// unknown, or nothing is configured.
	Told bool
	// Value is the value to take if Told.
	Value bool
	// Dynamic is true if the value may change while the process runs.
	Dynamic bool
	// Held is true if Value is the previous one, because a rollout leaves the instance
	// out, or because the status does not reflect the spec yet.
	Held bool
	// SwitchTime is the moment at which the instance takes the other value, which is the
	// requested one, by itself. It is zero if there is none.
	SwitchTime time.Time
}

// Choose returns what one instance takes at a moment. Held is the value that the instance
// took from this Feature last, nil if none.
//
// The requested value is status.configured.value. Instances outside of spec.rollout keep
// the previous value: status.configured.previous, or the one of status.state. It is not
// simply the opposite of the requested value: when a canary of true over false is aborted
// by a request for false, all instances take false.
//
// While spec.enabled differs from status.configured, the server has not observed the
// spec, and the rollout in it belongs to the status to come. Removing the rollout together
// with the request would otherwise turn the feature on everywhere for a moment. The
// instance keeps the value that it held, unless the status has a canary: that continues.
//
// A moment at which all switch together (spec.rollout.at) counts as the server has accepted
// it, in status.rollout, and from nowhere else: whether it is still to come is decided in
// one place, and by one clock.
func Choose(feature *v1alpha1.Feature, instance Instance, held *bool, now time.Time) Choice {
	status := &feature.Status
	dynamic := status.Control == v1alpha1.ControlDynamic
	if (!dynamic && status.Control != v1alpha1.ControlCentral) || status.Configured == nil {
		return Choice{}
	}
	before := Previous(status)
	if Halted(status) {
		return kept(before, dynamic)
	}
	limit, at, known := limits(feature)
	if !known {
		if held == nil {
			held = before
		}
		return kept(held, dynamic)
	}
	return choose(limit, at, feature.Name, instance, status.Configured.Value, before, dynamic, now)
}

// choose returns what an instance takes of a value that a rollout may limit until a moment,
// nil for none.
func choose(limit *v1alpha1.FeatureRollout, at *metav1.Time, feature string, instance Instance, value bool, before *bool, dynamic bool, now time.Time) Choice {
	if Includes(limit, feature, instance) || at != nil && !now.Before(at.Time) {
		return Choice{Told: true, Value: value, Dynamic: dynamic}
	}
	choice := kept(before, dynamic)
	if at != nil && choice.Told {
		choice.SwitchTime = at.Time
	}
	return choice
}

// limits returns the rollout that limits the configured value, nil for none, and the moment
// until which it does, nil for none. It is not known while the server has not observed the
// spec.
//
// During a canary it is the observed one: only the server knows whether the rollout in the
// spec is for this value. No canary starts while the feature is paused. The moment does not
// count while another value is requested, nor where the server holds it.
func limits(feature *v1alpha1.Feature) (limit *v1alpha1.FeatureRollout, at *metav1.Time, known bool) {
	unanswered := Unobserved(&feature.Spec, &feature.Status)
	r := feature.Status.Rollout
	if r == nil || r.Value != feature.Status.Configured.Value {
		if !feature.Spec.Paused {
			limit = feature.Spec.Rollout
		}
		return limit, nil, !unanswered
	}
	limited := Limits(&r.Observed)
	if limited && !unanswered && !r.MomentHeld {
		at = r.Observed.At
	}
	return &r.Observed, at, limited || !unanswered
}

// kept returns the choice of an instance that does not take the requested value. If the
// previous value is unknown, the Feature specifies none.
func kept(value *bool, dynamic bool) Choice {
	if value == nil {
		return Choice{}
	}
	return Choice{Told: true, Value: *value, Dynamic: dynamic, Held: true}
}

// Unobserved returns true while a status does not reflect the value that a spec requests:
// servers have not answered it yet. Requests count for dynamic features alone.
func Unobserved(spec *v1alpha1.FeatureSpec, status *v1alpha1.FeatureStatus) bool {
	configured := status.Configured
	switch {
	case configured == nil || status.Control != v1alpha1.ControlDynamic:
		return false
	case spec.Enabled == nil:
		return configured.Source == v1alpha1.SourceAPI
	default:
		return configured.Value != *spec.Enabled
	}
}

// Halted returns true if the requested value is that of a halted canary.
func Halted(status *v1alpha1.FeatureStatus) bool {
	return status.Rollout != nil && status.Rollout.Halted &&
		status.Configured != nil && status.Configured.Value == status.Rollout.Value
}

// Limits returns true if a rollout may leave instances out. A nil rollout leaves out none,
// and neither does a moment alone: the server that accepts it says for whom the value is
// until then.
func Limits(rollout *v1alpha1.FeatureRollout) bool {
	return rollout != nil && (len(rollout.Components) > 0 || rollout.Percent != nil && *rollout.Percent < 100)
}

// Previous returns the value of instances that do not take the requested one: the value
// of the feature's last final state, nil if unknown. Configured must not be nil.
func Previous(status *v1alpha1.FeatureStatus) *bool {
	if status.Rollout != nil && status.Rollout.Value == status.Configured.Value {
		// The canary has it also while a version transition hides it.
		before := !status.Rollout.Value
		return &before
	}
	if status.Configured.Previous != nil {
		return status.Configured.Previous
	}
	state := status.State
	if t := status.Transition; t != nil && t.FromState != "" {
		// A version transition does not change the value.
		state = t.FromState
	}
	on, off := true, false
	switch state {
	case v1alpha1.StateOn, v1alpha1.StateTurningOff:
		return &on
	case v1alpha1.StateOff, v1alpha1.StateTurningOn:
		return &off
	}
	return nil
}

// Includes returns true if a rollout of a feature gives the requested value to an
// instance. Growing the percentage or the list of components never takes it away. A nil
// rollout includes all instances.
func Includes(rollout *v1alpha1.FeatureRollout, feature string, instance Instance) bool {
	percent := percentOf(rollout, instance.Component)
	return percent >= 100 || percent > 0 && Bucket(feature, instance.Name) < percent
}

// percentOf returns the percentage of a component's instances that a rollout includes.
func percentOf(rollout *v1alpha1.FeatureRollout, component string) int32 {
	switch {
	case rollout == nil:
		return 100
	case len(rollout.Components) > 0 && !slices.Contains(rollout.Components, component):
		return 0
	case rollout.Percent == nil:
		return 100
	default:
		return *rollout.Percent
	}
}

// Share returns the part of a component's instances that takes the configured value of a
// feature, from 0 to 1, now or at an accepted moment; a rollout may leave others out.
// Configured must not be nil.
func Share(feature *v1alpha1.Feature, component string) float64 {
	limit, at, _ := limits(feature)
	if at != nil {
		return 1
	}
	return shareOf(limit, component)
}

// ShareOf returns the part of a component's instances that takes a published value, from 0
// to 1, now or at the moment that it has.
func ShareOf(value *v1alpha1.FeatureValue, component string) float64 {
	if value.Rollout != nil && value.Rollout.At != nil {
		return 1
	}
	return shareOf(value.Rollout, component)
}

func shareOf(rollout *v1alpha1.FeatureRollout, component string) float64 {
	return float64(min(max(percentOf(rollout, component), 0), 100)) / 100
}

// Bucket returns the place of an instance in rollouts of a feature, from 0 to 99. The
// instance has the requested value while the percentage is greater. The place is the same
// in all versions and after every restart. It differs between features, so that the first
// instances are not always the same. The hash is SHA-256 of feature, a zero byte and
// instance; the bucket is its first 8 bytes, big-endian, modulo 100.
func Bucket(feature, instance string) int32 {
	sum := sha256.Sum256([]byte(feature + "\x00" + instance))
	return int32(binary.BigEndian.Uint64(sum[:8]) % 100)
}
