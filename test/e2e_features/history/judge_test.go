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

package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/utils/ptr"
)

// told makes up a history. Its revisions and seconds grow with each record.
type told struct {
	t        *testing.T
	records  []Record
	revision int64
	versions map[string]int64
	now      time.Time
}

func tell(t *testing.T) *told {
	return &told{t: t, versions: map[string]int64{}, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func (h *told) json(object any) json.RawMessage {
	h.t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		h.t.Fatal(err)
	}
	return data
}

func (h *told) add(r Record) *told {
	h.now = h.now.Add(time.Second)
	r.At = h.now
	h.records = append(h.records, r)
	return h
}

func (h *told) store(key string, object any) *told {
	h.revision++
	h.versions[key]++
	return h.add(Record{Kind: Stored, Key: key, Revision: h.revision, Version: h.versions[key], Object: h.json(object)})
}

// feature stores a Feature that is in a state with tasks.
func (h *told) feature(state v1alpha1.FeatureState, transition string, tasks ...string) *told {
	return h.store(FeaturesKey+cleared, feature(state, transition, tasks...))
}

func feature(state v1alpha1.FeatureState, transition string, tasks ...string) *v1alpha1.Feature {
	f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Name: cleared, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: server, Subresource: "status"}}}}
	f.Status.State, f.Status.Control = state, v1alpha1.ControlLocal
	if transition != "" {
		f.Status.Transition = &v1alpha1.FeatureTransition{ID: transition, Reason: v1alpha1.TransitionConfiguration}
	}
	for _, name := range tasks {
		f.Status.Tasks = append(f.Status.Tasks, v1alpha1.FeatureTask{Name: name})
	}
	return f
}

// server stores the Lease and the report of a server.
func (h *told) server(name, holder, version string, enabled bool) *told {
	h.renew(name, holder)
	report := &v1alpha1.FeatureReport{ObjectMeta: metav1.ObjectMeta{Name: server + "." + name}}
	report.Spec.Component, report.Spec.EmulationVersion = server, version
	report.Spec.Features = []v1alpha1.ReportedFeature{{Name: cleared, Enabled: enabled}}
	return h.store(ReportsKey+report.Name, report)
}

func (h *told) renew(name, holder string) *told {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: server + "." + name, UID: "u"}}
	lease.Spec.HolderIdentity = ptr.To(holder)
	return h.store(ServerLeasesKey+name, lease)
}

func (h *told) set(change func(*appsv1.StatefulSet)) *told {
	set := framework.StatefulSet("s", intstr.FromInt32(1))
	if change != nil {
		change(set)
	}
	return h.store(StatefulSetsKey+"s", set)
}

func (h *told) pass(long time.Duration) *told {
	h.now = h.now.Add(long)
	return h
}

// saw is what a client saw of the version that was stored last, or of an older one.
func (h *told) saw(kind Kind, verb string, back int64, f *v1alpha1.Feature) *told {
	return h.add(Record{Kind: kind, Client: "c", Verb: verb, Began: h.now, Key: FeaturesKey + cleared, Revision: h.revision - back, Object: h.json(f)})
}

const waits, clears = v1alpha1.TaskWaitForUses, "ClearIt"

// on are two servers with the feature on and an object that has the field.
func on(t *testing.T) *told {
	return tell(t).server("a", "p1", "1.37", true).server("b", "p2", "1.37", true).feature(v1alpha1.StateOn, "").set(nil)
}

// off restarts both with the feature off.
func (h *told) off() *told {
	h.server("a", "p3", "1.37", false).server("b", "p4", "1.37", false).pass(20 * time.Second)
	return h
}

func (h *told) renewed() *told { return h.pass(time.Minute).renew("a", "p3").renew("b", "p4") }

func without(set *appsv1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil }

