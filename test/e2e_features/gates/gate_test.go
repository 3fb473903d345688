//go:build linux

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

package gates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycletest"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// world is a cluster and the kit for it.
type world struct {
	*framework.Cluster
	*lifecycletest.Kit
	// edited are the IDs of the objects whose template was edited to release
	// features.
	edited map[string]bool
}

func start(t *testing.T, config localcluster.Config) *world {
	t.Helper()
	w := &world{Cluster: framework.Start(t, config), edited: map[string]bool{}}
	var err error
	if w.Kit, err = lifecycletest.KitFor(w.Config, metav1.NamespaceSystem); err != nil {
		t.Fatal(err)
	}
	w.Release = w.release
	return w
}

// logLines is how much of its log is shown of a process that ended by itself.
const logLines = 40

// stop ends everything but etcd and returns what that was. What ended by itself
// before is an error: without a controller manager, say, finalizers stay, and with
// them features that wait.
func (w *world) stop(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, p := range w.Processes() {
		if p.Name == localcluster.Etcd {
			continue
		}
		if !p.Alive() {
			t.Errorf("%s ended by itself; the end of its log:\n%s", p.Name, p.Tail(logLines))
		}
		names = append(names, p.Name)
	}
	if err := w.Stop(t.Context(), names...); err != nil {
		t.Fatal(err)
	}
	return names
}

// restart ends everything but etcd, reads the stored objects while there are no
// writers, and starts everything with other arguments.
func (w *world) restart(t *testing.T, arguments map[string][]string) moment {
	t.Helper()
	names := w.stop(t)
	view := w.moment(t)
	for _, name := range names {
		w.SetArgs(name, arguments[name]...)
	}
	if err := w.Restart(t.Context(), nil, names...); err != nil {
		t.Fatalf("restarting: %v", err)
	}
	w.Mapper.Reset()
	return view
}

// TestEveryGate turns all open gates on in a cluster that has never had them on,
// uses them, turns all of them off, and reads from etcd what is left: gates that
// depend on each other go off together, and one start of everything serves all.
// With FEATURE=X it does that for X, and what depends on it, alone; all other
// gates have their defaults then.
func TestEveryGate(t *testing.T) {
	entries, all := cases(t)
	on, off := together(names(entries)...)
	turns, err := inTurn(entries, all)
	if err != nil {
		t.Fatal(err)
	}
	turned := map[gate]bool{}
	passage{
		entries: entries, all: all, nodes: hollowNodes(), turns: turns, begin: off.arguments(), on: on.arguments(),
		off: func(w *world, turn []*lifecycletest.Case) map[string][]string {
			return w.turnOff(turned, on, turn).arguments()
		},
		gone: gone(off),
	}.run(t)
}

// passage takes features of a cluster that has never had them on through on, used, off and
// pristine.
type passage struct {
	// entries have the verdicts and all the objects of the features, in the same order.
	entries []catalog.Entry
	all     []*lifecycletest.Case
	// nodes is the number of hollow nodes.
	nodes int
	// turns are the features that are turned off by one restart, one restart after the
	// other.
	turns [][]*lifecycletest.Case
	// begin, on and off return the arguments of each component before the features are on,
	// while they are on, and from a turn on.
	begin, on map[string][]string
	off       func(w *world, turn []*lifecycletest.Case) map[string][]string
	// gone are the entries of all gates that are off in the end.
	gone []catalog.Entry
}

