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

package flip

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	componentfeaturegate "k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"
	// Adds Kubernetes' gates to the gate.
	_ "k8s.io/kubernetes/pkg/features"

	"k8s.io/kubernetes-features/test/benchmark/fleet"
	"k8s.io/kubernetes-features/test/benchmark/measure"
)

var features, values = v1alpha1.Resource("features"), v1alpha1.Resource("featurevalues")

// outcome is what one size gave.
type outcome struct {
	processes   int
	bound, peer kindOutcome
	// started is what it took that all processes began to follow, memory what they add
	// once all watch. alone and followed are the cluster at rest without and with
	// followers.
	started         measure.Part
	memory          measure.Live
	alone, followed measure.Part
	flips           []flipped
	// before is the same with the kube-apiserver of an earlier commit, nil without one.
	before *outcome
}

// flipped is one flip of the dynamic value.
type flipped struct {
	changed
	// counted is the time at which status.uses was right, ended when the transition had ended, from
	// the request on.
	counted, ended time.Duration
	// reported is the time at which the server had answered the last report of the new value.
	reported time.Duration
	// settling is what went on after the window in which all kinds of watchers are
	// looked at.
	settling measure.Part
}

// follow measures ours.
func (w *world) follow(ctx context.Context, found *outcome) error {
	processes := w.fleet.Processes()
	rest := func(ctx context.Context) error { return measure.Pause(ctx, w.options.Rest) }
	var err error
	if found.alone, err = w.meter.During(ctx, features, rest); err != nil {
		return err
	}
	at, err := w.meter.Memory(ctx)
	if err != nil {
		return err
	}
	before, err := w.open(ctx, w.followed)
	if err != nil {
		return err
	}
	w.bed.Say("%d processes: all begin to follow", w.n)
	b := &board{}
	if found.started, err = w.meter.During(ctx, w.followed, func(ctx context.Context) error {
		if err := followAll(ctx, processes, b); err != nil {
			return err
		}
		return w.untilOpen(ctx, w.followed, func(n float64) bool { return n >= before+float64(w.n) })
	}); err != nil {
		return err
	}
	w.bed.Say("%d processes: all follow after %.0f s; answers 429: %s", w.n, found.started.Seconds, refusals(found.started))
	after, err := w.meter.Memory(ctx)
	if err != nil {
		return err
	}
	found.memory = after.Less(at)
	if err := measure.Pause(ctx, w.options.Warm); err != nil {
		return err
	}
	if found.followed, err = w.meter.During(ctx, features, w.look); err != nil {
		return err
	}
	enabled := byDefault
	for range w.options.Changes {
		enabled = !enabled
		one, err := w.flip(ctx, b, enabled)
		if err != nil {
			return fmt.Errorf("%s=%t: %w", feature, enabled, err)
		}
		found.flips = append(found.flips, one)
		w.bed.Say("%s=%t: the first has it after %s, the last after %s; uses are right after %s, the transition ended after %s; answers 429: %s, and then %s", feature, enabled,
			one.times.Percentile(0).Round(time.Millisecond), one.times.Max().Round(time.Millisecond), one.counted.Round(time.Millisecond), one.ended.Round(time.Millisecond), refusals(one.load), refusals(one.settling))
	}
	return nil
}

// refusals returns how many requests were turned away, and what priority and fairness has
// against them.
func refusals(p measure.Part) string {
	if p.TooMany == 0 {
		return "none"
	}
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(p.Rejected)) {
		reasons = append(reasons, fmt.Sprintf("%d of %s", int(p.Rejected[why]), why))
	}
	return fmt.Sprintf("%d [%s]", int(p.TooMany), strings.Join(reasons, ", "))
}

// look lets the cluster rest while processes look at the list as often as those do that
// have run for long. By themselves they hardly do in that time: they look less and less
// often, and begun at once they do so together.
func (w *world) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.options.Rest)
	defer cancel()
	return w.fleet.Look(ctx)
}

