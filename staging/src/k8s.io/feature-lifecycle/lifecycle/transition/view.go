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

package transition

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

// View is everything that one server gathered about one feature. It holds no
// clients and is not shared, so that Next is a function of its arguments.
type View struct {
	// Servers are the live servers, whether they know the gate or not.
	Servers []tracker.Server
	// Reporters are the live processes other than servers that report the gate. They
	// decide the configured value of a gate that no server knows.
	Reporters []tracker.Server
	// Declared is what the feature's author declared; the zero value declares nothing.
	Declared Declared
	// Instances are the users of the feature and those that should exist and
	// never reported.
	Instances []tracker.Instance
	// Lost are users of the feature that failed and whose reports are deleted since, as
	// with their Node. They hold nothing. They count for canaries.
	Lost []tracker.Instance
	// Replaced are users of the feature that other processes replaced
	// (tracker.Instance.ReplacedAt). They count for canaries, and hold only those.
	Replaced []tracker.Instance
	// WatchingSince is the time at which this server began to watch the feature completely. It did not
	// see earlier changes.
	WatchingSince time.Time
	// Leftovers are what the finders of a feature that is off found, nil when they have
	// not run since the last change of state. For one that is on they have Misdeclared, and
	// what servers of this version do not read.
	Leftovers *Leftovers
	// NotServed are sentences about APIs that the feature needs while it is on and the
	// server does not serve.
	NotServed []string
	// Inspected is true if declarations are held against the server.
	Inspected bool
	// Attempt is what this server knows of its attempt at a task, nil when it made none.
	Attempt *Attempt
	// Upgrade and Downgrade evaluate whether the cluster may move to the next and to the
	// previous minor version; nil when that is unknown.
	Upgrade, Downgrade EvaluateSkew
	// NewTransitionID is the id that a transition begun now gets.
	NewTransitionID string
}

// Declared is what the feature's author declared.
type Declared struct {
	// OnEnable and OnDisable name the tasks of a transition in their order,
	// without TaskWaitForUses.
	OnEnable, OnDisable []string
	// Versions are the tasks of version transitions, in no order.
	Versions []VersionTasks
	// Removes is true when a task of OnDisable removes something; others wait
	// for people to do that.
	Removes bool
	// Clears describes the tasks of OnDisable that remove what servers of this version
	// read.
	Clears []string
	// Unread is true when a task finds what servers of this version do not read
	// (task.Task.Unread). That is searched while the feature is on, too.
	Unread bool
	// StartupBlocking are those of the tasks of OnUpgrade that have to run before a server
	// has the feature on.
	StartupBlocking []string
}

// StartupBlockingOf returns those of some tasks that have to run before a server has the
// feature on.
func (d Declared) StartupBlockingOf(tasks []string) []string {
	var blocking []string
	for _, name := range tasks {
		if slices.Contains(d.StartupBlocking, name) {
			blocking = append(blocking, name)
		}
	}
	return blocking
}

// tasks returns what a transition to the goal has to do after waiting for uses.
func (d Declared) tasks(goal bool) []string {
	if goal {
		return d.OnEnable
	}
	return d.OnDisable
}

// knows returns true when the declaration has the task for the transition of the state.
// Names of version tasks contain boundary and direction.
func (d Declared) knows(state v1alpha1.FeatureState, task string) bool {
	if OfVersion(state) {
		return slices.ContainsFunc(d.Versions, func(v VersionTasks) bool {
			return slices.Contains(v.OnUpgrade, task) || slices.Contains(v.OnDowngrade, task)
		})
	}
	goal, _ := Goal(state)
	return slices.Contains(d.tasks(goal), task)
}

// Leftovers are what the finders found.
type Leftovers struct {
	// Resources has an entry for each resource and field that still holds
	// something of the feature, also where the search of others failed.
	Resources []Finding
	// Err is the reason why the search failed, "" when it did not.
	Err string
	// Misdeclared are sentences about what is declared and the server does not have.
	Misdeclared []string
}

// Finding is a resource, and a field of it, that holds something of a feature.
type Finding struct {
	v1alpha1.ResourceLeftovers
	// Held is true when no task removes it, so that a user has to.
	Held bool
	// Unread describes why servers of this version do not read it (task.Task.Unread); ""
	// if they do.
	Unread string
}

