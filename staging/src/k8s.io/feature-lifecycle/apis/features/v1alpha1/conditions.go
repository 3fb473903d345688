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

package v1alpha1

// Conditions of a Feature (design: KEP-3920, "API"). Consumers may rely on
// types and reasons; messages are for people.
const (
	// ConditionConsistent is True when every live apiserver configures the
	// same value.
	ConditionConsistent = "Consistent"
	// ConditionUsesMatch is True when no live user has another value than the
	// state.
	ConditionUsesMatch = "UsesMatch"
	// ConditionClean is True when no stored object holds anything of a feature
	// that is off, and False when some do. It is Unknown while the feature is not
	// off, so that clients that wait for it wait until then, and when the answer
	// cannot be determined. Servers check every 30 minutes; the subresource plan
	// checks at once.
	ConditionClean = "Clean"
	// ConditionProgressing reports what the server flow is doing.
	ConditionProgressing = "Progressing"
	// ConditionUpgradeSafe is True when binaries of the next minor version start
	// with what processes are given for the gate, and what the feature stores can
	// be read and changed there.
	ConditionUpgradeSafe = "UpgradeSafe"
	// ConditionDowngradeSafe is the same for the previous minor version.
	ConditionDowngradeSafe = "DowngradeSafe"
	// ConditionKnown is False when no live server knows the gate.
	ConditionKnown = "Known"
)

// Reasons of ConditionConsistent.
const (
	// ReasonServersAgree: all live apiservers configure the same value.
	ReasonServersAgree = "ServersAgree"
	// ReasonServersDisagree: live apiservers configure different values, as
	// during a rolling restart.
	ReasonServersDisagree = "ServersDisagree"
	// ReasonReportMissing: a live apiserver has not reported its values.
	ReasonReportMissing = "ReportMissing"
)

// Reasons of ConditionUsesMatch.
const (
	// ReasonAllUsersMatch: every live user has the value of the state.
	ReasonAllUsersMatch = "AllUsersMatch"
	// ReasonUsersDiffer: some live users have another value.
	ReasonUsersDiffer = "UsersDiffer"
	// ReasonUsersUnknown: instances that should exist have not reported.
	ReasonUsersUnknown = "UsersUnknown"
	// ReasonNoUsers: no process has queried the gate.
	ReasonNoUsers = "NoUsers"
)

// Reasons of ConditionClean.
const (
	// ReasonNothingLeft: no stored object holds anything of the feature.
	ReasonNothingLeft = "NothingLeft"
	// ReasonNothingDeclared: the feature declares nothing that it stores.
	ReasonNothingDeclared = "NothingDeclared"
	// ReasonLeftovers: stored objects hold something of the feature.
	ReasonLeftovers = "Leftovers"
	// ReasonStillUsed: nothing was found of a feature that is off, and live users have it on
	// and may store something again.
	ReasonStillUsed = "StillUsed"
	// ReasonInUse: the feature is not off, so what is stored is in use. The status
	// is Unknown.
	ReasonInUse = "InUse"
	// ReasonNotExamined: looking for leftovers failed or is still under way. When
	// the feature is on, that was looking for what servers of this version do not read.
	ReasonNotExamined = "NotExamined"
	// ReasonMisdeclared: tasks of the feature are declared for what the server does not
	// have, so that what is stored is unknown. It is set whatever the state is.
	ReasonMisdeclared = "Misdeclared"
	// ReasonUnreadable: stored objects hold something that servers of this version do not
	// read, such as an API version or a field that another one has. It is set for a feature
	// that is on; of one that is off, that is a leftover.
	ReasonUnreadable = "Unreadable"
)

// Reasons of ConditionProgressing. Complete, NotServed, Paused and RolloutHalted have
// status False, all others True.
const (
	// ReasonComplete: state and configured value agree and no task is left.
	ReasonComplete = "Complete"
	// ReasonNotServed: the feature is on and no task is left, but the server does not
	// serve an API that the feature needs, so it does little or nothing.
	ReasonNotServed = "NotServed"
	// ReasonWaitingForUses: users with the old value are left, or the settle
	// period has not passed.
	ReasonWaitingForUses = "WaitingForUses"
	// ReasonRunningTask: a task is running.
	ReasonRunningTask = "RunningTask"
	// ReasonBlocked: the first task failed or waits for a person to act.
	ReasonBlocked = "Blocked"
	// ReasonPaused: spec.paused holds the feature.
	ReasonPaused = "Paused"
	// ReasonMixedVersions: live apiservers have different effective versions.
	ReasonMixedVersions = "MixedVersions"
	// ReasonWaitingForAgreement: live apiservers configure different values.
	ReasonWaitingForAgreement = "WaitingForAgreement"
	// ReasonUnknownTask: the server does not know the first task.
	ReasonUnknownTask = "UnknownTask"
	// ReasonRolloutHalted: too many instances of a canary failed. The canary resumes
	// when spec.rollout is changed.
	ReasonRolloutHalted = "RolloutHalted"
)

// Reasons of ConditionKnown.
const (
	// ReasonKnownToServers: a live apiserver knows the gate.
	ReasonKnownToServers = "KnownToServers"
	// ReasonKnownToReporters: no apiserver knows the gate, another component
	// reports it.
	ReasonKnownToReporters = "KnownToReporters"
	// ReasonNotKnown: no live process knows the gate.
	ReasonNotKnown = "NotKnown"
)

// Reasons of ConditionUpgradeSafe and ConditionDowngradeSafe.
const (
	// ReasonSafe: binaries of the adjacent version start, and what is stored
	// can be read and changed there.
	ReasonSafe = "Safe"
	// ReasonNotExaminedForVersion: it is not known what the adjacent version
	// makes of the gate, or what is stored.
	ReasonNotExaminedForVersion = "NotExamined"
	// ReasonUnsettled: servers do not agree on the value, or processes have a
	// feature on that is off.
	ReasonUnsettled = "Unsettled"
	// ReasonNotInAdjacentVersion: the feature is on, and the adjacent version has it
	// off or not at all, where what it stores may be lost or refuse changes.
	ReasonNotInAdjacentVersion = "NotInAdjacentVersion"
	// ReasonRefusesToStart: the adjacent version does not have the gate or has
	// it locked, and a process sets it to another value, or a server names it in
	// --central-features or --dynamic-features; or, with what a process sets, a gate
	// would be on there without another one that it depends on.
	ReasonRefusesToStart = "RefusesToStart"
	// ReasonNeedsTasks: what is stored has to be changed first.
	ReasonNeedsTasks = "NeedsTasks"
	// ReasonInTransition: a transition is under way, held or due.
	ReasonInTransition = "InTransition"
)
