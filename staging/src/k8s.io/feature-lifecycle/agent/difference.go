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
	"math/rand/v2"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/feature-lifecycle/internal/stagger"
)

// features selects what a process reports: all that it knows if all is true, since servers
// have to agree on the configured values, and otherwise what was queried or set explicitly.
func features(observations []featuregate.Observation, all bool) []v1alpha1.ReportedFeature {
	var result []v1alpha1.ReportedFeature
	for _, o := range observations {
		if !all && !o.Queried && !o.Explicit {
			continue
		}
		switchTime := ""
		if !o.SwitchTime.IsZero() {
			switchTime = o.SwitchTime.UTC().Format(time.RFC3339)
		}
		result = append(result, v1alpha1.ReportedFeature{
			Name:            o.Name,
			Enabled:         o.Enabled,
			Queried:         o.Queried,
			Explicit:        o.Explicit,
			Stage:           o.Stage,
			Default:         o.Default,
			LockedToDefault: o.LockedToDefault,
			Control:         o.Control,
			Overridden:      o.Overridden,
			SwitchTime:      switchTime,
		})
	}
	return result
}

// firstDelay returns the pause before the first report.
func (r *Reporter) firstDelay() time.Duration {
	switch {
	case r.config.ListAll:
		// Servers are few, and other processes wait for the values that they configure.
		return 0
	case r.config.NodeName != "" && r.config.Throttled != nil && r.config.Throttled():
		// A server that is busy with thousands accepts few reports. Rejecting the others
		// again and again keeps it busy.
		return backoff.ThrottleStartDelay()
	default:
		return backoff.Jitter(startJitter)
	}
}

// difference is the part of an observation that is not written.
type difference struct {
	// values are the features whose value changed, or the moment at which it changes. They are reported at once, or after
	// the delay that paces the reports of peers.
	values []string
	// other is true if anything else differs, such as a feature that was queried for the
	// first time. It is written with whatever else changes within v1alpha1.ReportPeriod.
	other bool
}

// none returns true if there is nothing to write.
func (d difference) none() bool { return len(d.values) == 0 && !d.other }

// compare returns how the observed spec differs from the written one.
func compare(written, observed *v1alpha1.FeatureReportSpec) (d difference) {
	old := make(map[string]v1alpha1.ReportedFeature, len(written.Features))
	for _, f := range written.Features {
		old[f.Name] = f
	}
	d.other = len(written.Features) != len(observed.Features) || written.EmulationVersion != observed.EmulationVersion
	for _, f := range observed.Features {
		before, listed := old[f.Name]
		if listed && (before.Enabled != f.Enabled || before.SwitchTime != f.SwitchTime) {
			d.values = append(d.values, f.Name)
			// Overridden changes with the value.
			before.Enabled, before.Overridden, before.SwitchTime = f.Enabled, f.Overridden, f.SwitchTime
		}
		d.other = d.other || before != f
	}
	return d
}

// delayOf returns how long a difference still has to wait, 0 for none.
func (r *Reporter) delayOf(d difference, now time.Time) time.Duration {
	if d.none() {
		r.reportAt, r.due = nil, time.Time{}
		return 0
	}
	switch {
	case !d.other:
		r.due = time.Time{}
	case !r.due.IsZero():
		// Later differences do not postpone it.
	case now.Before(r.lastWrite.Add(v1alpha1.ReportPeriod)):
		r.due = r.lastWrite.Add(v1alpha1.ReportPeriod + backoff.Jitter(batchJitter))
	case len(d.values) > 0:
		// Processes that get a value together may query the same features together. The
		// server flow expects that within ReportPeriod and some seconds.
		r.due = now.Add(v1alpha1.MaxReportDelay)
	default:
		r.due = now
	}
	at := r.firstReportAt(d.values, now)
	if at.IsZero() || d.other && r.due.Before(at) {
		at = r.due
	}
	return at.Sub(now)
}

// firstReportAt returns when to report the first of the changed values, zero without any.
// One of few peers of a feature does not wait for the many peers of another one.
func (r *Reporter) firstReportAt(values []string, now time.Time) (first time.Time) {
	if len(r.reportAt) == 0 {
		r.fraction = rand.Float64()
	}
	before := r.reportAt
	r.reportAt = make(map[string]time.Time, len(values))
	for _, feature := range values {
		at, known := before[feature]
		if !known {
			at = now
			// Servers have to agree, and do not wait.
			if r.config.Peers != nil && !r.config.ListAll {
				at = now.Add(stagger.Delay(r.config.Peers(feature), r.fraction))
			}
		}
		r.reportAt[feature] = at
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}
