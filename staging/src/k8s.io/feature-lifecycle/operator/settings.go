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
	"cmp"
	"fmt"
	"time"

	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// None means 0 in Settings.Grace and Settings.KeepUnknownMinors, where 0 itself means
// the default.
const None = transition.None

// Settings configure an operator's server flow, most of them periods. Each field that
// is left out has its default; those of periods are kube-apiserver's. All replicas
// should have the same.
type Settings struct {
	// Settle is the time that no process may report the other value before a transition
	// continues with its tasks. 0 means 10 seconds.
	Settle time.Duration
	// Grace is the time that an unreachable replica (it crashed without deleting its report, or
	// is disconnected) holds a transition. It may still be running, and use the field that
	// a task is about to clear. 0 means 5 minutes; None means that it does not hold.
	Grace time.Duration
	// MinBackoff and MaxBackoff bound the pause between two attempts at a task that
	// failed; it doubles with each. 0 means 1 second and 30 seconds.
	MinBackoff, MaxBackoff time.Duration
	// MaxBlockedBackoff is the longest pause between two attempts at a task that waits
	// for people, which may take days. Each attempt reads whole collections. 0 means 10
	// minutes.
	MaxBlockedBackoff time.Duration
	// KeepUnknownMinors is the number of the operator's minor versions for which a Feature
	// is kept whose gate no replica has any more. 0 means 3; None deletes it with the
	// first minor version that lacks the gate. A major version counts as one step,
	// whatever was the last minor version before it.
	KeepUnknownMinors int
	// HowToClean is, in at most 512 bytes, the action that makes this operator remove
	// (Replica.Clean) the leftovers of a feature that is off. It appears in the message of
	// the condition Clean, before "to remove them". kube-apiserver cleans for the features
	// of Kubernetes alone, so an operator that offers an action names it here. "" means
	// that it offers none: turning a feature on and off again removes its leftovers.
	HowToClean string
	// Canary configures when a canary is halted.
	Canary CanarySettings
}

// CanarySettings configure when a value for a part of the replicas only (spec.rollout)
// is halted automatically. At least Count of those that took it have failed, or all if
// they are fewer; more than Percent percent; and more than Factor times the failed
// share of the others. This has to last for Patience. Each field that is 0 has its
// default.
type CanarySettings struct {
	// Count is the number of replicas that have to have failed. 0 means 2.
	Count int
	// Percent, from 1 to 100, is the share of them that may have failed. 0 means 10.
	Percent int
	// Factor is how much greater than that of the replicas without the value the share may
	// be. 0 means 2.
	Factor int
	// Patience is for how long all that has to be so. 0 means 20 seconds.
	Patience time.Duration
	// CrashLoop is the number of crashes within CrashWindow after which a replica counts
	// as failed although it has returned. 0 means 3.
	CrashLoop int
	// CrashWindow is the time that a crash counts. 0 means 15 minutes.
	CrashWindow time.Duration
}

// onAndOff is the action for cleaning without another way. It is clear under every
// operator, and needs only permission to change the value.
const onAndOff = "turn the feature on and off again, or ask the operator to clean if it offers that,"

// flow returns the settings as controller.Config has them.
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
