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
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/stagger"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// TestChangeAfterReconciliationReconciled: an earlier time at which a feature is to be
// looked at wins in the queue, and takes what was put off along. What changes after
// that must not count on it.
func TestChangeAfterReconciliationReconciled(t *testing.T) {
	inWorld(t, func(w *world) {
		c, err := New(Config{Namespace: "ns", Component: "server", ServerID: "s", Tasks: emptyCluster(), Client: w.api(&serverProcess{}), Features: []lifecycle.Feature{{Name: "A"}}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.queue.drain()
		look := func() {
			t.Helper()
			name, quit := c.queue.Get()
			if name != "A" || quit {
				t.Fatalf("the queue has %q, %t", name, quit)
			}
			if err := c.process(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		c.queue.addAfter("A", reportBatch/10)
		c.queue.addBatched("A")
		w.pass(reportBatch / 10)
		look()
		w.pass(reportBatch / 10)
		c.queue.addBatched("A")
		begun := time.Now()
		w.until(2*reportBatch, "A is looked at again", func() bool { return c.queue.Len() == 1 })
		if took := time.Since(begun); took < reportBatch/2 {
			t.Errorf("it was not put off, but looked at after %s", took)
		}
		look()

		// What comes while it is put off already is looked at once.
		for range 10 {
			c.queue.addBatched("A")
			w.pass(reportBatch / 20)
		}
		w.until(2*reportBatch, "A is looked at again", func() bool { return c.queue.Len() == 1 })
		look()
		w.pass(3 * reportBatch)
		if n := c.queue.Len(); n != 0 {
			t.Errorf("the queue has %d more", n)
		}
	})
}

// TestManyReportsAreFoldedForLonger: what is stored is sent to all who watch.
func TestManyReportsAreFoldedForLonger(t *testing.T) {
	b, now := newBatches(), start
	fold := func(changes int) time.Duration {
		t.Helper()
		var period time.Duration
		for i := range changes {
			after, first := b.add("A", now)
			if first != (i == 0) {
				t.Fatalf("change %d of %d: first is %t", i, changes, first)
			}
			period = after
		}
		now = now.Add(period)
		b.taken("A", now)
		return period
	}
	const many = manyReports + 1
	for i, step := range []struct {
		changes int
		want    time.Duration
	}{
		{manyReports, reportBatch}, {many, reportBatch}, {many, 2 * reportBatch}, {many, 4 * reportBatch}, {many, 8 * reportBatch}, {many, 16 * reportBatch},
		{many, longestBatch}, {many, longestBatch},
		{1, longestBatch}, {1, longestBatch / 2}, {1, longestBatch / 4}, {1, longestBatch / 8}, {1, longestBatch / 16}, {1, reportBatch}, {1, reportBatch},
	} {
		if got := fold(step.changes); got != step.want {
			t.Errorf("step %d: folded for %s, want %s", i, got, step.want)
		}
	}
	if least := b.least("A"); least != 0 {
		t.Errorf("with few reports it is left alone for %s", least)
	}

	// It is looked at for other reasons meanwhile, which hides nothing.
	for range many {
		b.add("A", now)
		b.taken("A", now)
	}
	now = now.Add(reportBatch)
	b.taken("A", now)
	if least := b.least("A"); least != 2*reportBatch {
		t.Errorf("with many reports it is left alone for %s, want %s", least, 2*reportBatch)
	}
	// The clock may be set back.
	b.taken("A", now.Add(-time.Hour))
	b.taken("B", now)
	if len(b.of) != 0 {
		t.Errorf("%d features are remembered that have nothing special", len(b.of))
	}
	if after, first := b.add("B", now); after != reportBatch || !first {
		t.Errorf("another feature: %s, %t", after, first)
	}
}

// TestExpectedUsersFoldedFromFirst: counts of the first would be sent to all
// others, who still wait for the value.
func TestExpectedUsersFoldedFromFirst(t *testing.T) {
	for users, want := range map[int]time.Duration{
		0: reportBatch, 100: reportBatch, 1000: reportBatch, 10_000: 24750 * time.Millisecond / counts, 1 << 40: stagger.MaxDelay(1<<40) / counts,
	} {
		b := newBatches()
		b.expect("A", users, start)
		if got, first := b.add("A", start); got != want || got > longestBatch || !first {
			t.Errorf("%d users: folded for %s, first %t; want %s", users, got, first, want)
		}
	}
	b := newBatches()
	b.of["A"] = &batch{period: longestBatch, since: start}
	b.expect("A", 10_000, start)
	if got := b.least("A"); got != longestBatch {
		t.Errorf("reports that come already are folded for %s now", got)
	}
	// No process reports before its turn. The one that was to be the first may have gone.
	b = newBatches()
	b.expect("A", 100_000, start)
	b.add("A", start)
	head, _ := stagger.Confirming(100_000)
	for _, test := range []struct {
		after, next time.Duration
		want        []string
	}{{quietAfter, head, nil}, {head, quietAfter, nil}, {head + quietAfter, 0, []string{"A"}}} {
		if got, next := b.quiet(start.Add(test.after)); !slices.Equal(got, test.want) || next != test.next {
			t.Errorf("after %s: quiet %v, others after %s; want %v and %s", test.after, got, next, test.want, test.next)
		}
	}
	// There were none after all.
	b = newBatches()
	b.expect("A", 10_000, start)
	b.forget(start.Add(3 * longestBatch))
	if len(b.of) != 0 {
		t.Errorf("users are expected for ever: %v", b.of)
	}
}

// TestExpectationsOfReports: the last change that is expected ends the delay, once, and the
// expectation ends with its batch.
func TestExpectationsOfReports(t *testing.T) {
	const users = 10_000
	period := 24750 * time.Millisecond / counts
	expecting := func() *batches {
		b := newBatches()
		b.expect("A", users, start)
		return b
	}
	// add adds changes, and returns how many of them came until one was counted at once.
	add := func(b *batches, changes int) (atOnce int) {
		for i := range changes {
			if after, first := b.add("A", start); after == 0 && first {
				return i + 1
			}
		}
		return 0
	}
	for name, test := range map[string]struct {
		happens func() *batches
		want    int
	}{
		"all arrive, after the feature itself": {expecting, 1 + users},
		"it is reconciled meanwhile": {func() *batches {
			b := expecting()
			add(b, 5000)
			b.taken("A", start)
			b.taken("A", start.Add(period))
			return b
		}, 1 + users - 5000},
		"others are expected now": {func() *batches {
			b := expecting()
			add(b, 5000)
			b.expect("A", users, start)
			return b
		}, 1 + users},
		"reports are folded for longer already": {func() *batches {
			b := newBatches()
			b.of["A"] = &batch{period: longestBatch, since: start}
			b.expect("A", users, start)
			return b
		}, 1 + users},
		"few are expected": {func() *batches {
			b := newBatches()
			b.expect("A", 3, start)
			return b
		}, 1 + 3},
		"none is expected": {func() *batches {
			b := newBatches()
			b.expect("A", 0, start)
			return b
		}, 0},
		"all have arrived": {func() *batches {
			b := expecting()
			add(b, 1+users)
			return b
		}, 0},
		"it is forgotten": {func() *batches {
			b := expecting()
			b.forget(start.Add(3 * longestBatch))
			return b
		}, 0},
		"the few that arrive are taken": {func() *batches {
			b, now := expecting(), start
			for len(b.of) > 0 {
				now = now.Add(period)
				b.taken("A", now)
			}
			return b
		}, 0},
	} {
		if got := add(test.happens(), 3*users); got != test.want {
			t.Errorf("%s: counted at once with change %d, want %d", name, got, test.want)
		}
	}

	// Those that arrive after an early count are few, and counted like these.
	b := expecting()
	add(b, 1+users)
	if b.waits("A") {
		t.Error("it still waits although all have arrived")
	}
	if after, first := b.add("A", start.Add(period)); after != reportBatch || !first {
		t.Errorf("the next one is folded for %s, first %t; want %s", after, first, reportBatch)
	}
}

// TestLastConfirmationIsCountedAtOnce: thousands confirm a value in turn, and what is known
// to be the last one is not waited for. One that comes all the same is counted soon.
func TestLastConfirmationIsCountedAtOnce(t *testing.T) {
	const other, users = "other", 10_000
	inWorld(t, func(w *world) {
		t := w.t
		c, err := New(Config{Namespace: "ns", Component: "server", ServerID: "s", Tasks: emptyCluster(), Client: w.api(&serverProcess{}), Features: []lifecycle.Feature{{Name: "A"}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go c.queue.flushQuiet(ctx)
		defer c.queue.drain()
		reports := func(user int, value bool) tracker.Changes {
			return c.reportSet(report(other, strconv.Itoa(user), v1alpha1.ReportedFeature{Name: "A", Enabled: value, Queried: true}), time.Now())
		}
		take := func() {
			t.Helper()
			name, _ := c.queue.Get()
			if err := c.queue.handle(name, func() error { return nil }); name != "A" || err != nil {
				t.Fatalf("the queue has %q: %v", name, err)
			}
		}
		for user := range users {
			reports(user, true)
		}
		before := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "A"}}
		before.Status.State, before.Status.Uses = v1alpha1.StateOn, []v1alpha1.FeatureUse{{Component: other, Enabled: new(true), Count: users}}
		after := before.DeepCopy()
		after.Status = v1alpha1.FeatureStatus{
			State:      v1alpha1.StateTurningOff,
			Transition: &v1alpha1.FeatureTransition{ID: "1"},
			Tasks:      []v1alpha1.FeatureTask{{Name: v1alpha1.TaskWaitForUses}},
			Configured: &v1alpha1.FeatureConfiguration{},
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionUsesMatch, Status: metav1.ConditionFalse}},
		}
		c.featureStored(before, after)
		head, last := stagger.Confirming(users)
		w.pass(head)
		taken := 0
		for user := range users {
			if user%100 == 0 {
				w.pass((last - head) / (users / 100))
			}
			if c.queue.Len() > 0 {
				take()
				taken++
			}
			c.enqueueChanges(reports(user, false))
			if n := c.queue.Len(); (n > 0) != (user == users-1) {
				t.Fatalf("the queue has %d after %d of %d users", n, user+1, users)
			}
		}
		if taken == 0 {
			t.Error("it was never reconciled meanwhile, so this does not show that the expectation outlasts that")
		}
		take()
		// It was late, and another process reported twice in its place.
		c.enqueueChanges(reports(users, false))
		if n := c.queue.Len(); n != 0 {
			t.Errorf("the queue has %d after one more", n)
		}
		if took := w.until(longestBatch, "one more is counted", func() bool { return c.queue.Len() > 0 }); took != reportBatch {
			t.Errorf("one more was counted after %s, want %s", took, reportBatch)
		}
	})
}

// TestBatchForgotten: the next reports may be few.
func TestBatchForgotten(t *testing.T) {
	b := newBatches()
	for _, test := range []struct {
		after, least time.Duration
	}{{2 * longestBatch, longestBatch}, {2*longestBatch + time.Nanosecond, 0}} {
		b.of["A"] = &batch{period: longestBatch, since: start}
		b.forget(start.Add(test.after))
		if got := b.least("A"); got != test.least {
			t.Errorf("%s after the crowd it is left alone for %s, want %s", test.after, got, test.least)
		}
	}
}

// TestWhenReportsHaveBecomeQuiet: only what is put off for longer than that takes is
// looked at before its time, once.
func TestWhenReportsHaveBecomeQuiet(t *testing.T) {
	b, now := newBatches(), start
	for name, period := range map[string]time.Duration{"A": longestBatch, "B": longestBatch, "C": quietAfter} {
		b.of[name] = &batch{period: period, since: now}
	}
	check := func(what string, wantNext time.Duration, want ...string) {
		t.Helper()
		if got, next := b.quiet(now); !slices.Equal(got, want) || next != wantNext {
			t.Errorf("%s: %v, others after %s; want %v and %s", what, got, next, want, wantNext)
		}
	}
	add := func(name string) bool {
		b.add(name, now)
		select {
		case <-b.putOff:
			return true
		default:
			return false
		}
	}
	check("no report yet", 0)
	for name, want := range map[string]bool{"A": true, "B": true, "C": false, "new": false} {
		if got := add(name); got != want {
			t.Errorf("a report of %s: put off for long is %t, want %t", name, got, want)
		}
	}
	check("at once", quietAfter)
	now = now.Add(quietAfter - time.Millisecond)
	if add("B") {
		t.Error("a feature that is put off already is put off again")
	}
	check("A waits for another millisecond", time.Millisecond)
	now = now.Add(time.Millisecond)
	check("A is quiet", quietAfter-time.Millisecond, "A")
	check("A was looked at", quietAfter-time.Millisecond)
	now = now.Add(quietAfter)
	if !add("A") {
		t.Error("after a look it is not put off again")
	}
	check("B is quiet, too, and A has another report", quietAfter, "B")
}

// TestTheLastOfManyReportsIsCountedSoon: which one is the last is unknown.
func TestTheLastOfManyReportsIsCountedSoon(t *testing.T) {
	inWorld(t, func(w *world) {
		w.report("server", "s1", gate("A", false))
		s, n := w.serve("s1"), 0
		w.until(time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
		// The server's Lease is noticed.
		w.pass(2 * noticePeriod)
		arrive := func() {
			name := strconv.Itoa(n)
			w.node(name, corev1.ConditionTrue)
			w.report(kubelet, name, asked(gate("A", false)))
			n++
		}
		counted := func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			sum := int32(0)
			for _, use := range w.stored("A").Status.Uses {
				if use.Component == kubelet && use.Enabled != nil {
					sum += use.Count
				}
			}
			return sum == int32(n)
		}
		w.until(time.Minute, "reports are folded for long", func() bool {
			for range manyReports {
				arrive()
			}
			return s.controller.queue.batches.least("A") == longestBatch
		})
		if took := w.until(2*longestBatch, "the last report is counted", counted); took < quietAfter || took > quietAfter+reportBatch/2 {
			t.Errorf("it was counted after %s, want %s", took, quietAfter)
		}
	})
}

// TestUrgentFeaturesReconciledDuringManyReports: counts wait, what is to be done does not.
func TestUrgentFeaturesReconciledDuringManyReports(t *testing.T) {
	const other = "other"
	before := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "A", Generation: 1}}
	before.Status = v1alpha1.FeatureStatus{
		State:      v1alpha1.StateTurningOff,
		Transition: &v1alpha1.FeatureTransition{ID: "1"},
		Tasks:      []v1alpha1.FeatureTask{{Name: "one"}, {Name: "two"}},
	}
	stored := func(change func(*v1alpha1.Feature)) func(*Controller) {
		after := before.DeepCopy()
		change(after)
		return func(c *Controller) { c.featureStored(before, after) }
	}
	of := func(component string) func(*Controller) {
		return func(c *Controller) {
			c.enqueueChanges(c.reportSet(report(component, "i", v1alpha1.ReportedFeature{Name: "A", Enabled: true}), time.Now()))
		}
	}
	configured := func(value bool, happens func(*Controller)) func(*Controller) {
		return func(c *Controller) {
			f := before.DeepCopy()
			f.Status.Configured = &v1alpha1.FeatureConfiguration{Value: value}
			if err := c.informers.Features().V1alpha1().Features().Informer().GetIndexer().Add(f); err != nil {
				t.Fatal(err)
			}
			happens(c)
		}
	}
	// Nothing is under way, and no process reports it.
	resting := func(change func(*v1alpha1.Feature)) func(*Controller) {
		return func(c *Controller) {
			delete(c.queue.batches.of, "A")
			old := before.DeepCopy()
			old.Status.State, old.Status.Transition, old.Status.Tasks = v1alpha1.StateOn, nil, nil
			old.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUsesMatch, Status: metav1.ConditionTrue, Message: "one"}}
			after := old.DeepCopy()
			after.Status.Uses, after.Status.Conditions[0].Message = []v1alpha1.FeatureUse{{Component: other}}, "two"
			change(after)
			c.featureStored(old, after)
		}
	}
	awaiting := func(f *v1alpha1.Feature) {
		f.Status.Transition.ID = "2"
		f.Status.Tasks = []v1alpha1.FeatureTask{{Name: v1alpha1.TaskWaitForUses}}
		f.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUsesMatch, Status: metav1.ConditionFalse}}
	}
	for what, test := range map[string]struct {
		happens func(*Controller)
		at      time.Duration
	}{
		"uses":                      {stored(func(f *v1alpha1.Feature) { f.Status.Uses = []v1alpha1.FeatureUse{{Component: other}} }), longestBatch},
		"its configuration":         {stored(func(f *v1alpha1.Feature) { f.Generation++ }), 0},
		"its state":                 {stored(func(f *v1alpha1.Feature) { f.Status.State = v1alpha1.StateOff }), 0},
		"another transition":        {stored(func(f *v1alpha1.Feature) { f.Status.Transition.ID = "2" }), 0},
		"no transition":             {stored(func(f *v1alpha1.Feature) { f.Status.Transition = nil }), 0},
		"another that awaits users": {func(c *Controller) { stored(awaiting)(c) }, longestBatch},
		"another that awaits thousands": {func(c *Controller) {
			delete(c.queue.batches.of, "A")
			old, after := before.DeepCopy(), before.DeepCopy()
			old.Status.Uses = []v1alpha1.FeatureUse{{Component: other, Enabled: new(true), Count: 9_000}, {Component: other, Enabled: new(false), Count: 100_000}, {Component: "third", Enabled: new(true), Count: 1000}}
			awaiting(after)
			after.Status.Configured = &v1alpha1.FeatureConfiguration{}
			c.featureStored(old, after)
		}, 24750 * time.Millisecond / counts},
		"a change of version": {stored(func(f *v1alpha1.Feature) {
			awaiting(f)
			f.Status.State = v1alpha1.StateUpgrading
		}), 0},
		"and a task still runs": {func(c *Controller) {
			c.runner.attempts["A"] = &running{cancel: func() {}, attempt: transition.Attempt{TransitionID: "1"}}
			stored(awaiting)(c)
		}, 0},
		"uses while few report": {func(c *Controller) {
			delete(c.queue.batches.of, "A")
			c.queue.addBatched("A")
			stored(func(f *v1alpha1.Feature) { f.Status.Uses = []v1alpha1.FeatureUse{{Component: other}} })(c)
		}, reportBatch},
		"uses without a user": {func(c *Controller) {
			delete(c.queue.batches.of, "A")
			stored(func(f *v1alpha1.Feature) { f.Status.Uses = []v1alpha1.FeatureUse{{Component: other}} })(c)
		}, 0},
		"counts at rest":                      {resting(func(*v1alpha1.Feature) {}), countPeriod},
		"counts at rest, and a condition":     {resting(func(f *v1alpha1.Feature) { f.Status.Conditions[0].Status = metav1.ConditionFalse }), 0},
		"counts at rest, and what is stored":  {resting(func(f *v1alpha1.Feature) { f.Status.StoredVersions = []string{"1.36"} }), 0},
		"counts of a rollout":                 {resting(func(f *v1alpha1.Feature) { f.Spec.Rollout = &v1alpha1.FeatureRollout{} }), 0},
		"a task is done":                      {stored(func(f *v1alpha1.Feature) { f.Status.Tasks = f.Status.Tasks[1:] }), 0},
		"it came":                             {func(c *Controller) { c.featureAddedOrDeleted(before) }, 0},
		"a user reports":                      {of(other), longestBatch},
		"something is due":                    {func(c *Controller) { c.queue.addDue("A", reportBatch) }, longestBatch},
		"it is due later":                     {func(c *Controller) { c.queue.addDue("A", 2*longestBatch-reportBatch) }, 2*longestBatch - reportBatch},
		"a server reports":                    {of("server"), 0},
		"a server reports what is configured": {configured(true, of("server")), longestBatch},
		"a server reports something else":     {configured(false, of("server")), 0},
		"a server goes": {configured(true, func(c *Controller) {
			c.enqueueChanges(c.reportDeleted(report("server", "i", v1alpha1.ReportedFeature{Name: "A", Enabled: true}), time.Now()))
		}), 0},
		"nothing, but some time": {func(c *Controller) { c.queue.batches.forget(time.Now().Add(3 * longestBatch)) }, never},
	} {
		inWorld(t, func(w *world) {
			c, err := New(Config{Namespace: "ns", Component: "server", ServerID: "s", Tasks: emptyCluster(), Client: w.api(&serverProcess{}), Features: []lifecycle.Feature{{Name: "A"}}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.queue.drain()
			for _, component := range []string{"server", other} {
				c.enqueueChanges(c.reportSet(report(component, "i", v1alpha1.ReportedFeature{Name: "A"}), time.Now()))
			}
			w.pass(2 * reportBatch)
			for c.queue.Len() > 0 {
				name, _ := c.queue.Get()
				c.queue.Done(name)
			}
			c.queue.batches.of["A"] = &batch{period: longestBatch, since: time.Now()}
			begun := time.Now()
			test.happens(c)
			most := 2 * longestBatch
			if test.at != never {
				most += test.at
			}
			for c.queue.Len() == 0 && time.Since(begun) <= most {
				w.pass(reportBatch / 10)
			}
			took := never
			if c.queue.Len() > 0 {
				took = time.Since(begun)
			}
			if took < test.at || test.at != never && took > test.at+reportBatch/2 {
				t.Errorf("%s: looked at after %s, want %s", what, took, test.at)
			}
			if test.at == never && c.queue.batches.least("A") != 0 {
				t.Errorf("%s: it is left alone for %s still", what, c.queue.batches.least("A"))
			}
		})
	}
}
