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
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// scenario is what an exploration takes through everything that can happen meanwhile: one
// change of the value or the version of A, on servers that restart one by one.
type scenario struct {
	servers, users int
	// begin is the value of A that all begin with, from the version that they have then;
	// end and to are those that they have after the script.
	begin, end bool
	from, to   string
	// script is what an administrator does, in this order.
	script []step
}

// budget is how much can still go wrong on a path.
type budget struct {
	// faults are writes that are lost or not answered, servers that end before or after
	// one or at any other moment, and attempts that fail or are blocked.
	faults int
	// delays are watches and queues that lag, and things that happen in another order
	// than the usual one.
	delays int
}

func (b budget) covers(other budget) bool {
	return b.faults >= other.faults && b.delays >= other.delays
}

// exploration visits every state of a scenario that is within a budget, once.
type exploration struct {
	scenario
	budget
	// most is how many states there may be at most: more than expected would take for ever.
	most int

	// seen are the budgets that states were reached with.
	seen map[[sha256.Size]byte][]budget
	// todo are paths that lead where no other has: what is chosen at each place.
	todo [][]byte
	// states are those seen, choices what was tried in them, ends how many paths came to
	// an end, from which L1 and L2 were judged, longest the most choices of one.
	states, choices, ends, longest int
}

// walk is one path of an exploration.
type walk struct {
	*cluster
	scenario scenario
	// rest is what is left of the budget.
	rest budget
	// next is the place in the script, last when the step before it was.
	next int
	last time.Duration
	// late are watches and queues that are held back, until when.
	late map[lateness]time.Duration
	// taken is what was chosen so far.
	taken []byte
}

// lateness is a watch of a server, or its queue.
type lateness struct {
	server int
	kind   kind
}

const queueOf = kinds

// choice is one thing that can happen next.
type choice struct {
	name string
	cost budget
	do   func()
}

// explore returns the path on which an invariant does not hold, nil if there is none.
func (e *exploration) explore(t *testing.T) *walk {
	e.seen = map[[sha256.Size]byte][]budget{}
	for e.todo = [][]byte{nil}; len(e.todo) > 0; {
		last := len(e.todo) - 1
		prefix := e.todo[last]
		e.todo = e.todo[:last]
		if w := e.follow(t.Context(), prefix); w.violation != "" {
			e.seen, e.todo = nil, nil
			return e.follow(t.Context(), w.taken)
		}
		if e.states > e.most {
			t.Fatalf("there are more than %d states", e.most)
		}
	}
	return nil
}

// follow takes a path and continues as usual, until everything is at rest or a state is
// reached that is known. Other ways to continue are left to do. Without a record of states
// it traces the path.
func (e *exploration) follow(ctx context.Context, prefix []byte) *walk {
	w := e.scenario.walk(ctx, e.budget)
	w.tracing = e.seen == nil
	defer w.end()
	for w.violation == "" && !w.atEnd() {
		w.housekeep()
		all := w.enabled()
		if len(w.taken) >= len(prefix) && e.seen != nil {
			if e.knows(w.fingerprint(), w.rest) {
				return w
			}
			e.states++
			e.choices += len(all)
			for i := 1; i < len(all); i++ {
				e.todo = append(e.todo, append(slices.Clone(w.taken), byte(i)))
			}
		}
		pick := 0
		if n := len(w.taken); n < len(prefix) {
			pick = int(prefix[n])
		}
		w.choose(all[pick], byte(pick))
		if len(w.taken) > 2000 {
			w.violate("L1: no end after %d choices", len(w.taken))
		}
	}
	if w.violation == "" {
		w.recover(values{w.scenario.end, false}, w.scenario.to)
		e.ends++
	}
	e.longest = max(e.longest, len(w.taken))
	return w
}

// knows returns true for a state that was seen with as much left, and remembers it.
func (e *exploration) knows(state [sha256.Size]byte, left budget) bool {
	for _, other := range e.seen[state] {
		if other.covers(left) {
			return true
		}
	}
	e.seen[state] = append(slices.DeleteFunc(e.seen[state], left.covers), left)
	return false
}

