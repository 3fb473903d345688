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
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/internal/phrase"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

// describeUses stores the users of the feature. A transition that begins in this step
// leaves the list empty: uses count from its beginning.
func (s *step) describeUses() {
	if s.began {
		return
	}
	s.Status.Uses = tracker.Aggregate(s.view.Instances, s.settings.Settings, s.now)
	for _, i := range s.view.Instances {
		if !i.Alive && i.Reported && !i.Potential && s.now.Before(i.Since.Add(s.settings.Grace)) {
			s.requeueAt(i.Since.Add(s.settings.Grace))
		}
	}
}

func (s *step) describeConditions() {
	if s.config.reason != "" {
		s.condition(v1alpha1.ConditionConsistent, boolStatus(s.config.agreed), s.config.reason, s.config.message)
	}
	s.describeKnown()
	s.describeUsesMatch()
	s.describeClean()
	s.describeProgress()
	// While versions are mixed there is no adjacent version.
	if s.version != "" && !s.mixed {
		s.describeSkew(v1alpha1.ConditionUpgradeSafe, s.view.Upgrade)
		s.describeSkew(v1alpha1.ConditionDowngradeSafe, s.view.Downgrade)
	}
}

func (s *step) describeSkew(kind string, evaluate EvaluateSkew) {
	if evaluate == nil {
		return
	}
	now := &v1alpha1.Feature{ObjectMeta: s.feature.ObjectMeta, Spec: s.feature.Spec, Status: s.Status}
	if v := evaluate(now, s.version); v != nil {
		s.condition(kind, v.Status, v.Reason, v.Message)
	}
}

func (s *step) describeKnown() {
	switch {
	case s.config.gate == nil && len(unreported(s.view.Servers)) > 0:
		// A server that has not reported may well know the gate.
	case s.config.gate == nil:
		s.condition(v1alpha1.ConditionKnown, metav1.ConditionFalse, v1alpha1.ReasonNotKnown,
			fmt.Sprintf("no live process knows the gate; the object is kept for %d minor versions", s.settings.KeepUnknownMinors))
	case s.config.byReporters:
		s.condition(v1alpha1.ConditionKnown, metav1.ConditionTrue, v1alpha1.ReasonKnownToReporters, "no live server knows the gate, other components report it")
	default:
		s.condition(v1alpha1.ConditionKnown, metav1.ConditionTrue, v1alpha1.ReasonKnownToServers, "live servers know the gate")
	}
}

func (s *step) describeUsesMatch() {
	goal, ok := Value(&s.Status)
	if !ok {
		return
	}
	differing, missing := tracker.Differing(s.view.Instances, goal), tracker.Missing(s.view.Instances)
	switch {
	case len(differing) > 0:
		s.condition(v1alpha1.ConditionUsesMatch, metav1.ConditionFalse, v1alpha1.ReasonUsersDiffer,
			fmt.Sprintf("%s the feature %s: %s; %s", phrase.Count(len(differing), "live user has", "live users have"), OnOff(!goal), list("", differing), s.howToFollow(goal)))
	case len(missing) > 0:
		s.condition(v1alpha1.ConditionUsesMatch, metav1.ConditionUnknown, v1alpha1.ReasonUsersUnknown,
			fmt.Sprintf("%s not: %s; they may be older than this system, or not allowed to write FeatureReports", phrase.Count(len(missing), "process should report and has", "processes should report and have"), list("", missing)))
	case len(s.Status.Uses) == 0:
		s.condition(v1alpha1.ConditionUsesMatch, metav1.ConditionTrue, v1alpha1.ReasonNoUsers, "no process has queried the gate")
	default:
		s.condition(v1alpha1.ConditionUsesMatch, metav1.ConditionTrue, v1alpha1.ReasonAllUsersMatch, fmt.Sprintf("all live users have the feature %s", OnOff(goal)))
	}
}

// howToFollow describes what makes users take a value.
func (s *step) howToFollow(goal bool) string {
	switch s.Status.Control {
	case v1alpha1.ControlCentral:
		return fmt.Sprintf("restart them, those that have %s in their own --feature-gates without it", s.feature.Name)
	case v1alpha1.ControlDynamic:
		return fmt.Sprintf("they follow by themselves, but for those that have %s in their own --feature-gates: restart these without it", s.feature.Name)
	default:
		return fmt.Sprintf("restart them with --feature-gates=%s=%t", s.feature.Name, goal)
	}
}

