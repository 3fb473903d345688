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
	"context"
	"maps"
	"slices"

	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/klog/v2"
)

func (s *Syncer) setOrigin(origin Origin) {
	s.origin = origin
	remoteValuesOrigin.Reset()
	remoteValuesOrigin.WithLabelValues(string(origin)).Set(1)
}

// publish shows the gate's outcomes of the values: as metrics, and in the log when they
// change. An outdated value that was never queried makes no difference to the process: all
// binaries of Kubernetes know all gates.
func (s *Syncer) publish(ctx context.Context, outcomes []featuregate.Outcome) {
	logger := klog.FromContext(ctx).WithValues("component", s.config.Component)
	now := make(map[componentfeaturegate.Feature]featuregate.Outcome, len(outcomes))
	for _, o := range outcomes {
		if o.Reason != featuregate.OutcomeOutdated {
			o.Queried = false
		} else if !o.Queried {
			continue
		}
		now[o.Feature] = o
	}
	if s.outcomes != nil && maps.Equal(now, s.outcomes) {
		return
	}
	remoteValues.Reset()
	for _, name := range slices.Sorted(maps.Keys(now)) {
		o := now[name]
		remoteValues.WithLabelValues(string(o.Feature), string(o.Reason)).Set(1)
		if before, ok := s.outcomes[o.Feature]; ok && before == o {
			continue
		}
		if o.Reason == featuregate.OutcomeInEffect {
			logger.Info("Central feature value in effect", "feature", o.Feature, "enabled", o.Enabled, "dynamic", o.Dynamic, "origin", s.origin)
			continue
		}
		logger.Info("Central feature value not in effect", "feature", o.Feature, "wanted", o.Wanted, "enabled", o.Enabled, "reason", o.Reason, "message", o.Message, "changePolicy", s.config.Policy)
	}
	for name, before := range s.outcomes {
		if _, ok := s.chosen[string(name)]; !ok && now[name].Feature == "" {
			logger.Info("Feature not set centrally any more", "feature", name, "wasEnabled", before.Enabled)
		}
	}
	s.outcomes = now
}
