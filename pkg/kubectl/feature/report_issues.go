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
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/utils/ptr"
)

// troubleKind is one kind of issue that needs attention.
type troubleKind struct {
	// Key is its name in filters and addresses. Symbol and Label are short forms,
	// Title and Meaning stand above a list.
	Key, Symbol, Label, Title, Meaning string
	// Class adds a color.
	Class string
	// conditions are the reasons that make it, by type of condition.
	conditions map[string][]string
	// behind returns a condition that another one hides; nil for none, and nil if none is
	// of this kind.
	behind func(*v1alpha1.FeatureStatus) *metav1.Condition
	// next returns commands that show more, or help. Own is true for a feature of
	// Kubernetes, which kube-apiserver plans and cleans, and no other.
	next func(conditionReason, name string, own bool) []string
}

// troubleKinds has all, the most urgent first. They are those of "list": the color
// red, its filters, and paused features.
var troubleKinds = []troubleKind{
	{
		Key: "blocked", Symbol: "✕", Label: "blocked", Title: "Blocked or halted", Class: "bad",
		Meaning: "needs user action to continue",
		conditions: map[string][]string{
			v1alpha1.ConditionProgressing: {v1alpha1.ReasonBlocked, v1alpha1.ReasonUnknownTask, v1alpha1.ReasonRolloutHalted, v1alpha1.ReasonNotServed},
		},
		behind: blockedBehind,
		next: func(reason, name string, _ bool) []string {
			if reason == v1alpha1.ReasonRolloutHalted {
				return []string{"kubectl feature rollout " + name}
			}
			return []string{"kubectl feature describe " + name}
		},
	},
	{
		Key: "differing", Symbol: "≠", Label: "differing", Title: "Users or servers differ", Class: "bad",
		Meaning: "an instance has another value than that of the state, or kube-apiservers disagree",
		conditions: map[string][]string{
			v1alpha1.ConditionUsesMatch:  {v1alpha1.ReasonUsersDiffer},
			v1alpha1.ConditionConsistent: {v1alpha1.ReasonServersDisagree},
		},
		next: func(reason, name string, _ bool) []string {
			if reason == v1alpha1.ReasonServersDisagree {
				return []string{"kubectl feature uses " + name}
			}
			return []string{"kubectl feature uses " + name + " --mismatched"}
		},
	},
	{
		Key: "dangling", Symbol: "!", Label: "dangling", Title: "Dangling", Class: "bad",
		Meaning:    "stored objects hold something of it although it is off, or that no server of this version reads",
		conditions: map[string][]string{v1alpha1.ConditionClean: {v1alpha1.ReasonLeftovers, v1alpha1.ReasonUnreadable}},
		next: func(reason, name string, own bool) []string {
			if !own || reason == v1alpha1.ReasonUnreadable {
				// The message has what its operator offers, or that turning it off removes it.
				return []string{"kubectl feature describe " + name}
			}
			return []string{"kubectl feature plan " + name + " --disable", "kubectl feature clean " + name}
		},
	},
	{
		Key: "paused", Symbol: "‖", Label: "paused", Title: "Paused", Class: "moving",
		Meaning:    "nothing starts before it is resumed",
		conditions: map[string][]string{v1alpha1.ConditionProgressing: {v1alpha1.ReasonPaused}},
		next:       func(_, name string, _ bool) []string { return []string{"kubectl feature resume " + name} },
	},
	{
		Key: "unclear", Symbol: "?", Label: "unclear", Title: "Unclear", Class: "moving",
		Meaning: "nothing starts before it is known what all servers have",
		conditions: map[string][]string{
			v1alpha1.ConditionKnown:       {v1alpha1.ReasonNotKnown},
			v1alpha1.ConditionConsistent:  {v1alpha1.ReasonReportMissing},
			v1alpha1.ConditionProgressing: {v1alpha1.ReasonMixedVersions},
		},
		next: func(_, name string, _ bool) []string { return []string{"kubectl feature describe " + name} },
	},
}

