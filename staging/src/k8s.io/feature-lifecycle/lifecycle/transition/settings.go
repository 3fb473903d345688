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
	"fmt"
	"time"

	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

// None requests 0 in a field of Settings where 0 makes sense and its zero value means
// the default (OrDefault): Grace and KeepUnknownMinors.
const None = -1

// Settings are the periods of the server flow. Next takes them as they are. OrDefault
// fills in what is left out, and Validate rejects what cannot work.
type Settings struct {
	tracker.Settings
	// Settle is the time that waiting for uses lasts without a contradiction by a user before
	// it ends; 10 seconds by default.
	Settle time.Duration
	// MinBackoff and MaxBackoff bound the pause between two attempts at a task that
	// failed; it doubles with each. They are 1 and 30 seconds by default. MaxBackoff
	// should be less than the minute within which all work continues after a fault (L2).
	MinBackoff, MaxBackoff time.Duration
	// MaxBlockedBackoff is the longest pause of a task that is blocked until an external
	// action; 10 minutes by default. That may take days, and an attempt reads whole
	// collections.
	MaxBlockedBackoff time.Duration
	// KeepUnknownMinors is the number of minor versions for which a Feature is kept that
	// no live process knows; 3 by default. A major version counts as one step, and its
	// minor versions as further ones.
	KeepUnknownMinors int
	// HowToClean is the action that removes leftovers of a feature that is off. It appears
	// in the message of the condition Clean, before "to remove them". By default it is to
	// create the subresource cleanup, which kube-apiserver serves for the features of
	// Kubernetes alone.
	HowToClean string
	// Canary configures when a canary is halted. Each field that is 0 has its default
	// (DefaultCanarySettings).
	Canary CanarySettings
}

// maxHowToClean is the most that HowToClean may have, in bytes.
const maxHowToClean = 512

// DefaultSettings returns the settings of a kube-apiserver without flags.
func DefaultSettings() Settings {
	return Settings{
		Settings:          tracker.DefaultSettings(),
		Settle:            10 * time.Second,
		MinBackoff:        time.Second,
		MaxBackoff:        30 * time.Second,
		MaxBlockedBackoff: 10 * time.Minute,
		KeepUnknownMinors: 3,
		HowToClean:        "create the subresource cleanup",
		Canary:            DefaultCanarySettings(),
	}
}

// OrDefault returns the settings, with the default in place of each that is zero, and
// with 0 in place of None.
func (s Settings) OrDefault() Settings {
	d := DefaultSettings()
	s.Grace = orDefault(s.Grace, d.Grace)
	s.ReportPeriod = cmp.Or(s.ReportPeriod, d.ReportPeriod)
	s.Settle = cmp.Or(s.Settle, d.Settle)
	s.MinBackoff = cmp.Or(s.MinBackoff, d.MinBackoff)
	s.MaxBackoff = cmp.Or(s.MaxBackoff, d.MaxBackoff)
	s.MaxBlockedBackoff = cmp.Or(s.MaxBlockedBackoff, d.MaxBlockedBackoff)
	s.KeepUnknownMinors = orDefault(s.KeepUnknownMinors, d.KeepUnknownMinors)
	s.HowToClean = cmp.Or(s.HowToClean, d.HowToClean)
	s.Canary = s.Canary.OrDefault()
	return s
}

// orDefault returns a value that may be None.
func orDefault[T time.Duration | int](value, whenZero T) T {
	switch value {
	case 0:
		return whenZero
	case None:
		return 0
	default:
		return value
	}
}

// InvalidSetting is a setting that cannot work.
type InvalidSetting struct {
	// Field is the name of the field, for example Settle or Canary.Percent.
	Field string
	// Value is what it has.
	Value any
	// Want is what it has to be, for example "longer than 0".
	Want string
}

// Error names the field, its value, and what is wanted.
func (e *InvalidSetting) Error() string {
	return fmt.Sprintf("%s is %v and has to be %s", e.Field, e.Value, e.Want)
}

// Validate returns an *InvalidSetting for each setting that cannot work. What is left
// out has to be filled in before (OrDefault): of all periods only Grace may be 0.
func (s Settings) Validate() []*InvalidSetting {
	const positive = "longer than 0"
	var invalid []*InvalidSetting
	check := func(ok bool, field string, value any, want string) {
		if !ok {
			invalid = append(invalid, &InvalidSetting{Field: field, Value: value, Want: want})
		}
	}
	check(s.Settle > 0, "Settle", s.Settle, positive+": reports need time to arrive")
	check(s.Grace >= 0, "Grace", s.Grace, "0 or longer")
	check(s.ReportPeriod > 0, "ReportPeriod", s.ReportPeriod, positive+": processes report that they have queried a feature up to a minute later")
	check(s.MinBackoff > 0, "MinBackoff", s.MinBackoff, positive+": a task that fails must not be tried without a pause")
	check(s.MaxBackoff >= s.MinBackoff, "MaxBackoff", s.MaxBackoff, fmt.Sprintf("at least MinBackoff, %s", s.MinBackoff))
	check(s.MaxBlockedBackoff >= s.MinBackoff, "MaxBlockedBackoff", s.MaxBlockedBackoff, fmt.Sprintf("at least MinBackoff, %s", s.MinBackoff))
	check(s.KeepUnknownMinors >= 0, "KeepUnknownMinors", s.KeepUnknownMinors, "0 or more minor versions")
	check(len(s.HowToClean) <= maxHowToClean, "HowToClean", s.HowToClean, fmt.Sprintf("at most %d bytes long: it is in the status of each feature that has left something", maxHowToClean))
	c := s.Canary
	check(c.Count > 0, "Canary.Count", c.Count, "1 or more instances")
	check(c.Percent > 0 && c.Percent <= 100, "Canary.Percent", c.Percent, "from 1 to 100")
	check(c.Factor > 0, "Canary.Factor", c.Factor, "1 or more")
	check(c.Patience > 0, "Canary.Patience", c.Patience, positive)
	check(c.CrashLoop > 0, "Canary.CrashLoop", c.CrashLoop, "1 or more crashes")
	check(c.CrashWindow > 0, "Canary.CrashWindow", c.CrashWindow, positive)
	return invalid
}

// backoff returns the pause after so many attempts, of which the last ended with the
// outcome.
func (s Settings) backoff(attempts int32, outcome Outcome) time.Duration {
	most := s.longest(outcome)
	pause := s.MinBackoff
	for range min(attempts, 30) - 1 {
		if pause *= 2; pause >= most {
			return most
		}
	}
	return pause
}

// longest returns the longest pause after an attempt that ended so.
func (s Settings) longest(outcome Outcome) time.Duration {
	if outcome == Blocked {
		return s.MaxBlockedBackoff
	}
	return s.MaxBackoff
}