// run reports one row for each feature.
func (p passage) run(t *testing.T) {
	entries, all := p.entries, p.all
	rows := map[string]*row{}
	for _, entry := range entries {
		rows[string(entry.Name)] = &row{gate: string(entry.Name), verdict: verdict(entry), failed: true}
		results.add(rows[string(entry.Name)])
	}
	begun := time.Now()
	step := func(what string) { t.Logf("%6.1f s %s", time.Since(begun).Seconds(), what) }

	// The cluster changes its map.
	w := start(t, localcluster.Config{Nodes: p.nodes, ExtraArgs: maps.Clone(p.begin)})
	control := w.begin(t)
	never := w.restart(t, p.on)
	step("begun, with all of them off")
	ctx, cancel := context.WithTimeout(t.Context(), framework.Patience)
	defer cancel()
	if err := w.WaitFor(ctx, v1alpha1.StateOn, nil, all...); err != nil {
		t.Fatal(err)
	}
	step("on")
	w.use(t, all, control)
	w.waitForControllers(t, p.gone)
	step("used")

	var before *lifecycletest.View
	for _, turn := range p.turns {
		if len(turn) == 0 {
			continue
		}
		view := w.restart(t, p.off(w, turn)).View
		if before == nil {
			before = view
			for _, c := range all {
				r := rows[string(c.Feature.Name)]
				r.used = c.Count(t.Context(), before)
				r.problems = c.Used(t.Context(), before, append(slices.Clone(all), control)...)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), framework.Patience)
		defer cancel()
		outcomes, err := w.WaitUntilOff(ctx, view, turn...)
		if err != nil {
			t.Error(err)
		}
		for name, outcome := range outcomes {
			rows[name].held, rows[name].problems = len(outcome.Held), append(rows[name].problems, outcome.Problems...)
		}
		step("off")
	}

	after := w.stored(t)
	results.complain(t, w.unchanged(before, after, control, all)...)
	for i, c := range all {
		r := rows[string(c.Feature.Name)]
		left, problems := c.Left(t.Context(), after)
		remains, wrong := w.stayed(t, entries[i], c, all, before, after)
		copied, came := w.copied(t, entries[i], c, before, after)
		r.left, r.remains, r.copies = left, remains, copied.String()
		r.problems = slices.Concat(r.problems, problems, wrong, came)
		for _, problem := range r.problems {
			t.Error(problem)
		}
		r.failed = len(r.problems) > 0
	}
	w.stop(t)
	results.complain(t, pristine(never, w.moment(t), p.gone, all)...)
}

// inTurn puts features into turns. A feature that takes a collection away comes after those
// that have fields in it: they have to be off before, or their fields cannot be examined.
// A gate goes off no sooner than those that depend on it, which go off with it. It is an error
// if features wait for each other.
func inTurn(entries []catalog.Entry, all []*lifecycletest.Case) ([][]*lifecycletest.Case, error) {
	turn := map[gate]int{}
	dependencies := utilfeature.DefaultFeatureGate.Dependencies()
	for settled := false; !settled; {
		settled = true
		for _, entry := range entries {
			earliest := turn[entry.Name]
			for _, other := range entries {
				if entry.Name != other.Name && takesFieldsOf(entry, other) {
					earliest = max(earliest, turn[other.Name]+1)
				}
				if slices.Contains(dependencies[other.Name], entry.Name) {
					earliest = max(earliest, turn[other.Name])
				}
			}
			if earliest >= len(entries) {
				return nil, fmt.Errorf("%s has to go off after a feature that has to go off after it; see which collections each of them deletes, and in which it has fields", entry.Name)
			}
			settled = settled && earliest == turn[entry.Name]
			turn[entry.Name] = earliest
		}
	}
	var turns [][]*lifecycletest.Case
	for i, entry := range entries {
		for len(turns) <= turn[entry.Name] {
			turns = append(turns, nil)
		}
		turns[turn[entry.Name]] = append(turns[turn[entry.Name]], all[i])
	}
	return turns, nil
}

