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