// describeClean sets whether a feature that is off left something behind. It is about
// dangling references only: what a feature that is not off stores is in use, and
// leftovers in it cannot be distinguished, except for what servers of this version do not
// read. So Clean is never True for a feature that is not off, and clients that wait for
// it wait until then.
func (s *step) describeClean() {
	found := s.view.Leftovers
	value, _ := Value(&s.Status)
	switch {
	case s.Status.State == "":
	case s.misdeclared():
	case OfVersion(s.Status.State) && !value:
		// Earlier findings stay; they are not updated in this state.
	case s.unreadable():
	case s.Status.State != v1alpha1.StateOff:
		s.condition(v1alpha1.ConditionClean, metav1.ConditionUnknown, v1alpha1.ReasonInUse, "the feature is not off, so what is stored for it is in use; this is answered when it is off")
	case len(s.view.Declared.OnDisable) == 0:
		s.condition(v1alpha1.ConditionClean, metav1.ConditionUnknown, v1alpha1.ReasonNothingDeclared, "the feature does not declare what it stores")
	case found == nil:
		// The findings of another server stay until this one has inspected.
		if c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionClean); c == nil || c.Reason == v1alpha1.ReasonInUse || c.Reason == v1alpha1.ReasonNothingDeclared {
			s.condition(v1alpha1.ConditionClean, metav1.ConditionUnknown, v1alpha1.ReasonNotExamined, "looking for stored objects that hold something of the feature")
		}
	case found.Err != "":
		s.condition(v1alpha1.ConditionClean, metav1.ConditionUnknown, v1alpha1.ReasonNotExamined, "looking for leftovers failed and is tried again: "+found.Err)
	case len(found.Resources) == 0 && len(tracker.Differing(s.view.Instances, false)) > 0:
		// For example one that was not waited for and has returned: what it stores was not
		// searched for.
		users := tracker.Differing(s.view.Instances, false)
		s.condition(v1alpha1.ConditionClean, metav1.ConditionUnknown, v1alpha1.ReasonStillUsed,
			fmt.Sprintf("nothing was found, and %s the feature on and may store it again: %s; %s", phrase.Count(len(users), "live user has", "live users have"), list("", users), s.howToFollow(false)))
	case len(found.Resources) == 0:
		s.condition(v1alpha1.ConditionClean, metav1.ConditionTrue, v1alpha1.ReasonNothingLeft, "no stored object holds anything of the feature")
	default:
		s.condition(v1alpha1.ConditionClean, metav1.ConditionFalse, v1alpha1.ReasonLeftovers, s.leftovers(found))
	}
}

// leftovers describes what is left. While live users have the feature on, as in a rolling
// change to on, it is theirs, and a clean-up would not be for long.
func (s *step) leftovers(found *Leftovers) string {
	users := tracker.Differing(s.view.Instances, false)
	if len(users) == 0 {
		return leftoversMessage(found, s.view.Declared.Removes, s.settings.HowToClean)
	}
	return fmt.Sprintf("%s; %s the feature on and may store it again: %s; while the feature is being turned on, nothing is to be done; otherwise these come first: %s",
		describeLeftovers(found.Resources), phrase.Count(len(users), "live user has", "live users have"), list("", users), s.howToFollow(false))
}

// misdeclared returns true when tasks are declared for resources that the server does
// not have, and reports it. Their findings do not cover what is stored. Findings of
// other tasks take precedence, with the same sentences in their message. Until the
// declaration is inspected again after a change of state, the condition stays.
func (s *step) misdeclared() bool {
	before := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionClean)
	found := s.view.Leftovers
	if found == nil {
		return s.view.Inspected && before != nil && before.Reason == v1alpha1.ReasonMisdeclared
	}
	if len(found.Misdeclared) == 0 {
		return false
	}
	problems := "declared for what the server does not have: " + strings.Join(found.Misdeclared, "; ")
	if before == nil || !strings.Contains(before.Message, problems) {
		s.event(true, EventMisdeclared, "%s", problems)
	}
	switch {
	case s.Status.State == v1alpha1.StateOff && len(found.Resources) > 0:
		s.condition(v1alpha1.ConditionClean, metav1.ConditionFalse, v1alpha1.ReasonLeftovers, s.leftovers(found)+"; tasks are "+problems)
	case found.Err != "":
		s.condition(v1alpha1.ConditionClean, metav1.ConditionUnknown, v1alpha1.ReasonMisdeclared, "tasks are "+problems+"; looking for leftovers failed, too, and is tried again: "+found.Err)
	default:
		s.condition(v1alpha1.ConditionClean, metav1.ConditionUnknown, v1alpha1.ReasonMisdeclared, "what is stored is unknown, since tasks are "+problems)
	}
	return true
}

// unreadable returns true for a feature that is on while stored objects hold something
// that servers of this version do not read, and reports it: the servers were replaced
// without a check. It reports a search that failed, too. Until the first search of another
// server the condition stays, and so does a finding after a search that failed.
func (s *step) unreadable() bool {
	before := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionClean)
	was := before != nil && before.Reason == v1alpha1.ReasonUnreadable
	found := s.view.Leftovers
	switch {
	case s.Status.State != v1alpha1.StateOn:
		return false
	case found == nil:
		return was || before != nil && before.Reason == v1alpha1.ReasonNotExamined
	}
	var parts []string
	for _, r := range found.Resources {
		if r.Unread != "" {
			parts = append(parts, describeLeftovers([]Finding{r})+": "+r.Unread)
		}
	}
	failed := found.Err != "" && s.view.Declared.Unread
	switch {
	case len(parts) > 0:
		message := s.unreadMessage(parts, found.Err)
		s.condition(v1alpha1.ConditionClean, metav1.ConditionFalse, v1alpha1.ReasonUnreadable, message)
		if !was {
			s.event(true, EventUnreadable, "%s", message)
		}
	case failed && !was:
		s.condition(v1alpha1.ConditionClean, metav1.ConditionUnknown, v1alpha1.ReasonNotExamined,
			"the feature is on, and looking for what servers of this version do not read failed and is tried again: "+found.Err)
	case !failed:
		return false
	}
	return true
}