// TestInTurn: a feature that deletes a collection goes off after those with fields in it.
func TestInTurn(t *testing.T) {
	entry := func(name gate, collection, of string) catalog.Entry {
		return catalog.Entry{Feature: lifecycle.Feature{Name: name}, Retained: []catalog.Remainder{
			{Field: task.Field{Resource: schema.GroupResource{Resource: collection}}},
			{Field: task.Field{Resource: schema.GroupResource{Resource: of}, Path: "spec.field"}},
		}}
	}
	order := func(entries ...catalog.Entry) ([]string, error) {
		var all []*lifecycletest.Case
		for _, e := range entries {
			all = append(all, &lifecycletest.Case{Feature: e.Feature})
		}
		turns, err := inTurn(entries, all)
		var names []string
		for _, turn := range turns {
			for i, c := range turn {
				names = append(names, fmt.Sprintf("%d %s", i, c.Feature.Name))
			}
		}
		return names, err
	}
	got, err := order(entry("First", "lamps", "bulbs"), entry("Second", "bulbs", "sockets"), entry("Third", "sockets", "others"))
	if diff := cmp.Diff([]string{"0 First", "0 Second", "0 Third"}, got); err != nil || diff != "" {
		t.Errorf("a chain: %v (-want +got)\n%s", err, diff)
	}
	got, err = order(entry("Third", "lamps", "bulbs"), entry("Other", "bulbs", "lamps"))
	if err == nil {
		t.Errorf("features that wait for each other: got the turns %v, want an error", got)
	}
}

// takesFieldsOf returns whether a feature's end deletes a collection in which another has
// fields.
func takesFieldsOf(entry, other catalog.Entry) bool {
	return slices.ContainsFunc(entry.Stores(), func(collection task.Field) bool {
		return collection.Path == "" && slices.ContainsFunc(other.Stores(), func(f task.Field) bool {
			return f.Path != "" && f.Resource == collection.Resource
		})
	})
}

// turnOff adds the gates of cases to those that are off, and returns all values.
func (w *world) turnOff(off map[gate]bool, on gates, turn []*lifecycletest.Case) gates {
	var names []gate
	for _, c := range turn {
		names = append(names, c.Feature.Name)
	}
	_, values := together(names...)
	for name, value := range values {
		if !value {
			off[name] = true
		}
	}
	all := gates{}
	for name := range on {
		all[name] = !off[name]
	}
	for name := range off {
		all[name] = false
	}
	return all
}

// gone are the entries of gates that went off.
func gone(values gates) []catalog.Entry {
	return slices.DeleteFunc(catalog.All(), func(e catalog.Entry) bool {
		on, is := values[e.Name]
		return on || !is
	})
}

func names(entries []catalog.Entry) []gate {
	var names []gate
	for _, entry := range entries {
		names = append(names, entry.Name)
	}
	return names
}

const (
	// controllersPatience is the time that controllers may take to make of fixtures
	// what they make; the machine may be busy.
	controllersPatience = framework.Patience
	controllersPeriod   = 500 * time.Millisecond
)

// use creates the objects of all cases, and waits until controllers have done
// with them what they do.
func (w *world) use(t *testing.T, all []*lifecycletest.Case, control *lifecycletest.Case) {
	t.Helper()
	for _, c := range all {
		if err := w.Use(t.Context(), c); err != nil {
			t.Errorf("%v; every object has to be accepted with the gate on", err)
		}
	}
	w.waitForCopies(t, append(slices.Clone(all), control)...)
	// What controllers make of the objects is a part of the use: each task has
	// to find something. What lacks then is told when the objects are looked at.
	waiting, failed := all, error(nil)
	err := wait.PollUntilContextTimeout(t.Context(), controllersPeriod, controllersPatience, true, func(ctx context.Context) (bool, error) {
		view := w.stored(t)
		waiting = slices.DeleteFunc(slices.Clone(waiting), func(c *lifecycletest.Case) bool {
			return len(c.Used(ctx, view, append(slices.Clone(all), control)...)) == 0
		})
		failed = w.writeStatus(ctx, waiting)
		return len(waiting) == 0, nil
	})
	for _, c := range waiting {
		t.Logf("%s is not in use as its fixture has it, after %s: %q", c.Feature.Name, controllersPatience, c.Used(t.Context(), w.stored(t), append(slices.Clone(all), control)...))
	}
	if err != nil && failed != nil {
		t.Errorf("the status of a fixture is not what its feature needs, and could not be written again: %v", failed)
	}
}