// report starts the reporters and waits until all are counted.
func (w *world) report(ctx context.Context, processes []*fleet.Process) error {
	counted, err := fleet.FollowUses(ctx, w.Features, w.wanted(byDefault))
	if err != nil {
		return err
	}
	defer counted.Stop()
	for _, p := range processes {
		if err := p.Start(ctx); err != nil {
			return err
		}
	}
	if err := fleet.Reported(ctx, processes); err != nil {
		return err
	}
	_, err = counted.Wait(ctx)
	return err
}

// wanted is what status.uses says when all processes have a value.
func (w *world) wanted(enabled bool) map[fleet.UseKey]int32 {
	n := int32(w.n / fleet.PerNode)
	return map[fleet.UseKey]int32{
		{Feature: feature, Component: fleet.Kubelet, Enabled: enabled}:   n,
		{Feature: feature, Component: fleet.KubeProxy, Enabled: enabled}: n,
	}
}

// followAll makes all processes follow, at once.
func followAll(ctx context.Context, processes []*fleet.Process, b *board) error {
	var group errgroup.Group
	for number, p := range processes {
		group.Go(func() error {
			return p.Follow(ctx, func(enabled bool) { b.show(number, strconv.FormatBool(enabled)) })
		})
	}
	return group.Wait()
}

// flip changes the value as an administrator does, and waits until all processes
// have it, have said so, and the transition has ended.
func (w *world) flip(ctx context.Context, b *board, enabled bool) (one flipped, err error) {
	counted, err := fleet.FollowUses(ctx, w.Features, w.wanted(enabled))
	if err != nil {
		return one, err
	}
	defer counted.Stop()
	profiled := w.profile(ctx, "flip")
	var begun time.Time
	parts, err := w.meter.InTurn(ctx, w.followed, func(ctx context.Context) error {
		now := &change{newArrivals(w.n), strconv.FormatBool(enabled)}
		b.now.Store(now)
		begun = time.Now()
		_, err := w.Features.FeaturesV1alpha1().Features(metav1.NamespaceSystem).Patch(ctx, feature, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"enabled":%t}}`, enabled), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		one.answered = time.Since(begun)
		if one.times, err = now.wait(ctx, begun); err != nil {
			return err
		}
		return w.window(ctx, begun)
	}, func(ctx context.Context) error {
		// That may have been before the window ended.
		right, err := counted.Wait(ctx)
		if err != nil {
			return err
		}
		one.counted = right.Sub(begun)
		one.reported = fleet.LastWritten(w.fleet.Processes()).Sub(begun)
		resting, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		err = w.UntilRests(resting, feature, enabled)
		one.ended = time.Since(begun)
		return err
	})
	one.load, one.settling = parts[0], parts[1]
	return one, errors.Join(err, profiled())
}

// window waits until all that a change costs other clients has been seen, too:
// requests that it held up end later.
func (w *world) window(ctx context.Context, begun time.Time) error {
	return measure.Pause(ctx, time.Until(begun.Add(w.options.Window)))
}

// applies is how often a real process's share is measured.
const applies = 200

// applyTime is what a real process does with a change of its own machine's time: the
// layer takes the value, on a gate that knows all of Kubernetes' gates.
func applyTime() (measure.Distribution, error) {
	gate := featuregate.Wrap(utilfeature.DefaultMutableFeatureGate.DeepCopy())
	gate.Finalize()
	times := &measure.Latencies{}
	for i := range applies {
		want := i%2 == 0
		begun := time.Now()
		gate.SetRemote(map[componentfeaturegate.Feature]featuregate.Remote{feature: {Value: want, Dynamic: true}})
		times.Record(time.Since(begun))
		if gate.Enabled(feature) != want {
			return measure.Distribution{}, fmt.Errorf("a gate does not take %s=%t", feature, want)
		}
	}
	return times.Take(), nil
}
