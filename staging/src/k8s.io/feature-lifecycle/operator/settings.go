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

package operator

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// None asks for 0 in Settings.Grace and Settings.KeepUnknownMinors, where 0 itself means
// the default.
const None = transition.None

// Settings are what can be set of an operator's server flow, most of it periods. Each
// field that is left out has its default; those of periods are kube-apiserver's. All
// replicas should have the same.
type Settings struct {
	// Settle is how long no process may report the other value before a transition goes on
	// to its tasks. 0 means 10 seconds.
	Settle time.Duration
	// Grace is how long a replica that cannot be reached any more (it died without
	// taking its report away, or is cut off) holds a transition. It may still be at
	// work, and use the field that a task is about to clear. 0 means 5 minutes; None
	// means that nobody waits for it.
	Grace time.Duration
	// MinBackoff and MaxBackoff bound the pause between two attempts at a task that
	// failed; it doubles with each. 0 means 1 second and 30 seconds.
	MinBackoff, MaxBackoff time.Duration
	// MaxBlockedBackoff is the longest pause between two attempts at a task that waits
	// for people, which may take days. Each attempt reads whole collections. 0 means 10
	// minutes.
	MaxBlockedBackoff time.Duration
	// KeepUnknownMinors is for how many of the operator's minor versions a Feature is
	// kept whose gate no replica has any more. 0 means 3; None deletes it with the first
	// minor version that lacks the gate. A major version counts as one step, whatever was
	// the last minor version before it.
	KeepUnknownMinors int
	// HowToClean says, in at most 512 bytes, what people do to have this operator clean
	// (Replica.Clean) what a feature that is off has left. It stands in the message of the
	// condition Clean, before "to remove them". kube-apiserver cleans for the features of
	// Kubernetes alone, so an operator that offers something says here what it is. "" means
	// that it offers nothing: turning a feature on and off again removes its leftovers.
	HowToClean string
	// Canary says when a canary is halted.
	Canary CanarySettings
}

// CanarySettings say when a value that goes to a part of the replicas only
// (spec.rollout) is halted by itself: when at least Count of those that took it are gone,
// or all if they are fewer, and more than Percent percent, and more than Factor times the
// share that is gone of the others; and that stays so for Patience. Each field that is 0
// has its default.
type CanarySettings struct {
	// Count is how many replicas have to be gone. 0 means 2.
	Count int
	// Percent, from 1 to 100, is the share of them that may be gone. 0 means 10.
	Percent int
	// Factor is how much greater than that of the replicas without the value the share
	// may be. 0 means 2.
	Factor int
	// Patience is for how long all that has to be so. 0 means 20 seconds.
	Patience time.Duration
	// CrashLoop is after how many crashes within CrashWindow a replica counts as gone
	// although it has come back. 0 means 3.
	CrashLoop int
	// CrashWindow is how long a crash counts. 0 means 15 minutes.
	CrashWindow time.Duration
}

// onAndOff is what people do to clean who have no other way. It clears under every
// operator, and takes those who may change the value and nobody else.
const onAndOff = "turn the feature on and off again, or ask the operator to clean if it offers that,"

// flow are the settings as controller.Config has them.
func (s Settings) flow() transition.Settings {
	return transition.Settings{
		// How late replicas report is part of the protocol (v1alpha1.ReportPeriod). No
		// instance is expected that has never reported.
		Settings:          tracker.Settings{Grace: s.Grace},
		Settle:            s.Settle,
		MinBackoff:        s.MinBackoff,
		MaxBackoff:        s.MaxBackoff,
		MaxBlockedBackoff: s.MaxBlockedBackoff,
		KeepUnknownMinors: s.KeepUnknownMinors,
		HowToClean:        cmp.Or(s.HowToClean, onAndOff),
		Canary:            transition.CanarySettings(s.Canary),
	}
}

// validate returns what in the settings cannot work.
func (s Settings) validate() (errs []error) {
	for _, invalid := range s.flow().OrDefault().Validate() {
		errs = append(errs, fmt.Errorf("Settings.%w; leave it out for the default", invalid))
	}
	return errs
}