// walk begins a path.
func (s scenario) walk(ctx context.Context, rest budget) *walk {
	begin := schedule{Skews: make([]time.Duration, s.servers), Users: s.users, Begin: values{s.begin, false}}
	w := &walk{cluster: newCluster(ctx, begin), scenario: s, rest: rest, late: map[lateness]time.Duration{}}
	for _, p := range w.processes() {
		p.version = s.from
	}
	w.begin(begin)
	return w
}

func (w *walk) choose(c choice, number byte) {
	w.tracef("* %s", c.name)
	w.taken = append(w.taken, number)
	w.rest.faults -= c.cost.faults
	w.rest.delays -= c.cost.delays
	c.do()
	w.settleJobs()
}

// atEnd returns true once the script is over and everything is at rest.
func (w *walk) atEnd() bool {
	if w.next < len(w.scenario.script) || len(w.jobs) > 0 || !w.finished(values{w.scenario.end, false}, w.scenario.to) {
		return false
	}
	return !slices.ContainsFunc(w.servers, func(r *replica) bool { return !r.works() })
}

// housekeep does what changes nothing for A, in one order: servers hear that Leases are
// renewed, and reconcile B.
func (w *walk) housekeep() {
	for _, r := range w.servers {
		for i := r.informers[leaseKind]; r.up && i.behind() > 0; {
			change := w.etcd.log[leaseKind][i.next]
			if _, known, _ := i.indexer.GetByKey(change.key); !known || change.gone {
				break
			}
			w.take(r, leaseKind, 1, true)
		}
		for r.works() && r.queue.due("B") {
			w.sync(r, "B")
		}
	}
	w.settleJobs()
	for l, until := range w.late {
		if until <= w.now {
			delete(w.late, l)
		}
	}
}

// enabled returns all that can happen now. The first is what usually does, and costs
// nothing.
func (w *walk) enabled() []choice {
	usual := w.usual()
	all := usual
	for i := range all[1:] {
		all[i+1].cost = budget{delays: 1}
	}
	all = append(all, w.delays()...)
	all = append(all, w.faults()...)
	return slices.DeleteFunc(all, func(c choice) bool { return !w.rest.covers(c.cost) })
}

// usual is what happens without faults and delays, in that order: servers hear of changes,
// reconcile, and work; those that ended are started again; the administrator continues when
// it is time and those that were restarted have reported; time passes.
func (w *walk) usual() []choice {
	var all []choice
	for n, r := range w.servers {
		for k := range kinds {
			if r.up && r.informers[k] != nil && r.informers[k].behind() > 0 && !w.holds(n, k) {
				all = append(all, choice{name: fmt.Sprintf("%s hears of %s", r.id, k), do: func() { w.take(r, k, 1, true) }})
			}
		}
	}
	for n, r := range w.servers {
		if w.reconciles(n, r) {
			all = append(all, choice{name: r.id + " reconciles", do: func() { w.sync(r, "A") }})
		}
	}
	for _, j := range w.jobs {
		if !j.ended {
			all = append(all, choice{name: j.server.id + " works", do: func() { w.stepJob(j, 0) }})
		}
	}
	for _, r := range w.servers {
		if !r.up {
			all = append(all, choice{name: r.id + " starts again", do: func() { w.serve(r, r.values, 0, 0) }})
		}
	}
	passes := choice{name: "time passes", do: func() { w.pass(w.nextForced() - w.now) }}
	if w.next == len(w.scenario.script) {
		return append(all, passes)
	}
	s := w.scenario.script[w.next]
	continues := choice{name: s.String(), do: func() { w.next, w.last = w.next+1, w.now; w.do(s) }}
	if w.now < w.last+s.After || slices.ContainsFunc(w.processes(), func(p *process) bool { return p.up && !p.reported }) {
		return append(all, passes, continues)
	}
	return append(all, continues, passes)
}

