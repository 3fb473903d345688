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

package controller

import (
	"sync"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "feature_lifecycle"

var (
	transitionSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem:      subsystem,
		Name:           "transition_duration_seconds",
		Help:           "Time from the start of a transition to its last task, by the state it led to.",
		Buckets:        []float64{1, 5, 10, 15, 30, 60, 300, 1800, 7200, 86400, 604800},
		StabilityLevel: metrics.ALPHA,
	}, []string{"state"})

	attemptsTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "task_attempts_total",
		Help:           "Attempts at tasks of transitions.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"task"})

	attemptSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem:      subsystem,
		Name:           "task_attempt_duration_seconds",
		Help:           "Time that attempts at tasks of transitions took, by how they ended: Finished, Blocked or Failed.",
		Buckets:        []float64{0.1, 1, 5, 15, 60, 300, 1800},
		StabilityLevel: metrics.ALPHA,
	}, []string{"task", "outcome"})

	reportsDesc = metrics.NewDesc(subsystem+"_reports",
		"Feature reports that this server sees, by component.",
		[]string{"component"}, nil, metrics.ALPHA, "")

	stateDesc = metrics.NewDesc(subsystem+"_state",
		"1 for the state that a feature led by this server is in.",
		[]string{"feature", "state"}, nil, metrics.ALPHA, "")

	usesDesc = metrics.NewDesc(subsystem+"_uses",
		"Live users of a feature led by this server, by component and the value they found.",
		[]string{"feature", "component", "enabled"}, nil, metrics.ALPHA, "")

	leaderDesc = metrics.NewDesc(subsystem+"_leader",
		"Features that this server looks after.",
		nil, nil, metrics.ALPHA, "")
)

// registerOnce: a process has one registry, and one controller unless it is a
// test.
var registerOnce sync.Once

func registerMetrics(led *ledFeatures, reports *index) {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(transitionSeconds, attemptsTotal, attemptSeconds)
		legacyregistry.CustomMustRegister(&collector{led: led, reports: reports})
	})
}

// ledFeatures are the features that this server looks after, as last stored. It
// is safe for concurrent use.
type ledFeatures struct {
	mu       sync.Mutex
	statuses map[string]*v1alpha1.FeatureStatus
	// sinces is since when this server looks after each.
	sinces map[string]time.Time
}

func newLedFeatures() *ledFeatures {
	return &ledFeatures{statuses: map[string]*v1alpha1.FeatureStatus{}, sinces: map[string]time.Time{}}
}

// since is since when this server looks after a feature: now, if it does not
// yet.
func (l *ledFeatures) since(name string, now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if since, ok := l.sinces[name]; ok {
		return since
	}
	return now
}

func (l *ledFeatures) set(name string, status *v1alpha1.FeatureStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.statuses[name] = status
}

// take notes that this server looks after a feature, from now on unless it
// already does.
func (l *ledFeatures) take(name string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.sinces[name]; !ok {
		l.sinces[name] = now
	}
}

func (l *ledFeatures) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.statuses, name)
	delete(l.sinces, name)
}

// collector shows the led features when metrics are read, so that nothing of a
// feature stays behind when another server takes over.
type collector struct {
	metrics.BaseStableCollector
	led     *ledFeatures
	reports *index
}

func (c *collector) DescribeWithStability(ch chan<- *metrics.Desc) {
	ch <- stateDesc
	ch <- usesDesc
	ch <- leaderDesc
	ch <- reportsDesc
}

func (c *collector) CollectWithStability(ch chan<- metrics.Metric) {
	for component, count := range c.reports.byComponent() {
		ch <- metrics.NewLazyConstMetric(reportsDesc, metrics.GaugeValue, float64(count), component)
	}
	c.led.mu.Lock()
	defer c.led.mu.Unlock()
	ch <- metrics.NewLazyConstMetric(leaderDesc, metrics.GaugeValue, float64(len(c.led.statuses)))
	for name, status := range c.led.statuses {
		ch <- metrics.NewLazyConstMetric(stateDesc, metrics.GaugeValue, 1, name, string(status.State))
		counts := map[[2]string]int32{}
		for _, use := range status.Uses {
			counts[[2]string{use.Component, valueLabel(use.Enabled)}] += use.Count
		}
		for key, count := range counts {
			ch <- metrics.NewLazyConstMetric(usesDesc, metrics.GaugeValue, float64(count), name, key[0], key[1])
		}
	}
}

func valueLabel(enabled *bool) string {
	switch {
	case enabled == nil:
		return "unknown"
	case *enabled:
		return "true"
	default:
		return "false"
	}
}
