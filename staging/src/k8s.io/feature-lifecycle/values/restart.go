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
	"fmt"
	"maps"
	"slices"
	"time"

	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/klog/v2"
)

// ChangePolicy is what a process does when a static value that it started with is
// outdated. It implements pflag.Value.
type ChangePolicy string

const (
	// PolicyReport shows it, in the log, the metrics and the process's report, and
	// leaves the restart to people.
	PolicyReport ChangePolicy = "Report"
	// PolicyRestart also ends the process in order, so that its supervisor starts
	// it again with the new value.
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

// outdated are the features whose values a restart would bring, sorted. The gate
// says Outdated only for a value that it would take at the start: not for one
// that is set explicitly on the process, or that it refuses. Features that the
// process never asked for are not among them.
func (f *Follower) outdated() []componentfeaturegate.Feature {
	var names []componentfeaturegate.Feature
	for _, name := range slices.Sorted(maps.Keys(f.outcomes)) {
		if f.outcomes[name].Reason == featuregate.OutcomeOutdated && !f.tooLate[name] {
			names = append(names, name)
		}
	}
	return names
}

// planRestart decides whether and when the process ends itself.
func (f *Follower) planRestart(ctx context.Context) {
	names := f.outdated()
	if f.config.Policy != PolicyRestart || len(names) == 0 {
		if !f.restartAt.IsZero() {
			klog.FromContext(ctx).Info("Not ending after all: no value of a feature is outdated any more", "component", f.config.Component)
		}
		f.restartAt, f.complained = time.Time{}, ""
		return
	}
	if !f.restartAt.IsZero() {
		return
	}
	delay := backoff.Jitter(f.config.RestartWindow)
	f.restartAt = f.config.Clock.Now().Add(delay)
	klog.FromContext(ctx).Info("Going to end, so that the process is started again with values of features that changed", "component", f.config.Component, "features", names, "in", delay, "window", f.config.RestartWindow)
}

// restartDue is true when it is time.
func (f *Follower) restartDue() bool {
	return !f.restartAt.IsZero() && !f.config.Clock.Now().Before(f.restartAt)
}

// restart ends the process if that helps: the server has just answered and is
// ready to answer the next process, too, and what has to be on disk for a start
// without a server is there. Otherwise the next process would be where this one
// is, and end itself, too.
func (f *Follower) restart(ctx context.Context) bool {
	names := f.outdated()
	if len(names) == 0 {
		return false
	}
	logger := klog.FromContext(ctx).WithValues("component", f.config.Component, "features", names)
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if err := f.ready(attempt); err != nil {
		if f.complained != "unready" {
			logger.Info("Not ending yet although values of features are outdated: the server may not know yet what is set centrally; it is asked again", "cause", err)
		}
		f.complained = "unready"
		return false
	}
	if f.complained == "unready" {
		f.complained = ""
	}
	f.save(ctx)
	if !f.file.has(f.chosen) {
		if f.complained != "unsaved" {
			logger.Info("Not ending although values of features are outdated: they cannot be saved, and a start without kube-apiserver would not know them; make the file writable, or set --feature-values-file", "file", f.file.path)
		}
		f.complained = "unsaved"
		return false
	}
	logger.Info("Ending, so that the process is started again with values of features that changed")
	f.config.Restart()
	return true
}
