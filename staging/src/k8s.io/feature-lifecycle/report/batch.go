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
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"
)

// features selects what a process reports: everything it knows when all is true
// (servers have to agree on what is configured), otherwise what was asked for or
// set explicitly.
func features(observations []featuregate.Observation, all bool) []v1alpha1.ReportedFeature {
	var result []v1alpha1.ReportedFeature
	for _, o := range observations {
		if !all && !o.Asked && !o.Explicit {
			continue
		}
		result = append(result, v1alpha1.ReportedFeature{
			Name:            o.Name,
			Enabled:         o.Enabled,
			Asked:           o.Asked,
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

// urgency is how soon a difference between what was written and what is
// observed has to be written.
type urgency int

const (
	// unchanged: there is nothing to write.
	unchanged urgency = iota
	// batched: something was asked for the first time; it is written together
	// with what else comes within the period.
	batched
	// immediate: a value changed, or nothing was written yet.
	immediate
)

// compare says how urgent it is to write what is observed. Written is nil
// before the first write.
func compare(written, observed *v1alpha1.FeatureReportSpec) urgency {
	if written == nil {
		return immediate
	}
	old := make(map[string]v1alpha1.ReportedFeature, len(written.Features))
	for _, f := range written.Features {
		old[f.Name] = f
	}
	result := unchanged
	if len(written.Features) != len(observed.Features) || written.EmulationVersion != observed.EmulationVersion {
		result = batched
	}
	for _, f := range observed.Features {
		before, listed := old[f.Name]
		switch {
		case listed && before.Enabled != f.Enabled:
			return immediate
		case before != f:
			result = batched
		}
	}
	return result
}

// due is when a write of the urgency may happen, after the last one.
func due(u urgency, lastWrite time.Time, period time.Duration) time.Time {
	if u == immediate {
		return lastWrite
	}
	return lastWrite.Add(period)
}