func (w *walk) reconciles(n int, r *replica) bool {
	return r.works() && r.queue.due("A") && !w.holds(n, queueOf)
}

func (w *walk) holds(server int, k kind) bool {
	_, holds := w.late[lateness{server, k}]
	return holds
}

// delays are that a server hears of something, or reconciles, as late as the model permits.
func (w *walk) delays() []choice {
	var all []choice
	one := budget{delays: 1}
	for n, r := range w.servers {
		for k := range kinds {
			if r.up && r.informers[k].behind() > 0 && !w.holds(n, k) {
				all = append(all, choice{fmt.Sprintf("%s hears late of %s", r.id, k), one, func() { w.late[lateness{n, k}] = w.now + w.lag }})
			}
		}
		if w.reconciles(n, r) {
			all = append(all, choice{r.id + " reconciles late", one, func() { w.late[lateness{n, queueOf}] = w.now + w.patience }})
		}
	}
	return all
}

// faults are what goes wrong.
func (w *walk) faults() []choice {
	var all []choice
	one := budget{faults: 1}
	for n, r := range w.servers {
		if r.up {
			all = append(all, choice{r.id + " ends", one, func() { w.crash(r) }})
		}
		if !w.reconciles(n, r) {
			continue
		}
		for f := lost; f < fates; f++ {
			for in := 1; in <= 2; in++ {
				name := fmt.Sprintf("%s reconciles, and its write %d: %s", r.id, in, [...]string{"", "lost", "not answered", "it ends before", "it ends after"}[f])
				all = append(all, choice{name, one, func() {
					r.fate, r.fateIn = f, in
					w.sync(r, "A")
					r.fateIn = 0
				}})
			}
		}
	}
	for _, j := range w.jobs {
		if !j.ended && !j.waits {
			all = append(all, choice{j.server.id + " fails", one, func() { w.stepJob(j, 4) }}, choice{j.server.id + " is blocked", one, func() { w.stepJob(j, 6) }})
		}
	}
	return all
}

// oldest is from when on ages are alike: longer than any period of the model.
const oldest = time.Minute

// ago returns how long ago something was, or how long until then.
func (w *walk) ago(at time.Duration) time.Duration {
	if at == never || at == -never {
		return at
	}
	return min(w.now-at, oldest)
}

func (w *walk) agoOf(at *metav1.Time) time.Duration {
	if at == nil {
		return never
	}
	return w.ago(at.Sub(start))
}

// fingerprint tells states apart by what the next steps can depend on: stored objects, what
// each server has heard of them, queues, attempts and times. A transition is one of an order
// in it, not a name.
func (w *walk) fingerprint() [sha256.Size]byte {
	var b strings.Builder
	fmt.Fprintln(&b, w.next, w.ago(w.last), w.leftovers(), w.ago(w.failedWrite), w.agedTruth())
	f := w.etcd.feature("A")
	w.describeFeature(&b, f)
	if v := w.etcd.value("A"); v != nil && f != nil {
		fmt.Fprintln(&b, "value", v.Value, v.FeatureVersion == f.ResourceVersion)
	}
	for n, r := range w.servers {
		w.describeServer(&b, n, r)
	}
	for _, u := range w.users {
		w.describeProcess(&b, u)
	}
	for _, j := range w.jobs {
		fmt.Fprintln(&b, "job", j.server.id, j.task, j.left, j.waits, j.ended, w.ago(j.canceled), f != nil && f.Status.Transition != nil && f.Status.Transition.ID == j.transition)
	}
	return sha256.Sum256([]byte(b.String()))
}

// leftovers is what tasks have left.
func (w *walk) leftovers() [2]int { return [2]int{w.left[clearing[0]], w.left[clearing[1]]} }

func (w *walk) agedTruth() truth {
	t := *w.truths["A"]
	t.goalSince, t.begun, t.waited, t.pausedSince = w.ago(t.goalSince), w.ago(t.begun), w.ago(t.waited), 0
	return t
}

