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

package values

import (
	"context"
	"maps"
	"slices"
	"sync"

	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/klog/v2"
)

const subsystem = "feature_lifecycle"

var (
	remoteValues = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem:      subsystem,
		Name:           "remote_values",
		Help:           "1 for each feature that is set centrally, by why this process uses the value (InEffect) or does not: Outdated, ExplicitlySet, Unknown, Locked, KeptLocal, DependencyViolated, QueriedBefore.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"feature", "reason"})

	remoteValuesOrigin = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem:      subsystem,
		Name:           "remote_values_origin",
		Help:           "1 for where this process has the values of features from that are set centrally: Server, File or None.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"origin"})
)

// registerMetrics registers them once: a process has one registry.
var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(remoteValues, remoteValuesOrigin) })

func (f *Follower) setOrigin(origin Origin) {
	f.origin = origin
	remoteValuesOrigin.Reset()
	remoteValuesOrigin.WithLabelValues(string(origin)).Set(1)
}

// announce shows what became of the values: as metrics, and in the log when it
// changed. What is outdated and was never asked for makes no difference to the
// process: all binaries of Kubernetes know all gates.
func (f *Follower) announce(ctx context.Context, outcomes []featuregate.Outcome) {
	logger := klog.FromContext(ctx).WithValues("component", f.config.Component)
	now := make(map[componentfeaturegate.Feature]featuregate.Outcome, len(outcomes))
	for _, o := range outcomes {
		if o.Reason != featuregate.OutcomeOutdated {
			o.Queried = false
		} else if !o.Queried {
			continue
		}
		now[o.Feature] = o
	}
	if f.outcomes != nil && maps.Equal(now, f.outcomes) {
		return
	}
	remoteValues.Reset()
	for _, name := range slices.Sorted(maps.Keys(now)) {
		o := now[name]
		remoteValues.WithLabelValues(string(o.Feature), string(o.Reason)).Set(1)
		if before, ok := f.outcomes[o.Feature]; ok && before == o {
			continue
		}
		if o.Reason == featuregate.OutcomeInEffect {
			logger.Info("The centrally set value of a feature is in effect", "feature", o.Feature, "enabled", o.Enabled, "dynamic", o.Dynamic, "origin", f.origin)
			continue
		}
		logger.Info("The centrally set value of a feature is not in effect", "feature", o.Feature, "wanted", o.Wanted, "enabled", o.Enabled, "reason", o.Reason, "message", o.Message, "changePolicy", f.config.Policy)
	}
	for name, before := range f.outcomes {
		if _, ok := f.chosen[string(name)]; !ok && now[name].Feature == "" {
			logger.Info("A feature is not set centrally any more", "feature", name, "wasEnabled", before.Enabled)
		}
	}
	f.outcomes = now
}
