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
	"slices"
	"testing"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/leader"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

// TestAFlowEndsBeforeItsProcess: the replica of an operator that looked after a feature is
// told to end, and its work takes long. It still counts as a user and has to agree, and the
// other one brings the feature forward, and takes away reports.
func TestAFlowEndsBeforeItsProcess(t *testing.T) {
	l := newLeftovers()
	inWorld(t, func(w *world) {
		ids := []string{"s1", "s2"}
		first := leader.Of("A", ids)
		other := ids[1-slices.Index(ids, first)]
		for _, id := range ids {
			w.report("server", id, asked(gate("A", true)))
			w.serve(id)
		}
		w.until(time.Minute, "on", func() bool { return w.state("A") == v1alpha1.StateOn })
		w.stop(w.servers[first])
		renew := w.lease("server", first)
		defer renew()
		says := map[string]string{v1alpha1.AnnotationControllerStopped: "true"}

		// Some of these are first's, as long as that runs a flow.
		w.leased = true
		w.annotations = map[string]string{v1alpha1.AnnotationTerminating: "true"}
		var gone []string
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			w.report("comp", name, asked(gate("B", false)))
			gone = append(gone, "comp."+name)
		}
		if !slices.ContainsFunc(gone, func(report string) bool { return leader.Of(report, ids) == first }) {
			t.Fatalf("%s takes none of these reports away; this test needs more", first)
		}
		w.annotations = says
		w.report("server", first, asked(gate("A", true)))
		w.annotations = nil
		w.report("server", other, asked(gate("A", false)))
		w.until(2*time.Minute, "reports of processes that have ended to go", func() bool {
			return !slices.ContainsFunc(gone, w.reported)
		})
		w.pass(time.Minute)
		if c := w.condition("A", v1alpha1.ConditionConsistent); w.state("A") != v1alpha1.StateOn || c.Reason != v1alpha1.ReasonServersDisagree {
			t.Errorf("%s has the feature on, which is %s, and it says %+v", first, w.state("A"), c)
		}
		w.annotations = says
		w.report("server", first, asked(gate("A", false)))
		w.until(time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
	}, l.declare("A"))
}

// TestLeads: servers that report and run a flow, and of them those that know the gate
// if any server does.
func TestLeads(t *testing.T) {
	knows := tracker.Server{ID: "s1", Reported: true, Knows: true}
	plain := tracker.Server{ID: "s2", Reported: true}
	missing := tracker.Server{ID: "s3"}
	ended := tracker.Server{ID: "s4", Reported: true, Knows: true, ControllerStopped: true}
	for sentence, test := range map[string]struct {
		servers []tracker.Server
		leads   string
	}{
		"one that knows the gate":               {[]tracker.Server{knows, plain, missing}, "s1"},
		"no server knows the gate":              {[]tracker.Server{plain, missing}, "s2"},
		"the flow of another has ended":         {[]tracker.Server{ended, knows}, "s1"},
		"those that know the gate have no flow": {[]tracker.Server{ended, plain}, ""},
		"none that reports, and none at all":    {[]tracker.Server{missing}, ""},
	} {
		for _, id := range []string{"s1", "s2", "s3", "s4"} {
			c := &observer{config: &Config{ServerID: id}}
			if got := c.leads("A", test.servers); got != (id == test.leads) {
				t.Errorf("%s: %s leads: %t, want %q to", sentence, id, got, test.leads)
			}
		}
	}
}
