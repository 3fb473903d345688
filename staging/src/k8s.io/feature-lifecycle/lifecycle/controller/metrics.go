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

package controller

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "feature_lifecycle"

// All series have the namespace of the controller first, which has their features.

var (
	transitionSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem:      subsystem,
		Name:           "transition_duration_seconds",
		Help:           "Time from the start of a transition to its last task, by the state it led to.",
		Buckets:        []float64{1, 5, 10, 15, 30, 60, 300, 1800, 7200, 86400, 604800},
		StabilityLevel: metrics.ALPHA,
	}, []string{"namespace", "state"})

	attemptsTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "task_attempts_total",
		Help:           "Attempts at tasks of transitions.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"namespace", "task"})

	attemptSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem:      subsystem,
		Name:           "task_attempt_duration_seconds",
		Help:           "Time that attempts at tasks of transitions took, by how they ended: Finished, Blocked or Failed.",
		Buckets:        []float64{0.1, 1, 5, 15, 60, 300, 1800},
		StabilityLevel: metrics.ALPHA,
	}, []string{"namespace", "task", "outcome"})

	valueWritesTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "value_writes_total",
		Help:           "Writes of FeatureValues, by verb (create, update or delete) and result: Done, Conflict (what the server had read was outdated), Missing (the server does not have the API), Forbidden or Failed.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"namespace", "verb", "result"})

	runningDesc = metrics.NewDesc(subsystem+"_running",
		"1 while the server flow of this server reconciles features, 0 before it has permission and a complete picture.",
		[]string{"namespace"}, nil, metrics.ALPHA, "")

	leaderDesc = metrics.NewDesc(subsystem+"_leader",
		"Features that this server leads.",
		[]string{"namespace"}, nil, metrics.ALPHA, "")

	reportsDesc = metrics.NewDesc(subsystem+"_reports",
		"Feature reports that this server sees, by component.",
		[]string{"namespace", "component"}, nil, metrics.ALPHA, "")

	stateDesc = metrics.NewDesc(subsystem+"_state",
		"1 for the state that a feature led by this server is in.",
		[]string{"namespace", "feature", "state"}, nil, metrics.ALPHA, "")

	usesDesc = metrics.NewDesc(subsystem+"_uses",
		"Live users of a feature led by this server, by component and the value they found; unknown for processes that should have reported and did not.",
		[]string{"namespace", "feature", "component", "enabled"}, nil, metrics.ALPHA, "")

	mismatchedDesc = metrics.NewDesc(subsystem+"_mismatched_uses",
		"Live users of a feature led by this server that found another value than that of its state, by component. Features whose users agree have none.",
		[]string{"namespace", "feature", "component"}, nil, metrics.ALPHA, "")

	conditionDesc = metrics.NewDesc(subsystem+"_condition",
		"1 for each condition of a feature led by this server that asks for attention: those that are False, except UpgradeSafe and DowngradeSafe, Progressing unless it is Complete, and Clean if it is NotExamined or Misdeclared.",
		[]string{"namespace", "feature", "condition", "reason"}, nil, metrics.ALPHA, "")

	danglingDesc = metrics.NewDesc(subsystem+"_dangling_objects",
		"Stored objects that hold something of a feature that is Off and led by this server, by resource and field.",
		[]string{"namespace", "feature", "resource", "field"}, nil, metrics.ALPHA, "")

	startTimeDesc = metrics.NewDesc(subsystem+"_transition_start_time_seconds",
		"When the transition under way of a feature led by this server began, in seconds since the epoch, by the state it is in.",
		[]string{"namespace", "feature", "state"}, nil, metrics.ALPHA, "")

	tasksDesc = metrics.NewDesc(subsystem+"_tasks",
		"Tasks that are left of the transition under way of a feature led by this server.",
		[]string{"namespace", "feature"}, nil, metrics.ALPHA, "")

	rolloutDesc = metrics.NewDesc(subsystem+"_rollout",
		"1 while the transition of a feature led by this server is held on purpose because spec.rollout gives the value to a part of the instances, by the value; none while it is halted.",
		[]string{"namespace", "feature", "enabled"}, nil, metrics.ALPHA, "")
)

// collected has the controllers of this process. A process has one registry, and
// may have a controller for each of several namespaces, one after the other too.
var collected = newCollector()

var registerMetrics = sync.OnceFunc(func() {
	legacyregistry.MustRegister(transitionSeconds, attemptsTotal, attemptSeconds, valueWritesTotal)
	legacyregistry.CustomMustRegister(collected)
})

// queueName returns the name of a controller's queue in metrics.
func queueName(namespace string) string { return subsystem + "/" + namespace }