func TestJudge(t *testing.T) {
	attempted := feature(v1alpha1.StateTurningOff, "t", waits, clears)
	attempted.Status.Tasks[1].Attempts = 1
	stranger := feature(v1alpha1.StateOn, "")
	stranger.ManagedFields[0].Manager = "kubectl"
	isOn, turns := feature(v1alpha1.StateOn, ""), feature(v1alpha1.StateTurningOff, "t", waits)
	moves := feature(v1alpha1.StateDowngrading, "t", waits)
	moves.Status.Transition.Reason, moves.Status.Transition.ToVersion = v1alpha1.TransitionVersion, "1.36"
	for name, test := range map[string]struct {
		history *told
		// want begins the only violation, "" for none.
		want string
	}{
		"all is well": {on(t).off().feature(v1alpha1.StateTurningOff, "t", waits, clears).feature(v1alpha1.StateTurningOff, "t", clears).set(without).
			feature(v1alpha1.StateOff, "").renewed(), ""},
		"a state while tasks are left":                      {on(t).feature(v1alpha1.StateTurningOff, "t", waits, clears).feature(v1alpha1.StateOff, ""), "S1: "},
		"an attempt before waiting is over":                 {on(t).store(FeaturesKey+cleared, attempted), "S2: "},
		"an object cleared while it is on":                  {on(t).set(without), "S2: "},
		"an object cleared a moment late":                   {on(t).feature(v1alpha1.StateTurningOff, "t", waits, clears).feature(v1alpha1.StateTurningOff, "t", clears).feature(v1alpha1.StateOff, "").set(without), ""},
		"a transition that begins without waiting for uses": {on(t).feature(v1alpha1.StateTurningOff, "t", clears).feature(v1alpha1.StateOff, "").set(without), "S3: "},
		"an object cleared long after":                      {on(t).feature(v1alpha1.StateTurningOff, "t", waits, clears).feature(v1alpha1.StateTurningOff, "t", clears).feature(v1alpha1.StateOff, "").pass(time.Minute).set(without), "S2: "},
		"tasks that are lost":                               {on(t).feature(v1alpha1.StateTurningOff, "t", waits, clears, "x").feature(v1alpha1.StateTurningOff, "t", clears), "S3: "},
		"a Feature that is deleted":                         {on(t).add(Record{Kind: Deleted, Key: FeaturesKey + cleared}), "S3: "},
		"servers with other values": {on(t).server("a", "p3", "1.37", false).pass(20*time.Second).feature(v1alpha1.StateTurningOff, "t", waits).pass(time.Minute).
			renew("a", "p3").renew("b", "p2"), "S4: "},
		"a transition that servers know nothing of": {on(t).pass(20*time.Second).feature(v1alpha1.StateTurningOff, "t", waits).pass(time.Minute).
			renew("a", "p1").renew("b", "p2"), "S4: "},
		"servers of another version than the transition's": {on(t).off().store(FeaturesKey+cleared, moves).renewed(), "S4: "},
		"servers with other versions": {on(t).server("a", "p3", "1.36", false).server("b", "p4", "1.37", false).pass(20*time.Second).
			feature(v1alpha1.StateTurningOff, "t", waits).renewed(), "S4: "},
		"a server that was frozen": {on(t).server("b", "p4", "1.37", false).pass(40*time.Second).renew("b", "p4").pass(15*time.Second).
			feature(v1alpha1.StateTurningOff, "t", waits).pass(time.Minute).renew("a", "p1").renew("b", "p4"), ""},
		"a server that was not heard of yet": {on(t).server("a", "p3", "1.37", false).feature(v1alpha1.StateTurningOff, "t", waits).pass(time.Minute).
			renew("a", "p3").renew("b", "p2"), ""},
		"a server that ended": {on(t).server("a", "p3", "1.37", false).pass(20*time.Second).feature(v1alpha1.StateTurningOff, "t", waits).pass(time.Minute).renew("a", "p3"), ""},
		"a server whose report is of the process before": {on(t).server("a", "p3", "1.37", false).renew("b", "p4").pass(20*time.Second).
			feature(v1alpha1.StateTurningOff, "t", waits).renewed(), ""},
		"a status that a client wrote":  {on(t).store(FeaturesKey+cleared, stranger), "S5: "},
		"the report of one that lives":  {on(t).add(Record{Kind: Deleted, Key: ReportsKey + server + ".a", Revision: 100}).revise(100).renew("a", "p1"), "S5: "},
		"the report of one that is new": {on(t).add(Record{Kind: Deleted, Key: ReportsKey + server + ".a", Revision: 100}).revise(100).renew("a", "p3"), ""},
		"an object that changed elsewhere": {on(t).feature(v1alpha1.StateTurningOff, "t", waits, clears).feature(v1alpha1.StateTurningOff, "t", clears).set(func(s *appsv1.StatefulSet) {
			without(s)
			s.Spec.ServiceName = "other"
		}), "S7: "},
		"an answer that is true":                      {on(t).feature(v1alpha1.StateOn, "").saw(Answered, "get", 0, isOn), ""},
		"an answer that was never stored":             {on(t).feature(v1alpha1.StateOn, "").saw(Answered, "get", 0, turns), "client: "},
		"an answer of a revision that never was":      {on(t).feature(v1alpha1.StateOn, "").revise(100).feature(v1alpha1.StateOn, "").saw(Answered, "get", 50, isOn).unask(), "client: "},
		"an answer that is older than what was known": {on(t).feature(v1alpha1.StateOn, "").feature(v1alpha1.StateOn, "").pass(time.Second).saw(Answered, "get", 1, isOn), "client: "},
		"a watch that brings all": {on(t).watching().saw(Watched, "list", 1, isOn).feature(v1alpha1.StateOn, "").saw(Watched, "watch", 0, isOn).
			feature(v1alpha1.StateOn, "").saw(Watched, "watch", 0, isOn), ""},
		"a watch that leaves one out": {on(t).watching().saw(Watched, "list", 1, isOn).feature(v1alpha1.StateOn, "").feature(v1alpha1.StateOn, "").
			saw(Watched, "watch", 0, isOn), "client: "},
		"a watch that leaves the first out": {on(t).watching().saw(Watched, "list", 1, isOn).feature(v1alpha1.StateOn, "").feature(v1alpha1.StateOn, "").
			saw(Watched, "watch", 0, isOn), "client: "},
		"a list that is old":                            {on(t).feature(v1alpha1.StateOn, "").watching().saw(Watched, "list", 1, isOn), "client: "},
		"a list without a Feature":                      {on(t).watching().feature(v1alpha1.StateOn, "").saw(Watched, "watch", 0, isOn), "client: "},
		"a Feature that is created while it is watched": {tell(t).watching().feature(v1alpha1.StateOn, "").saw(Watched, "watch", 0, isOn), ""},
		"a watch that goes back": {on(t).feature(v1alpha1.StateOn, "").watching().saw(Watched, "list", 0, isOn).feature(v1alpha1.StateOn, "").saw(Watched, "watch", 0, isOn).
			saw(Watched, "watch", 1, isOn), "client: "},
	} {
		t.Run(name, func(t *testing.T) {
			verdict, err := Judge(test.history.records)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(verdict.Violations); (n > 0) != (test.want != "") || n > 1 || n == 1 && !strings.HasPrefix(verdict.Violations[0], test.want) {
				t.Errorf("violations %q, want one of %q", verdict.Violations, test.want)
			}
		})
	}
}

