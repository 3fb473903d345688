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

package disruption

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// configure restarts a server with a value of the static gate on its command line.
func (w *world) configure(ctx context.Context, server string, value bool) error {
	return w.handle(ctx, func() error {
		w.setGate(value)
		return w.restartLocked(ctx, server)
	})
}

// setGate is what servers have on their command lines from their next start on.
func (w *world) setGate(value bool) {
	control := w.cluster.Control()
	control.FeatureGates = gates(value)
	w.cluster.SetControl(control)
}

// aims is true for a Feature that is in the state of a value, or on its way there.
func aims(value bool) func(framework.FeatureVersion) bool {
	states := []v1alpha1.FeatureState{v1alpha1.StateOff, v1alpha1.StateTurningOff}
	if value {
		states = []v1alpha1.FeatureState{v1alpha1.StateOn, v1alpha1.StateTurningOn}
	}
	return func(v framework.FeatureVersion) bool { return slices.Contains(states, v.Status.State) }
}

// arrived is true for a Feature that rests in the state of a value.
func arrived(value bool) func(framework.FeatureVersion) bool {
	return func(v framework.FeatureVersion) bool { return framework.AtRest(v) && aims(value)(v) }
}

// flipByRestart gives all servers, one after the other, another value on their
// command lines, and the controller manager, which takes it from them, a restart. From a third of a run on the
// first server has to stay: another one gets a value that it does not agree with,
// and loses it again.
func (w *world) flipByRestart(ctx context.Context, random *rand.Rand) error {
	w.turn.Lock()
	defer w.turn.Unlock()
	history, value := w.history(static), w.wants(static)
	// What was asked for last is to have begun: nothing else may begin from now on.
	if _, err := history.Await(ctx, history.Mark()-1, "on its way", aims(value)); err != nil {
		return err
	}
	mark := history.Mark()
	if w.spares.Load() {
		return w.disagree(ctx, random, mark, value)
	}
	order := random.Perm(len(w.servers))
	for i, n := range order {
		if i == len(order)-1 {
			w.nothingBegan(w.t, history, mark, "servers disagreed")
		}
		if err := w.configure(ctx, w.servers[n].name, !value); err != nil {
			return err
		}
	}
	w.want(static, !value)
	w.stats.count("flips by command line")
	if err := w.restart(ctx, localcluster.ControllerManager); err != nil {
		return err
	}
	if random.IntN(3) == 0 {
		return nil
	}
	_, err := history.Await(ctx, mark, "at rest with the other value", arrived(!value))
	return err
}

// disagree makes one of the servers that crash disagree for a while.
func (w *world) disagree(ctx context.Context, random *rand.Rand, mark int, value bool) error {
	name := w.servers[1+random.IntN(len(w.servers)-1)].name
	if !value {
		begun := time.Now()
		defer func() { w.excuses.add("a kube-apiserver had it on that disagreed", static, begun) }()
	}
	if err := w.configure(ctx, name, !value); err != nil {
		return err
	}
	history := w.history(static)
	_, err := history.Await(ctx, mark, "found inconsistent", disagreeing)
	if err != nil {
		return err
	}
	hold(ctx, between(random, time.Second, 5*time.Second))
	w.nothingBegan(w.t, history, mark, "servers disagreed")
	w.stats.count("servers that disagreed for a while")
	return w.configure(ctx, name, value)
}

func (w *world) restart(ctx context.Context, name string) error {
	return w.handle(ctx, func() error { return w.restartLocked(ctx, name) })
}

// restartLocked restarts a component; one that crash has killed starts.
func (w *world) restartLocked(ctx context.Context, name string) error {
	defer w.faults.begin(name)()
	w.down[name] = true
	if err := w.cluster.Restart(ctx, nil, name); err != nil {
		return err
	}
	delete(w.down, name)
	return nil
}

// nothingBegan checks S4: since a mark nothing has begun, nor has the state of a feature at
// rest changed. It returns how often it did.
func (w *world) nothingBegan(t *testing.T, history *framework.History, mark int, while string) (began int) {
	t.Helper()
	versions := history.Since(max(mark-1, 0))
	last, first := versions[0].Status.Transition, versions[0].Status.State
	for _, v := range versions {
		switch now := v.Status.Transition; {
		case now != nil && (last == nil || last.ID != now.ID):
			t.Errorf("S4: transition %s to %s began while %s", now.ID, v.Status.State, while)
			began, last = began+1, now
		case now == nil && framework.AtRest(versions[0]) && v.Status.State != first:
			t.Errorf("S4: the state became %s while %s", v.Status.State, while)
		}
	}
	return began
}

// deck deals the numbers below n in a random order, all of them before one comes again: what is
// one of few choices comes in a short run, too. The zero value is ready to use, by one goroutine.
type deck struct{ left []int }

func (d *deck) deal(random *rand.Rand, n int) int {
	if len(d.left) == 0 {
		d.left = random.Perm(n)
	}
	dealt := d.left[0]
	d.left = d.left[1:]
	return dealt
}