// Attempt is one attempt at the first task of a transition by this process.
type Attempt struct {
	// TransitionID and Task identify the task and its transition.
	TransitionID, Task string
	// Outcome is empty while the attempt runs.
	Outcome Outcome
	// Previous is the outcome of the attempt before this one at the same task of the same
	// transition, empty for the first.
	Previous Outcome
	// Done and Total count objects as far as the attempt got.
	Done, Total int64
	// Checkpoint is where another attempt resumes, "" for the beginning.
	Checkpoint string
	// Ended is the time at which the attempt ended, zero while it runs.
	Ended time.Time
	// Retry is true when what blocked the attempt may have been resolved, so that the next
	// one need not wait for its time.
	Retry bool
	// Message describes the progress of the attempt, or why it did not finish.
	Message string
}

// EvaluateSkew evaluates whether the cluster may move away from its version with a
// Feature (package versionskew). Like everything in a View it depends on gathered data
// only. It returns nil when there is no such move, and changes nothing.
type EvaluateSkew func(feature *v1alpha1.Feature, clusterVersion string) *SkewResult

// SkewResult is the content of a condition.
type SkewResult struct {
	Status          metav1.ConditionStatus
	Reason, Message string
}

// Outcome is how an attempt at a task ended.
type Outcome string

const (
	// Finished means that nothing is left to do for the task.
	Finished Outcome = "Finished"
	// Blocked means that an external action is needed first. The task is retried with
	// backoff.
	Blocked Outcome = "Blocked"
	// Failed means that the attempt ended with an error. The task is tried
	// again with back-off.
	Failed Outcome = "Failed"
)

// Decision is what a server does next about a feature.
type Decision struct {
	// Status is the complete status that should be stored. When it equals the
	// stored one nothing is written.
	Status v1alpha1.FeatureStatus
	// Start names the task whose attempt begins once Status is stored, so that a server
	// with an outdated view cannot begin: its write fails.
	Start string
	// Hold is true when an attempt that is running has to stop.
	Hold bool
	// RequeueAfter is when to reconcile again without an event. Zero means that only an
	// event can change anything.
	RequeueAfter time.Duration
	// Delete is true when the feature has been unknown for so long that its object is
	// deleted.
	Delete bool
	// Events are emitted once Status is stored.
	Events []Event
}

// Event is a notification for users.
type Event struct {
	// Warning is true for what needs attention.
	Warning bool
	// Reason is one of the Event constants.
	Reason string
	// Message is for people.
	Message string
}

// Reasons of events.
const (
	// EventTransitionStarted: configured value and state, or the cluster's version
	// and the stored one, differ.
	EventTransitionStarted = "TransitionStarted"
	// EventTasksNotRun: a feature was adopted as On, and declares what turning it on does.
	EventTasksNotRun = "TasksNotRun"
	// EventMisdeclared: a task is declared for what the server does not have.
	EventMisdeclared = "Misdeclared"
	// EventUnreadable: stored objects of a feature that is on hold something that servers of
	// this version do not read.
	EventUnreadable = "Unreadable"
	// EventTransitionCompleted: the last task is done.
	EventTransitionCompleted = "TransitionCompleted"
	// EventTaskCompleted: a task is done, others are left.
	EventTaskCompleted = "TaskCompleted"
	// EventTaskBlocked: a task waits for an external action, or failed.
	EventTaskBlocked = "TaskBlocked"
	// EventRolloutHalted: too many instances of a canary failed.
	EventRolloutHalted = "RolloutHalted"
	// EventRolloutResumed: a halted canary continues because spec.rollout changed, or its
	// value is for all because spec.rollout was removed.
	EventRolloutResumed = "RolloutResumed"
	// EventRolloutStarted: a value begins to go to a part of the instances.
	EventRolloutStarted = "RolloutStarted"
	// EventRolloutChanged: spec.rollout of a canary that is not halted was changed
	// or removed.
	EventRolloutChanged = "RolloutChanged"
	// EventRolloutSwitched: the moment of a rollout has come, and all instances take the
	// value.
	EventRolloutSwitched = "RolloutSwitched"
	// EventRolloutCalledOff: the value of a halted canary is no longer requested.
	EventRolloutCalledOff = "RolloutCalledOff"
)