func (w *walk) describeFeature(b *strings.Builder, f *v1alpha1.Feature) {
	if f == nil {
		fmt.Fprintln(b, "none")
		return
	}
	s := f.Status
	fmt.Fprint(b, s.State, s.Version, s.StoredVersions, s.Control, w.agoOf(s.StateSince))
	if s.Configured != nil {
		fmt.Fprint(b, " ", s.Configured.Value, s.Configured.Source, s.Configured.Previous != nil && *s.Configured.Previous)
	}
	if t := s.Transition; t != nil {
		fmt.Fprint(b, " ", w.ago(t.StartTime.Sub(start)), t.Reason, t.FromState, t.ToVersion, t.Interrupted)
	}
	for _, t := range s.Tasks {
		last := never
		if t.LastAttemptTime != nil {
			last = w.ago(t.LastAttemptTime.Sub(start))
		}
		fmt.Fprint(b, " ", t.Name, t.Attempts, t.Done, t.Total, t.Checkpoint, last)
	}
	for _, c := range s.Conditions {
		fmt.Fprint(b, " ", c.Type, c.Status, c.Reason)
	}
	fmt.Fprintln(b)
}

func (w *walk) describeProcess(b *strings.Builder, p *process) {
	fmt.Fprint(b, p.instance, p.up, p.values, p.version, p.reported, p.storedVersion, p.ending, w.ago(p.upSince), w.ago(p.reportAt), w.ago(p.renewAt), w.ago(p.stopAt))
	if p.stored != nil {
		fmt.Fprint(b, p.stored[0].value, w.ago(p.stored[0].from))
	}
	if l, ok := w.etcd.objects[leaseKind]["leases/"+p.reportName()]; ok {
		fmt.Fprint(b, " ", w.renewed(l))
	}
	fmt.Fprintln(b)
}

// renewed is how long ago a Lease was renewed.
func (w *walk) renewed(l metav1.Object) time.Duration {
	return w.ago(l.(*coordinationv1.Lease).Spec.RenewTime.Sub(start))
}

// describeServer has of a server what its process has, what its caches have, what waits in
// its queue and what it attempts.
func (w *walk) describeServer(b *strings.Builder, n int, r *replica) {
	w.describeProcess(b, &r.process)
	if !r.up {
		return
	}
	for k, i := range r.informers {
		fmt.Fprint(b, i.behind(), len(i.pending), w.ago(r.tellAt[k]), w.ago(w.late[lateness{n, kind(k)}]), " ")
		for _, c := range w.etcd.log[k][i.next:] {
			fmt.Fprint(b, c.key, c.gone, w.ago(c.at), " ")
		}
	}
	fmt.Fprint(b, w.ago(w.late[lateness{n, queueOf}]))
	if f, ok, _ := r.informers[featureKind].indexer.GetByKey("ns/A"); ok {
		w.describeFeature(b, f.(*v1alpha1.Feature))
	}
	for _, key := range sortedKeys(r.informers[reportKind]) {
		report, _, _ := r.informers[reportKind].indexer.GetByKey(key)
		spec := report.(*v1alpha1.FeatureReport).Spec
		fmt.Fprint(b, key, spec.EmulationVersion, len(spec.Features) > 0 && spec.Features[0].Enabled, len(report.(*v1alpha1.FeatureReport).Annotations))
	}
	fmt.Fprint(b, sortedKeys(r.informers[leaseKind]))
	for _, times := range []map[string]time.Duration{r.queue.ready, r.queue.waiting} {
		at, ok := times["A"]
		fmt.Fprint(b, ok, w.ago(at))
	}
	fmt.Fprint(b, w.ago(r.nextTick))
	if a := r.controller.runner.attempt("A"); a != nil {
		ended := never
		if !a.Ended.IsZero() {
			ended = w.ago(a.Ended.Sub(start))
		}
		f := w.etcd.feature("A")
		fmt.Fprint(b, a.Task, a.Outcome, a.Previous, a.Done, a.Total, a.Checkpoint, a.Retry, ended, f.Status.Transition != nil && f.Status.Transition.ID == a.TransitionID)
	}
	led, leads := r.controller.led.sinces["A"]
	fmt.Fprintln(b, leads, w.ago(led.Sub(start)))
}

