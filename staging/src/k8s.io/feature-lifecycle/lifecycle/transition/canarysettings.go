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

package transition

import (
	"cmp"
	"time"
)

// CanarySettings configure when a canary is halted: a value that is for a part of the
// instances only (spec.rollout).
//
// It is halted automatically when too many of the instances that took the value have
// failed, for any of the components. That means at least Count of them, or all if the
// canary has fewer; more than Percent percent; and more than Factor times the failed
// share of the instances without the value. This has to last for Patience (KEP-3920,
// "Canaries"). An instance has failed when it crashed or was lost since the canary
// began, or has crashed CrashLoop times within CrashWindow.
//
// While a canary is halted, no instance takes the value, and those that had taken it
// return to the previous one (package rollout). The transition is held. Change
// spec.rollout to resume it, or request the other value to call it off.
type CanarySettings struct {
	// Count is the number of instances of a component that have to have failed.
	Count int
	// Percent is the share of them that may have failed.
	Percent int
	// Factor is how much greater than that of the instances without the value the share
	// may be.
	Factor int
	// Patience is for how long all that has to be so.
	Patience time.Duration
	// CrashLoop is the number of crashes after which an instance counts as failed.
	CrashLoop int
	// CrashWindow is the time that a crash counts.
	CrashWindow time.Duration
}

// DefaultCanarySettings are documented in docs/central-and-dynamic.md.
func DefaultCanarySettings() CanarySettings {
	return CanarySettings{
		Count:   2,
		Percent: 10,
		Factor:  2,
		// Twice the period at which processes renew their Leases: after an outage of
		// everything they return one by one.
		Patience:  20 * time.Second,
		CrashLoop: 3,
		// Three times the longest pause that kubelet makes before it starts a
		// container again.
		CrashWindow: 15 * time.Minute,
	}
}

// OrDefault returns the settings, with the default in place of each that is zero.
func (s CanarySettings) OrDefault() CanarySettings {
	d := DefaultCanarySettings()
	return CanarySettings{
		Count:       cmp.Or(s.Count, d.Count),
		Percent:     cmp.Or(s.Percent, d.Percent),
		Factor:      cmp.Or(s.Factor, d.Factor),
		Patience:    cmp.Or(s.Patience, d.Patience),
		CrashLoop:   cmp.Or(s.CrashLoop, d.CrashLoop),
		CrashWindow: cmp.Or(s.CrashWindow, d.CrashWindow),
	}
}

func (s *step) canarySettings() CanarySettings { return s.settings.Canary.OrDefault() }
