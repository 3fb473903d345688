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
	found := &Leftovers{
		Resources: []v1alpha1.ResourceLeftovers{
			{Resource: "lamps", Count: 2, Examples: []string{"ns/a", "ns/b"}},
			{Resource: "lamps", Field: "spec.hue", Count: 1, Examples: []string{"ns/c"}},
			{Resource: "widgets", Field: "spec.x", Count: 3},
		},
		Held:   []bool{false, false, false},
		Unread: []string{"no server can decode it", "1.37 does not have the field spec.hue", ""},
	}
	for _, step := range []struct {
		what   string
		on     bool
		found  *Leftovers
		reason string
		events int
	}{
		{"not searched", true, nil, v1alpha1.ReasonInUse, 0},
		{"nothing is found", true, &Leftovers{}, v1alpha1.ReasonInUse, 0},
		{"something is found", true, found, v1alpha1.ReasonUnreadable, 1},
		{"it still is", true, found, v1alpha1.ReasonUnreadable, 0},
		{"another server leads, and has not searched", true, nil, v1alpha1.ReasonUnreadable, 0},
		{"a search fails", true, &Leftovers{Err: "no etcd"}, v1alpha1.ReasonUnreadable, 0},
		{"what is found is read", true, &Leftovers{Resources: found.Resources[2:], Unread: []string{""}}, v1alpha1.ReasonInUse, 0},
		{"it returns", true, found, v1alpha1.ReasonUnreadable, 1},
		{"the feature turns off", false, found, v1alpha1.ReasonInUse, 0},
	} {
		d := Next(f, View{Servers: []tracker.Server{server("a", step.on)}, Declared: declared, Leftovers: step.found}, settings, now)
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
		if step.reason != v1alpha1.ReasonUnreadable {
			continue
		}
		if clean.Status != metav1.ConditionFalse || Progress(&f.Status) != v1alpha1.ReasonUnreadable {
			t.Errorf("%s: status %s, progress %q", step.what, clean.Status, Progress(&f.Status))
		}
		for _, says := range []string{
			"2 lamps (ns/a, ns/b): no server can decode it", "1 lamps have spec.hue (ns/c): 1.37 does not have the field spec.hue",
			"servers of the older version read it", "set --feature-gates=F=false in all components, wait until it is Off, and turn it on again",
		} {
			if !strings.Contains(clean.Message, says) {
				t.Errorf("%s: the message is %q, want it to say %q", step.what, clean.Message, says)
			}
		}
		if strings.Contains(clean.Message, "widgets") {
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
	found := &Leftovers{Resources: []v1alpha1.ResourceLeftovers{{Resource: "lamps", Count: 1}}, Unread: []string{"no server can decode it"}}
	d := Next(f, View{Servers: servers, Declared: declared, Leftovers: found}, settings, start)
	clean := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionClean)
	if clean.Reason != v1alpha1.ReasonUnreadable || !strings.Contains(clean.Message, "set spec.enabled to false") {
		t.Errorf("Clean is %+v", clean)
	}
}
