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

package feature

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/ahead"
)

// reasonOnlyGatesKnown is the reason of features that stay on in a version of which only the
// gates are known. No condition has it.
const reasonOnlyGatesKnown = "OnlyGatesKnown"

// limit restricts an answer to what a list of gates can show, and adds what changes. The
// list shows which binaries would refuse to start and which value a feature would have. It
// shows neither tasks nor how the version reads what is stored.
func (n *nextGates) limit(a *answer, q *versionskew.Input) {
	a.Change, a.Effect = becomes(q)
	if a.Safe != metav1.ConditionTrue {
		return
	}
	version := n.release.Version()
	value := q.Value().Value
	final := q.Current.Default && q.Current.Locked
	switch {
	case a.State == v1alpha1.StateOn && !value:
		// Why has the reason.
	case a.State == v1alpha1.StateOn && q.Harmless == "" && !final:
		a.Safe, a.Reason = metav1.ConditionUnknown, reasonOnlyGatesKnown
		a.Why = fmt.Sprintf("the feature is on and stays on by the gates of %s, which do not show how %s reads what it stores", version, q.To)
		a.Next = fmt.Sprintf("check with the plugin of %s before any binary is replaced", q.To)
	case value:
		a.Why = fmt.Sprintf("by the gates of %s no binary refuses to start, and the feature is on in %s", version, q.To)
	default:
		a.Why = fmt.Sprintf("by the gates of %s no binary refuses to start, and the feature is off in %s", version, q.To)
	}
}

// becomes returns what becomes of a gate in the other version, and what that means for this
// cluster: its features and its flags. Both are "" where nothing changes.
func becomes(q *versionskew.Input) (change, effect string) {
	if q.Current == q.Target {
		return "", ""
	}
	change = fmt.Sprintf("%s; in %s %s", ahead.Describe(q.Current), q.To, ahead.Describe(q.Target))
	value := q.Value().Value
	switch state := q.Feature.Status.State; {
	case state == v1alpha1.StateOff && value:
		effect = "the feature turns on"
	case state == v1alpha1.StateOn && !value:
		effect = "the feature turns off"
	case len(q.Explicit) == 0:
	case q.Target.Locked:
		effect = "the setting has no effect, and is refused once the gate is removed; take it out of " + setters(q.Explicit)
	case q.Current.Default != q.Target.Default:
		effect = "the new default is hidden by the setting of " + setters(q.Explicit)
	}
	return change, effect
}

// setters names the processes that set a gate, with the values.
func setters(explicit []versionskew.Setting) string {
	const most = 5
	var names []string
	for i, s := range explicit {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(explicit)-most))
			break
		}
		names = append(names, fmt.Sprintf("%s/%s (%t)", s.Component, s.Instance, s.Enabled))
	}
	return strings.Join(names, ", ")
}

// unknown returns what the list of gates leaves open for the cluster as a whole.
func (n *nextGates) unknown(answers []answer) []string {
	version, minor := n.release.Version(), n.release.Minor()
	unknown := []string{fmt.Sprintf("%s itself: this plugin has the gates of %s, %s, and no tasks for the boundary; check again with kubectl-feature of %s before any binary is replaced", minor, version, n.release.Kind(), minor)}
	var unread []string
	for _, a := range answers {
		if a.Reason == reasonOnlyGatesKnown {
			unread = append(unread, a.Name)
		}
	}
	if count := len(unread); count > 0 {
		const most = 5
		if count > most {
			unread = append(unread[:most:most], fmt.Sprintf("%d more (-o wide)", count-most))
		}
		unknown = append(unknown, fmt.Sprintf("how %s reads what is stored by features that are on and stay on, %d: %s", minor, count, strings.Join(unread, ", ")))
	}
	return unknown
}
