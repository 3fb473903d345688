/*
Copyright 2026 The Kubernetes Authors.

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

// Package rollout decides which value an instance takes from a Feature: the
// requested one, the one from before while a canary leaves the instance out, or
// none (KEP-3920, "Values set centrally, values that change"). It is pure;
// package values is its caller in components, and servers and tools may ask it
// which instances a canary includes.
package rollout

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// Instance is one process.
type Instance struct {
	// Component is the kind of process, for example kubelet.
	Component string
	// Name is its name in reports: the node's name for node components. All
	// components of a node are in a canary together or not at all.
	Name string
}

// Choice is what an instance takes from a Feature.
type Choice struct {
	// Told is false when the Feature says nothing: its control is Local or not
	// known, or nothing is configured.
	Told bool
	// Value is the value to take if Told.
	Value bool
	// Dynamic is true when the value may change while the process runs.
	Dynamic bool
	// Held is true when a rollout leaves the instance out, or when the status
	// does not answer the spec yet, so that Value is the one from before.
	Held bool
}

// Choose decides for one instance. Held is the value that the instance took from
// this Feature last, nil if none.
//
// The requested value is status.configured.value. Instances outside of
// spec.rollout keep the value from before: status.configured.previous, or what
// status.state says. It cannot be the opposite of the requested value: when a
// canary of true over false is called off by asking for false, all instances take
// false.
//
// While spec.enabled says something else than status.configured the server has
// not answered the spec yet, and the rollout in it belongs to the answer that is
// to come: removing the rollout together with the request would otherwise turn
// the feature on everywhere for a moment. The instance keeps what it held.
func Choose(feature *v1alpha1.Feature, instance Instance, held *bool) Choice {
	status := &feature.Status
	dynamic := status.Control == v1alpha1.ControlDynamic
	if (!dynamic && status.Control != v1alpha1.ControlCentral) || status.Configured == nil {
		return Choice{}
	}
	switch before := Previous(status); {
	case Halted(status):
		return kept(before, dynamic)
	case dynamic && unanswered(feature):
		if held == nil {
			held = before
		}
		return kept(held, dynamic)
	case !Includes(limits(feature), feature.Name, instance):
		return kept(before, dynamic)
	}
	return Choice{Told: true, Value: status.Configured.Value, Dynamic: dynamic}
}

// limits is who takes the configured value, nil for all. While there is a canary it
// is the one that the server has observed: the server knows whether the one in the
// spec is for this value. No canary begins while the feature is paused.
func limits(feature *v1alpha1.Feature) *v1alpha1.FeatureRollout {
	if r := feature.Status.Rollout; r != nil && r.Value == feature.Status.Configured.Value {
		return &r.Observed
	}
	if feature.Spec.Paused {
		return nil
	}
	return feature.Spec.Rollout
}

// kept is the choice of an instance that does not take the requested value. If
// nobody knows the one from before, the Feature says nothing.
func kept(value *bool, dynamic bool) Choice {
	if value == nil {
		return Choice{}
	}
	return Choice{Told: true, Value: *value, Dynamic: dynamic, Held: true}
}

// unanswered is true while the status does not say what the spec asks for.
func unanswered(feature *v1alpha1.Feature) bool {
	configured, requested := feature.Status.Configured, feature.Spec.Enabled
	if requested == nil {
		return configured.Source == v1alpha1.SourceAPI
	}
	return configured.Value != *requested
}

// Halted is true when the requested value is that of a canary that was halted.
func Halted(status *v1alpha1.FeatureStatus) bool {
	return status.Rollout != nil && status.Rollout.Halted &&
		status.Configured != nil && status.Configured.Value == status.Rollout.Value
}

// Limits is true when a rollout may leave somebody out; nil leaves out nobody.
func Limits(rollout *v1alpha1.FeatureRollout) bool {
	return rollout != nil && (len(rollout.Components) > 0 || rollout.Percent != nil && *rollout.Percent < 100)
}

// Previous is the value of instances that do not take the requested one: that of
// the feature's last state of rest, nil when that is not known. Configured must
// not be nil.
func Previous(status *v1alpha1.FeatureStatus) *bool {
	if status.Rollout != nil && status.Rollout.Value == status.Configured.Value {
		// A canary knows it also while a version transition hides it.
		before := !status.Rollout.Value
		return &before
	}
	if status.Configured.Previous != nil {
		return status.Configured.Previous
	}
	state := status.State
	if t := status.Transition; t != nil && t.FromState != "" {
		// A version transition leaves the value alone.
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

// Includes says whether a rollout of a feature gives the requested value to an
// instance. Growing the percentage or the list of components never takes it away;
// nil includes everybody.
func Includes(rollout *v1alpha1.FeatureRollout, feature string, instance Instance) bool {
	percent := percentOf(rollout, instance.Component)
	return percent >= 100 || percent > 0 && Bucket(feature, instance.Name) < percent
}

// percentOf is how many of a hundred instances of a component a rollout includes.
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

// Share is which part of a component's instances takes the configured value of a
// feature at the moment, from 0 to 1: a rollout may leave others out. Configured must
// not be nil.
func Share(feature *v1alpha1.Feature, component string) float64 {
	return float64(min(max(percentOf(limits(feature), component), 0), 100)) / 100
}

// Bucket is the place of an instance in rollouts of a feature, from 0 to 99: it
// has the requested value while the percentage is greater. It is the same in all
// versions and after every restart, and differs between features, so that not
// the same instances are always first. The hash is SHA-256 of feature, a zero
// byte and instance; its first 8 bytes, big-endian, modulo 100.
func Bucket(feature, instance string) int32 {
	sum := sha256.Sum256([]byte(feature + "\x00" + instance))
	return int32(binary.BigEndian.Uint64(sum[:8]) % 100)
}
