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
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

// TestUnreadableReportedOfEnabledFeature checks condition and event of a cluster whose
// servers were replaced without a check, from the first search to the feature's end.
func TestUnreadableReportedOfEnabledFeature(t *testing.T) {
	f, now := feature(v1alpha1.StateOn), start
	all := []Finding{
		{ResourceLeftovers: v1alpha1.ResourceLeftovers{Resource: "lamps", Count: 2, Examples: []string{"ns/a", "ns/b"}}, Unread: "no server can decode it"},
		{ResourceLeftovers: v1alpha1.ResourceLeftovers{Resource: "lamps", Field: "spec.hue", Count: 1, Examples: []string{"ns/c"}}, Unread: "1.37 does not have the field spec.hue"},
		{ResourceLeftovers: v1alpha1.ResourceLeftovers{Resource: "widgets", Field: "spec.x", Count: 3}},
	}
	found, read, failed := &Leftovers{Resources: all}, &Leftovers{Resources: all[2:]}, &Leftovers{Err: "no key"}
	unread := declared
	unread.Unread, unread.Clears = true, []string{"delete every object of lamps", "remove spec.x from every stored object of widgets"}
	for _, step := range []struct {
		what   string
		on     bool
		found  *Leftovers
		reason string
		events int
	}{
		{"not searched", true, nil, v1alpha1.ReasonInUse, 0},
		{"the first search fails", true, failed, v1alpha1.ReasonNotExamined, 0},
		{"another server leads, and has not searched what could not be", true, nil, v1alpha1.ReasonNotExamined, 0},
		{"nothing is found", true, &Leftovers{}, v1alpha1.ReasonInUse, 0},
		{"a search fails before something was found", true, failed, v1alpha1.ReasonNotExamined, 0},
		{"a part of it fails, and others find something", true, &Leftovers{Resources: all, Err: "no key"}, v1alpha1.ReasonUnreadable, 1},
		{"all of it is searched", true, found, v1alpha1.ReasonUnreadable, 0},
		{"it still is", true, found, v1alpha1.ReasonUnreadable, 0},
		{"another server leads, and has not searched", true, nil, v1alpha1.ReasonUnreadable, 0},
		{"a search fails", true, failed, v1alpha1.ReasonUnreadable, 0},
		{"a part fails, and what others find is read", true, &Leftovers{Resources: all[2:], Err: "no key"}, v1alpha1.ReasonUnreadable, 0},
		{"what is found is read", true, read, v1alpha1.ReasonInUse, 0},
		{"it returns", true, found, v1alpha1.ReasonUnreadable, 1},
		{"the feature turns off", false, found, v1alpha1.ReasonInUse, 0},
	} {
		d := Next(f, View{Servers: []tracker.Server{server("a", step.on)}, Declared: unread, Leftovers: step.found}, settings, now)
		f.Status = d.Status
		now = now.Add(time.Minute)
		clean := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionClean)
		var events []Event
		for _, event := range d.Events {
			if event.Reason == EventUnreadable {
				events = append(events, event)
			}
		}
		if clean.Reason != step.reason || len(events) != step.events {
			t.Errorf("%s: got %s and the events %v, want %s and %d", step.what, clean.Reason, events, step.reason, step.events)
		}
		if step.found != nil && step.found.Err != "" && (len(step.found.Resources) == len(all) || step.reason == v1alpha1.ReasonNotExamined) != strings.Contains(clean.Message, "failed and is tried again: no key") {
			t.Errorf("%s: the message is %q", step.what, clean.Message)
		}
		if step.reason == v1alpha1.ReasonNotExamined && clean.Status != metav1.ConditionUnknown {
			t.Errorf("%s: status %s", step.what, clean.Status)
		}
		if step.reason != v1alpha1.ReasonUnreadable {
			continue
		}
		if clean.Status != metav1.ConditionFalse || Progress(&f.Status) != v1alpha1.ReasonUnreadable {
			t.Errorf("%s: status %s, progress %q", step.what, clean.Status, Progress(&f.Status))
		}
		for _, says := range []string{
			"2 lamps (ns/a, ns/b): no server can decode it", "1 lamps have spec.hue (ns/c): 1.37 does not have the field spec.hue",
			"another version stored", "servers of the version that stored it read it, unless it is damaged", "set --feature-gates=F=false in all components, wait until it is Off, and turn it on again",
			"also removes everything else that it stores, so save that, too: delete every object of lamps; remove spec.x from every stored object of widgets",
		} {
			if !strings.Contains(clean.Message, says) {
				t.Errorf("%s: the message is %q, want it to say %q", step.what, clean.Message, says)
			}
		}
		if strings.Contains(clean.Message, "3 widgets") {
			t.Errorf("%s: the message names what is read: %q", step.what, clean.Message)
		}
		for _, event := range events {
			if !event.Warning || event.Message != clean.Message {
				t.Errorf("%s: the event is %+v", step.what, event)
			}
		}
	}
}

// TestUnreadableOfDynamicFeature: its value is in the API.
func TestUnreadableOfDynamicFeature(t *testing.T) {
	f := enabled(feature(v1alpha1.StateOn))
	servers := controlled([]tracker.Server{server("a", true)}, v1alpha1.ControlDynamic)
	found := &Leftovers{Resources: []Finding{{ResourceLeftovers: v1alpha1.ResourceLeftovers{Resource: "lamps", Count: 1}, Unread: "no server can decode it"}}}
	d := Next(f, View{Servers: servers, Declared: declared, Leftovers: found}, settings, start)
	clean := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionClean)
	if clean.Reason != v1alpha1.ReasonUnreadable || !strings.Contains(clean.Message, "set spec.enabled to false") || strings.Contains(clean.Message, "everything else") {
		t.Errorf("Clean is %+v", clean)
	}
}

// TestFailedInspectionOfEnabledFeature: a search that has nothing to find of a feature that
// is on does not make what it stores unknown.
func TestFailedInspectionOfEnabledFeature(t *testing.T) {
	d := Next(feature(v1alpha1.StateOn), View{Servers: []tracker.Server{server("a", true)}, Declared: declared, Leftovers: &Leftovers{Err: "no schemas"}}, settings, start)
	if clean := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionClean); clean.Reason != v1alpha1.ReasonInUse {
		t.Errorf("Clean is %+v", clean)
	}
}