func (h *told) watching() *told {
	return h.add(Record{Kind: Watching, Client: "c", Revision: h.revision})
}

// revise continues with a revision.
func (h *told) revise(revision int64) *told {
	h.revision = revision
	return h
}

// unask makes the last request one that began before all else.
func (h *told) unask() *told {
	h.records[len(h.records)-1].Began = time.Time{}
	return h
}

// TestAHistoryWithoutAllWritesIsRefused, unless etcd was compacted.
func TestAHistoryWithoutAllWritesIsRefused(t *testing.T) {
	whole := on(t).feature(v1alpha1.StateOn, "").feature(v1alpha1.StateOn, "").feature(v1alpha1.StateOn, "")
	last := len(whole.records) - 1
	cut := append(append([]Record{}, whole.records[:last-1]...), whole.records[last])
	if _, err := Judge(cut); err == nil {
		t.Error("it is judged without a write")
	}
	swapped := append(append([]Record{}, whole.records[:last-1]...), whole.records[last], whole.records[last-1])
	if _, err := Judge(swapped); err == nil {
		t.Error("it is judged in another order")
	}
	gap := append(append([]Record{}, whole.records[:last-1]...), Record{Kind: Compacted, Key: FeaturesKey, Revision: whole.revision}, whole.records[last])
	if verdict, err := Judge(gap); err != nil || len(verdict.Violations) > 0 {
		t.Errorf("with a compaction in between: %v, %v", verdict, err)
	}
}