// unreadMessage names what servers of this version do not read, and the way out. Whether an
// older or a newer version stored it, or whether it is damaged, its bytes do not show.
func (s *step) unreadMessage(parts []string, err string) string {
	message := fmt.Sprintf("another version stored what servers of this version do not read: %s; servers of the version that stored it read it, unless it is damaged, so save there what is to be kept; "+
		"turning the feature off removes it: %s, wait until it is Off, and turn it on again", strings.Join(parts, "; "), s.howToTurnOff())
	if clears := s.view.Declared.Clears; len(clears) > 0 {
		message += "; turning the feature off also removes everything else that it stores, so save that, too: " + strings.Join(clears, "; ")
	}
	if err != "" {
		message += "; there may be more, since the search failed and is tried again: " + err
	}
	return message
}

// howToTurnOff describes what turns the feature off.
func (s *step) howToTurnOff() string {
	if s.Status.Control == v1alpha1.ControlDynamic {
		return "set spec.enabled to false"
	}
	return fmt.Sprintf("set --feature-gates=%s=false in all components", s.feature.Name)
}

// leftoversMessage names what is left, and what people do about it: howToClean where
// tasks remove it, and by hand where tasks only wait.
func leftoversMessage(found *Leftovers, removes bool, howToClean string) string {
	var removable, held []Finding
	for _, r := range found.Resources {
		if !removes || r.Held {
			held = append(held, r)
		} else {
			removable = append(removable, r)
		}
	}
	switch {
	case len(removable) == 0:
		return describeLeftovers(held) + "; nothing may remove that from live objects: delete or replace them"
	case len(held) == 0:
		return describeLeftovers(removable) + "; " + howToClean + " to remove them"
	default:
		return describeLeftovers(removable) + "; " + howToClean + " to remove them; " + describeLeftovers(held) +
			"; nothing may remove that from live objects, and the clean-up waits for it: delete or replace them"
	}
}

// describeLeftovers names the objects of resources.
func describeLeftovers(resources []Finding) string {
	var parts []string
	for _, r := range resources {
		name := r.Resource
		if r.Group != "" {
			name += "." + r.Group
		}
		part := fmt.Sprintf("%d %s", r.Count, name)
		if r.Field != "" {
			part += " have " + r.Field
		}
		if len(r.Examples) > 0 {
			part += " (" + list("", r.Examples) + ")"
		}
		parts = append(parts, part)
	}
	return list("", parts)
}

func (s *step) describeProgress() {
	inTransition := s.Status.Transition != nil || len(s.Status.Tasks) > 0
	switch {
	case s.wait != nil:
		status := metav1.ConditionTrue
		if s.wait.reason == v1alpha1.ReasonPaused || s.wait.reason == v1alpha1.ReasonRolloutHalted {
			status = metav1.ConditionFalse
		}
		s.condition(v1alpha1.ConditionProgressing, status, s.wait.reason, s.wait.message)
	case s.Status.State == "":
		s.condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonWaitingForAgreement, orElse(s.config.message, reportAwaited))
	case !inTransition && !s.config.agreed && s.config.gate != nil && s.config.message != "":
		s.condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonWaitingForAgreement, "no transition is under way; "+s.config.message)
	case !inTransition && s.config.gate == nil && s.config.message != "":
		s.condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonComplete, "nothing is left to do; "+s.config.message)
	case !inTransition && !s.config.agreed:
		// A server is starting: the condition stays.
		if meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionProgressing) == nil {
			s.condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonComplete, "nothing is left to do")
		}
	case !inTransition && s.Status.State == v1alpha1.StateOn && len(s.view.NotServed) > 0:
		s.condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonNotServed, strings.Join(s.view.NotServed, "; "))
	case !inTransition:
		s.condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonComplete, "state and configured value agree, nothing is left to do")
	case s.Status.Tasks[0].Name == v1alpha1.TaskWaitForUses:
		s.condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonWaitingForUses, orElse(s.Status.Tasks[0].Message, "waiting until every user agrees"))
	case s.blocked():
		s.condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonBlocked, s.Status.Tasks[0].Name+": "+s.Status.Tasks[0].Message)
	default:
		s.condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonRunningTask, s.Status.Tasks[0].Name)
	}
}

// condition sets a condition; its time moves only when its status does.
func (s *step) condition(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
		Type:               kind,
		Status:             status,
		Reason:             reason,
		Message:            message,
		ObservedGeneration: s.feature.Generation,
		LastTransitionTime: metav1.NewTime(s.now),
	})
}

// reportAwaited is the message while a server is starting.
const reportAwaited = "a live server has not reported yet"

func boolStatus(value bool) metav1.ConditionStatus {
	if value {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

func orElse(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}
