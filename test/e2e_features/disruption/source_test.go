//go:build linux

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

package disruption

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/report"
	"k8s.io/feature-lifecycle/values/rollout"
)

// source is what a simulated process knows of features: it uses one of them and
// has its value from the API, as a component does.
type source struct {
	feature  string
	instance rollout.Instance
	news     chan struct{}

	mu sync.Mutex
	// held is the value that was taken last, nil for none.
	held *bool
	// users is how many the server counted last.
	users int
}

var _ report.Source = &source{}

func newSource(feature, component, name string) *source {
	return &source{feature: feature, instance: rollout.Instance{Component: component, Name: name}, news: make(chan struct{}, 1)}
}

// follow takes the value that the Feature has for this instance.
func (s *source) follow(feature *v1alpha1.Feature) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if users := counted(feature); users > 0 {
		s.users = users
	}
	choice := rollout.Choose(feature, s.instance, s.held)
	if !choice.Told || s.held != nil && *s.held == choice.Value {
		return
	}
	s.held = &choice.Value
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// Observations is for the reporter.
func (s *source) Observations() []featuregate.Observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []featuregate.Observation{{
		Name: s.feature, Enabled: s.held != nil && *s.held, Asked: true, Stage: v1alpha1.StageBeta,
	}}
}

// counted is how many users a Feature says it has, 0 when a transition has just begun.
func counted(feature *v1alpha1.Feature) int {
	users := 0
	for _, use := range feature.Status.Uses {
		users += int(use.Count)
	}
	return users
}

// peers are all users, for the reporter: they take turns, whatever each had before.
func (s *source) peers(string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users
}

// News is for the reporter.
func (s *source) News() <-chan struct{} { return s.news }

// EmulationVersion is for the reporter.
func (s *source) EmulationVersion() *version.Version { return version.MajorMinor(1, 36) }

// simulated is a process that reports: a real reporter, with a source of one
// feature.
type simulated struct {
	source   *source
	reporter *report.Reporter
	report   string
	// server is the one that it reports to, and log what it said last.
	server string
	log    *tail
	// before is when one of the same name had crashed whose place it took, zero for none.
	before time.Time
	// cancel ends it; done is closed once it has ended.
	cancel context.CancelFunc
	done   chan struct{}
}

// crash ends it as a crash does: what it stored stays.
func (s *simulated) crash() {
	s.cancel()
	<-s.done
}

// end ends it in order.
func (s *simulated) end(ctx context.Context) error {
	s.crash()
	return s.reporter.Remove(ctx)
}