// TestAGapHidesWhatWasInIt: what is not known is not judged, and what comes behind is.
func TestAGapHidesWhatWasInIt(t *testing.T) {
	compacted := func(h *told, folder string) *told {
		return h.add(Record{Kind: Compacted, Key: folder, Revision: h.revision})
	}
	again := func(h *told) *told {
		h.versions = map[string]int64{}
		return h
	}
	for name, test := range map[string]struct {
		history *told
		want    string
	}{
		"an object created again":         {again(compacted(on(t), StatefulSetsKey)).set(without), ""},
		"an object cleared in it":         {compacted(on(t).revise(10).set(nil), FeaturesKey).feature(v1alpha1.StateOn, ""), ""},
		"the report of a server":          {compacted(on(t).server("a", "p3", "1.37", false).pass(20*time.Second), ReportsKey).feature(v1alpha1.StateTurningOff, "t", waits).renewed(), ""},
		"the report of a server, earlier": {compacted(on(t), ReportsKey).off().feature(v1alpha1.StateTurningOn, "t", waits).renewed(), "S4: "},
		"an object cleared after it":      {compacted(on(t), FeaturesKey).set(without), "S2: "},
	} {
		t.Run(name, func(t *testing.T) {
			verdict, err := Judge(test.history.records)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(verdict.Violations); (n > 0) != (test.want != "") || n > 0 && !strings.HasPrefix(verdict.Violations[0], test.want) {
				t.Errorf("violations %q, want one of %q", verdict.Violations, test.want)
			}
		})
	}
}

// TestATamperedHistoryIsRefused: no line can be changed, left out, put in, or moved.
func TestATamperedHistoryIsRefused(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	for i := range 5 {
		w.Add(Record{Kind: Stored, Key: fmt.Sprint(FeaturesKey, i), Revision: int64(i), Object: json.RawMessage(`{"status": {"state": "On<&>"}}`)})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	records, err := Read(bytes.NewReader(out.Bytes()))
	if err != nil || len(records) != 5 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(out.String(), "\n"), "\n")
	lines[len(lines)-1] += "\n"
	for name, text := range map[string]string{
		"changed":              strings.Replace(out.String(), "On", "Off", 1),
		"without a line":       strings.Join(append(append([]string{}, lines[:2]...), lines[3:]...), ""),
		"with a line twice":    strings.Join(append(append([]string{}, lines[:2]...), lines[1:]...), ""),
		"in another order":     lines[1] + lines[0] + strings.Join(lines[2:], ""),
		"without its end":      strings.Join(lines[:5], ""),
		"cut in a line":        out.String()[:out.Len()-20],
		"empty":                "",
		"without what is last": strings.Join(lines[:4], "") + lines[5],
	} {
		if _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s, it is read", name)
		}
	}
}

// TestVerdictSaysWhatWasJudged: what was never compared proves nothing.
func TestVerdictSaysWhatWasJudged(t *testing.T) {
	turned := on(t).off().feature(v1alpha1.StateTurningOff, "t", waits, clears).feature(v1alpha1.StateTurningOff, "t", clears).set(without).feature(v1alpha1.StateOff, "")
	for name, test := range map[string]struct {
		history  *told
		compared int
	}{"servers that live": {turned.renewed(), 1},
		"servers that report something else at that time": {on(t).off().server("a", "p3", "1.37", false).server("b", "p4", "1.37", false).feature(v1alpha1.StateTurningOff, "t", waits).renewed(), 1},
		"servers that change at that time":                {on(t).off().server("a", "p3", "1.37", true).server("b", "p4", "1.37", true).feature(v1alpha1.StateTurningOff, "t", waits).renewed(), 0},
		"servers of which nothing is heard afterwards":    {on(t).off().feature(v1alpha1.StateTurningOff, "t", waits), 0}} {
		verdict, err := Judge(test.history.records)
		if err != nil {
			t.Fatal(err)
		}
		if verdict.Transitions != 1 || verdict.Compared != test.compared {
			t.Errorf("%s: %s, want 1 transition and %d compared", name, verdict, test.compared)
		}
	}
}