func sortedKeys(i *informer) []string {
	keys := i.indexer.ListKeys()
	slices.Sort(keys)
	return keys
}

// restarts are that servers restart one by one with a value of A and a version, the first
// after a time, and then users.
func (s scenario) restarts(after time.Duration, on bool, version string) scenario {
	what := 0
	if on {
		what = 1
	}
	first := len(s.script)
	for n := range s.servers {
		step := step{Do: toRestart, Who: n, What: what}
		if version == "1.35" {
			step.What += 48
		}
		s.script = append(s.script, step)
	}
	for n := range s.users {
		s.script = append(s.script, step{Do: toRestartUser, Who: n, What: what})
	}
	s.script[first].After = after
	s.end, s.to = on, version
	return s
}

// scenarios have one change each, and one that is taken back.
func scenarios(servers int) map[string]scenario {
	at := func(on bool, version string) scenario {
		return scenario{servers: servers, users: 1, begin: on, from: version}
	}
	return map[string]scenario{
		"on":   at(false, "1.36").restarts(0, true, "1.36"),
		"off":  at(true, "1.36").restarts(0, false, "1.36"),
		"back": at(true, "1.36").restarts(0, false, "1.36").restarts(2*time.Second, true, "1.36"),
		"down": at(true, "1.36").restarts(0, true, "1.35"),
		"up":   at(true, "1.35").restarts(0, true, "1.36"),
	}
}

// exhaustiveFlag is the environment variable that turns on what takes minutes.
const exhaustiveFlag = "MODEL_EXHAUSTIVE"

// TestExhaustive takes small clusters through the states that faults and delays at many
// places can lead to, within a budget of both: what budgets there are, and how many states,
// is what it prints. S1 to S4 hold at each write, L1 after each path.
func TestExhaustive(t *testing.T) {
	short := map[string][]budget{"off": {{faults: 1}, {delays: 1}}, "down": {{faults: 1}}}
	all, most := map[int]map[string][]budget{2: short}, 10000
	if os.Getenv(exhaustiveFlag) == "y" {
		most = 1000000
		two, three := []budget{{faults: 2}, {faults: 1, delays: 1}, {delays: 2}}, []budget{{faults: 1}, {delays: 1}}
		all = map[int]map[string][]budget{
			2: {"on": two, "off": two, "back": three, "down": two, "up": two},
			3: {"on": three, "off": three, "back": three, "down": three, "up": three},
		}
	}
	if given := os.Getenv("MODEL_BUDGET"); given != "" {
		var name string
		var servers int
		var b budget
		if _, err := fmt.Sscan(given, &name, &servers, &b.faults, &b.delays); err != nil {
			t.Fatal(err)
		}
		all = map[int]map[string][]budget{servers: {name: {b}}}
	}
	for servers, budgets := range all {
		for name, budgets := range budgets {
			for _, b := range budgets {
				t.Run(fmt.Sprintf("%s/%d servers, %d faults, %d delays", name, servers, b.faults, b.delays), func(t *testing.T) {
					t.Parallel()
					e := &exploration{scenario: scenarios(servers)[name], budget: b, most: most}
					if w := e.explore(t); w != nil {
						t.Errorf("%s\n%s", strings.Join(w.trace, "\n"), w.violation)
					}
					t.Logf("explored %s with %d servers, %d faults, %d delays: %d states, %d choices in them; %d paths to an end, the longest of %d choices", name, servers, b.faults, b.delays, e.states, e.choices, e.ends, e.longest)
				})
			}
		}
	}
}
