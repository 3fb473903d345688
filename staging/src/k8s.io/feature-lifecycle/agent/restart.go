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
	"fmt"
	"maps"
	"slices"
	"time"

	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/klog/v2"
)

// ChangePolicy is what a process does when a static value of its start is outdated. It
// implements pflag.Value.
type ChangePolicy string

const (
	// PolicyReport shows it in the log, the metrics and the report of the process, and
	// leaves the restart to an administrator.
	PolicyReport ChangePolicy = "Report"
	// PolicyRestart also ends the process in order, so that its supervisor restarts it
	// with the new value.
	PolicyRestart ChangePolicy = "Restart"
)

// Set implements pflag.Value.
func (p *ChangePolicy) Set(text string) error {
	switch policy := ChangePolicy(text); policy {
	case PolicyReport, PolicyRestart:
		*p = policy
		return nil
	}
	return fmt.Errorf("%q is not one of %s and %s", text, PolicyReport, PolicyRestart)
}

// String implements pflag.Value.
func (p *ChangePolicy) String() string { return string(*p) }

// Type implements pflag.Value.
func (p *ChangePolicy) Type() string { return "changePolicy" }

// outdated returns the features whose values a restart would bring, sorted. The outcome
// Outdated is only for a value that the gate would take at the start: not for one that is
// set explicitly on the process, or that the gate refuses. Features that the process never
// queried are not among them.
func (s *Syncer) outdated() []componentfeaturegate.Feature {
	var names []componentfeaturegate.Feature
	for _, name := range slices.Sorted(maps.Keys(s.outcomes)) {
		if s.outcomes[name].Reason == featuregate.OutcomeOutdated && !s.tooLate[name] {
			names = append(names, name)
		}
	}
	return names
}

// planRestart decides whether and when the process restarts.
func (s *Syncer) planRestart(ctx context.Context) {
	names := s.outdated()
	if s.config.Policy != PolicyRestart || len(names) == 0 {
		if !s.restartAt.IsZero() {
			klog.FromContext(ctx).Info("Restart canceled: no feature value is outdated any more", "component", s.config.Component)
		}
		s.restartAt, s.heldBy = time.Time{}, ""
		return
	}
	if !s.restartAt.IsZero() {
		return
	}
	delay := backoff.Jitter(s.config.RestartWindow)
	s.restartAt = s.config.Clock.Now().Add(delay)
	klog.FromContext(ctx).Info("Restart planned for changed feature values", "component", s.config.Component, "features", names, "delay", delay, "window", s.config.RestartWindow)
}

// restartDue returns true once the planned time has come.
func (s *Syncer) restartDue() bool {
	return !s.restartAt.IsZero() && !s.config.Clock.Now().Before(s.restartAt)
}

// restart ends the process if that helps: the server has just answered and is ready to
// answer the next process, and the values for a start without a server are on disk.
// Otherwise the next process would be in the same situation, and restart as well.
func (s *Syncer) restart(ctx context.Context) bool {
	names := s.outdated()
	if len(names) == 0 {
		return false
	}
	logger := klog.FromContext(ctx).WithValues("component", s.config.Component, "features", names)
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if err := s.ready(attempt); err != nil {
		if s.heldBy != "unready" {
			logger.Info("Restart held although feature values are outdated: the server may not know the central ones yet, will retry", "cause", err)
		}
		s.heldBy = "unready"
		return false
	}
	if s.heldBy == "unready" {
		s.heldBy = ""
	}
	s.save(ctx)
	if !s.file.has(s.chosen) {
		if s.heldBy != "unsaved" {
			logger.Info("Restart held although feature values are outdated: they cannot be saved, and a start without kube-apiserver would lack them; make the file writable, or set --feature-values-file", "file", s.file.path)
		}
		s.heldBy = "unsaved"
		return false
	}
	logger.Info("Restarting for changed feature values")
	s.config.Restart()
	return true
}