// find returns the conditions that make a feature one of this kind.
func (k troubleKind) find(status *v1alpha1.FeatureStatus) []metav1.Condition {
	var found []metav1.Condition
	for _, c := range status.Conditions {
		if slices.Contains(k.conditions[c.Type], c.Reason) {
			found = append(found, c)
		}
	}
	if len(found) == 0 && k.behind != nil {
		if c := k.behind(status); c != nil {
			found = append(found, *c)
		}
	}
	return found
}

// blockedBehind returns whether a task is blocked while its transition is held by another
// cause, such as a pause.
func blockedBehind(status *v1alpha1.FeatureStatus) *metav1.Condition {
	what := transition.Blocking(status)
	if what == "" {
		return nil
	}
	return &metav1.Condition{Type: v1alpha1.ConditionProgressing, Reason: v1alpha1.ReasonBlocked, Message: what}
}

// urgency is the place of a feature in the matrix: first those that need attention, the
// most urgent kind before others, then what moves.
func (f pageFeature) urgency() int {
	urgency := len(troubleKinds) + 1
	if f.Moving {
		urgency--
	}
	for _, t := range f.Troubles {
		urgency = min(urgency, slices.IndexFunc(troubleKinds, func(k troubleKind) bool { return k.Key == t.Key }))
	}
	return urgency
}

// pageGroup has the issues of one kind.
type pageGroup struct {
	troubleKind
	// Count is the number of features.
	Count   int64
	Entries []pageEntry
}

// pageEntry is one cause, with all features of the same message. A missing report
// of a server, for example, affects the consistency of all features.
type pageEntry struct {
	Features        []pageFeature
	Reason, Message string
	// Who has the users that differ.
	Who []string
	// Next are commands for the first of the features.
	Next []string
}

// groupsOf returns the issues. The page's features are in the same order.
func groupsOf(features []v1alpha1.Feature, rows []pageFeature, kinds []troubleKind) []pageGroup {
	var groups []pageGroup
	for _, kind := range kinds {
		group := pageGroup{troubleKind: kind}
		index := map[string]int{}
		for i := range features {
			found := kind.find(&features[i].Status)
			if len(found) > 0 {
				group.Count++
			}
			for _, c := range found {
				entry := pageEntry{Reason: c.Reason, Message: c.Message}
				if c.Type == v1alpha1.ConditionUsesMatch {
					entry.Who = rows[i].Differing
				}
				key := c.Reason + "\n" + c.Message + "\n" + strings.Join(entry.Who, "\n")
				at, told := index[key]
				if !told {
					at = len(group.Entries)
					index[key] = at
					entry.Next = kind.next(c.Reason, quoted(features[i].Name)+namespaceFlag(&features[i]), features[i].Namespace == metav1.NamespaceSystem)
					group.Entries = append(group.Entries, entry)
				}
				group.Entries[at].Features = append(group.Entries[at].Features, rows[i])
			}
		}
		if group.Count > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}

// differing names the live users of another value than the expected one.
func differing(f *v1alpha1.Feature) []string {
	value, known := expectedValue(f)
	var who []string
	for _, use := range f.Status.Uses {
		if differs(use, value, known) {
			who = append(who, planned(use))
		}
	}
	return who
}

// rolloutOf returns a line about a canary, "" when there is none.
func rolloutOf(f *v1alpha1.Feature) string {
	r := f.Status.Rollout
	if r == nil {
		return ""
	}
	text := fmt.Sprintf("%d %% of the instances", ptr.Deref(r.Observed.Percent, 100))
	if len(r.Observed.Components) > 0 {
		text += " of " + strings.Join(r.Observed.Components, ", ")
	}
	text += " take the value " + transition.OnOff(r.Value)
	if r.Halted {
		text += "; halted"
	}
	if r.Message != "" {
		text += ": " + r.Message
	}
	if len(r.FailedInstances) > 0 {
		text += " (" + strings.Join(r.FailedInstances, ", ") + ")"
	}
	return text
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// quoted returns a name quoted for shells: users copy commands, and names are
// chosen by the creators of Features.
func quoted(name string) string {
	if plainWord.MatchString(name) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