// flipThroughAPI changes the spec of a feature as people do: the value, for all or
// for a part of the instances, a hold, or the end of one.
func (w *world) flipThroughAPI(ctx context.Context, random *rand.Rand) error {
	name := dynamics[random.IntN(len(dynamics))]
	patch, value := "", w.wants(name)
	switch w.changes.deal(random, 8) {
	case 0, 1, 2:
		value = !value
		patch = fmt.Sprintf(`{"spec":{"enabled":%t,"rollout":null}}`, value)
		w.stats.count("flips through the API")
	case 3, 4:
		value = !value
		patch = fmt.Sprintf(`{"spec":{"enabled":%t,"rollout":{"percent":%d}}}`, value, random.IntN(100))
		w.stats.count("flips through the API")
		w.stats.count("canaries")
	case 5:
		patch = fmt.Sprintf(`{"spec":{"rollout":{"percent":%d}}}`, random.IntN(101))
		w.stats.count("canaries changed")
	case 6:
		patch = `{"spec":{"paused":true}}`
		w.stats.count("pauses")
	case 7:
		patch = `{"spec":{"paused":false}}`
		w.stats.count("resumes")
	}
	if err := w.patch(ctx, random, name, patch); err != nil {
		return err
	}
	w.want(name, value)
	if random.IntN(3) > 0 {
		return nil
	}
	// Sometimes people wait for what they asked for, for a while.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, _ = w.history(name).Await(ctx, 0, "as requested", arrived(value))
	return nil
}

func (w *world) patch(ctx context.Context, random *rand.Rand, feature, patch string) error {
	return w.try(ctx, random, "changing the spec of "+feature, func(ctx context.Context, s server) error {
		begun := time.Now()
		changed, err := s.features.FeaturesV1alpha1().Features(systemNS).Patch(ctx, feature, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		w.answered(request{s.name, begun}, "patch", changed, err)
		if apierrors.IsConflict(err) {
			w.stats.count("conflicts of people")
		}
		return err
	})
}

// release ends what holds features, so that all can converge: canaries and pauses.
func (w *world) release(ctx context.Context, random *rand.Rand) error {
	for _, name := range dynamics {
		if err := w.patch(ctx, random, name, fmt.Sprintf(`{"spec":{"enabled":%t,"paused":false,"rollout":null}}`, w.wants(name))); err != nil {
			return err
		}
	}
	return nil
}

// rollingRestart restarts server by server. No transition starts before all
// agree, exactly one after.
func rollingRestart(t *testing.T, w *world, row *row) {
	for range form(w.settings, 3, 1) {
		w.turnOn(t)
		r := w.begin(t, row)
		for i, s := range w.servers {
			if i == len(w.servers)-1 {
				r.row.lost(w.nothingBegan(t, r.history, r.mark, "servers disagreed"), 0)
				// Those that live agree as soon as the last one stops.
				r.injected()
			}
			if err := w.configure(t.Context(), s.name, false); err != nil {
				t.Fatal(err)
			}
			if i < len(w.servers)-1 {
				r.history.Wait(t, r.mark, "found inconsistent", disagreeing)
				hold(t.Context(), 3*time.Second)
			}
		}
		took := r.restOff(t)
		w.said("S4: nothing began while servers disagreed; Off %.1f s after the last began to restart", took.Seconds())
		want := []v1alpha1.FeatureState{v1alpha1.StateOn, v1alpha1.StateTurningOff, v1alpha1.StateOff}
		if diff := cmp.Diff(want, framework.States(r.history.Since(r.mark))); diff != "" {
			t.Errorf("S4: unexpected states (-want +got):\n%s", diff)
		}
	}
}

// disagreeing and mixed are true for a Feature that says why nothing begins.
var (
	disagreeing = framework.Because(v1alpha1.ConditionConsistent, v1alpha1.ReasonServersDisagree)
	mixed       = framework.Because(v1alpha1.ConditionProgressing, v1alpha1.ReasonMixedVersions)
)

// mixedVersions emulates the minor version before in one server. Although all configure
// the same value, nothing starts, and the Feature says why.
func mixedVersions(t *testing.T, w *world, row *row) {
	w.turnOn(t)
	r := w.begin(t, row)
	others, last := w.servers[:len(w.servers)-1], w.servers[len(w.servers)-1].name
	before := framework.Minor(framework.PreviousVersion)
	w.cluster.SetArgs(last, append([]string{"--emulated-version=" + before}, serverFlags...)...)
	if err := w.configure(t.Context(), last, false); err != nil {
		t.Fatal(err)
	}
	r.history.Wait(t, r.mark, "found inconsistent", disagreeing)
	w.configureAll(t, false, others...)
	w.said("%s emulates %s", last, before)
	r.history.Wait(t, r.mark, "held by mixed versions", mixed)
	hold(t.Context(), 5*time.Second)
	if v := r.history.Last(); !mixed(v) {
		t.Errorf("Progressing does not say MixedVersions any more: %+v", v.Status.Conditions)
	}
	row.lost(w.nothingBegan(t, r.history, r.mark, "versions were mixed"), 0)
	w.cluster.SetArgs(last, serverFlags...)
	r.injected()
	if err := w.configure(t.Context(), last, false); err != nil {
		t.Fatal(err)
	}
	r.restOff(t)
}