// writeStatus writes the status of StatefulSets once more. Their controller makes the first
// status of a set from what it saw before the fixture's was there.
func (w *world) writeStatus(ctx context.Context, cases []*lifecycletest.Case) error {
	var problems []error
	for _, c := range cases {
		for _, object := range c.Objects {
			status, has := object.Object["status"]
			if !has || object.GetKind() != "StatefulSet" {
				continue
			}
			patch, err := json.Marshal(map[string]any{"status": status})
			if err == nil {
				err = w.patchStatus(ctx, object, patch)
			}
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %s %s: %w", c.Fixture, object.GetKind(), object.GetName(), err))
			}
		}
	}
	return errors.Join(problems...)
}

// patchStatus applies a merge patch to the status of an object.
func (w *world) patchStatus(ctx context.Context, object *unstructured.Unstructured, patch []byte) error {
	client, err := w.client(object)
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// unchanged compares the control objects, and of the objects that used features
// what is left beside the fields that went (S7).
func (w *world) unchanged(before, after *lifecycletest.View, control *lifecycletest.Case, all []*lifecycletest.Case) []string {
	var problems []string
	now := after.ByID()
	cleared := map[string][]task.Field{}
	for _, c := range all {
		for _, t := range c.Feature.OnDisable {
			for _, field := range t.Fields {
				if strings.HasPrefix(t.Name, "ClearField/") {
					cleared[field.Resource.String()] = append(cleared[field.Resource.String()], field)
				}
			}
		}
	}
	compare := func(c *lifecycletest.Case, must bool) {
		for _, was := range c.Own(before).Objects {
			is, ok := now[was.ID()]
			switch {
			case !ok && must:
				problems = append(problems, was.ID()+" did not use any feature and is gone")
			case ok:
				removed := cleared[was.Resource.String()]
				if w.edited[was.ID()] {
					removed = append(slices.Clone(removed), task.Field{Path: "spec.template.spec"}, task.Field{Path: "spec.updateStrategy"}, task.Field{Path: "status"})
				}
				if diff := lifecycletest.Changed(steady(was), steady(is), removed); diff != "" {
					problems = append(problems, was.ID()+" changed elsewhere than in what its feature stores (-before +after):\n"+diff)
				}
			}
		}
	}
	compare(control, true)
	for _, c := range all {
		compare(c, false)
	}
	return problems
}

// restless are the resources with a status that controllers write into all the
// time: they were restarted, too, and nothing answers what they ask. The statuses
// of all others are compared, so that clearing a field of one damages nothing else.
var restless = []string{"horizontalpodautoscalers", "nodes"}

// steady is an object without what controllers write into it all the time.
func steady(object lifecycletest.Object) *unstructured.Unstructured {
	copied := object.DeepCopy()
	if slices.Contains(restless, object.Resource.Resource) {
		delete(copied.Object, "status")
	}
	if object.Resource.Resource == "apiservices" {
		// kube-apiserver makes them again for versions that it did not serve meanwhile.
		delete(copied.Object, "status")
		unstructured.RemoveNestedField(copied.Object, "metadata", "uid")
		unstructured.RemoveNestedField(copied.Object, "metadata", "creationTimestamp")
	}
	if object.Resource.Resource == "nodes" {
		// No kubelet is behind the Nodes of fixtures, so they are tainted.
		unstructured.RemoveNestedField(copied.Object, "spec", "taints")
		// Written a moment after a Node was created.
		unstructured.RemoveNestedField(copied.Object, "metadata", "annotations", "node.alpha.kubernetes.io/ttl")
	}
	return copied
}
