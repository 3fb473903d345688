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

package report

import (
	"math/rand/v2"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/feature-lifecycle/internal/stagger"
)

// features selects what a process reports: everything it knows when all is true
// (servers have to agree on what is configured), otherwise what was asked for or
// set explicitly.
func features(observations []featuregate.Observation, all bool) []v1alpha1.ReportedFeature {
	var result []v1alpha1.ReportedFeature
	for _, o := range observations {
		if !all && !o.Queried && !o.Explicit {
			continue
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
		})
	}
	return result
}

// firstWait is after which time the first report is written.
func (r *Reporter) firstWait() time.Duration {
	switch {
	case r.config.ListAll:
		// Servers are few, and others wait for what they configure.
		return 0
	case r.config.NodeName != "" && r.config.Crowded != nil && r.config.Crowded():
		// A server that is busy with thousands takes few reports, and turns the others
		// away again and again, which keeps it busy.
		return backoff.ThrottleStartDelay()
	default:
		return backoff.Jitter(startJitter)
	}
}

// difference is what is observed and was not written.
type difference struct {
	// values are the features whose value changed. That is reported at once, or as
	// soon as it is the process's turn.
	values []string
	// other is true when something else differs: something was asked for the first
	// time, say. It is written together with what else comes within the period.
	other bool
}

// none is true when there is nothing to write.
func (d difference) none() bool { return len(d.values) == 0 && !d.other }

// compare says how what is observed differs from what was written.
func compare(written, observed *v1alpha1.FeatureReportSpec) (d difference) {
	old := make(map[string]v1alpha1.ReportedFeature, len(written.Features))
	for _, f := range written.Features {
		old[f.Name] = f
	}
	d.other = len(written.Features) != len(observed.Features) || written.EmulationVersion != observed.EmulationVersion
	for _, f := range observed.Features {
		before, listed := old[f.Name]
		if listed && before.Enabled != f.Enabled {
			d.values = append(d.values, f.Name)
			// Whether it differs from the process's own goes with it.
			before.Enabled, before.Overridden = f.Enabled, f.Overridden
		}
		d.other = d.other || before != f
	}
	return d
}

// postponed is for how long a difference has to wait still, 0 without one.
func (r *Reporter) postponed(d difference, now time.Time) time.Duration {
	if d.none() {
		r.turns, r.due = nil, time.Time{}
		return 0
	}
	switch {
	case !d.other:
		r.due = time.Time{}
	case !r.due.IsZero():
		// It is not put off by what comes later.
	case now.Before(r.lastWrite.Add(Period)):
		r.due = r.lastWrite.Add(Period + backoff.Jitter(batchJitter))
	case len(d.values) > 0:
		// Those who get a value together may ask for the same together. The server
		// flow counts on hearing of that within Period, and some seconds.
		r.due = now.Add(v1alpha1.MaxReportDelay)
	default:
		r.due = now
	}
	at := r.turn(d.values, now)
	if at.IsZero() || d.other && r.due.Before(at) {
		at = r.due
	}
	return at.Sub(now)
}

// turn is when it is this process's turn to report the first of the values that
// changed, zero without any. Who is one of few does not wait behind a crowd that got
// another value.
func (r *Reporter) turn(values []string, now time.Time) (first time.Time) {
	if len(r.turns) == 0 {
		r.place = rand.Float64()
	}
	before := r.turns
	r.turns = make(map[string]time.Time, len(values))
	for _, feature := range values {
		at, drawn := before[feature]
		if !drawn {
			at = now
			// Servers have to agree, and wait for nobody.
			if r.config.Peers != nil && !r.config.ListAll {
				at = now.Add(stagger.Delay(r.config.Peers(feature), r.place))
			}
		}
		r.turns[feature] = at
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}
