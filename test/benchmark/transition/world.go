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

package transition

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"

	"k8s.io/kubernetes-features/test/benchmark/fleet"
	"k8s.io/kubernetes-features/test/benchmark/measure"
	"k8s.io/kubernetes-features/test/benchmark/testbed"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// patience bounds every wait.
const patience = 5 * time.Minute

// world is a cluster with processes that report.
type world struct {
	*testbed.Cluster
	bed       *testbed.Bed
	options   Options
	templates map[string]fleet.Template

	fleet *fleet.Fleet
	// nodes are how many nodes' processes run.
	nodes int
	// stored are StatefulSets that have the field, as etcd has them, by key.
	stored []stored
}

// begin starts a cluster without nodes.
func begin(ctx context.Context, bed *testbed.Bed, o Options, templates map[string]fleet.Template, servers int, settle time.Duration) (*world, error) {
	bed.Say("%d servers, settle period %s", servers, settle)
	only, args := []string{localcluster.Etcd}, map[string][]string{}
	for i := range servers {
		name := localcluster.Nth(localcluster.APIServer, i+1)
		only, args[name] = append(only, name), []string{"--feature-settle-period=" + settle.String()}
	}
	c, err := bed.Start(ctx, localcluster.Config{
		Only:      only,
		Servers:   servers,
		Control:   localcluster.ControlOptions{DynamicFeatures: []string{plain, clears}},
		ExtraArgs: args,
	})
	if err != nil {
		return nil, err
	}
	w := &world{Cluster: c, bed: bed, options: o, templates: map[string]fleet.Template{}}
	for component, template := range templates {
		w.templates[component] = template.
			With(featuregate.Observation{Name: plain, Enabled: true, Default: true, Stage: v1alpha1.StageBeta}).
			With(featuregate.Observation{Name: clears, Default: true, Stage: v1alpha1.StageBeta})
	}
	if err := w.turnOff(ctx); err != nil {
		return w, fmt.Errorf("turning %s off: %w", clears, err)
	}
	for _, name := range []string{namespace, peerNamespace} {
		if _, err := c.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			return w, err
		}
	}
	if err := w.preparePeer(ctx); err != nil {
		return w, err
	}
	w.fleet, err = fleet.New(ctx, c.FrontProxy(), w.templates, slices.Max(o.Processes)/fleet.PerNode)
	return w, err
}

// turnOff requests that the feature with something to clear is off, as every
// measurement begins, and waits until it is. Its gate is on by default.
func (w *world) turnOff(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := w.UntilRests(ctx, clears, true); err != nil {
		return err
	}
	if _, err := w.Features.FeaturesV1alpha1().Features(metav1.NamespaceSystem).Patch(ctx, clears, types.MergePatchType, []byte(`{"spec":{"enabled":false}}`), metav1.PatchOptions{}); err != nil {
		return err
	}
	return w.UntilRests(ctx, clears, false)
}

// end ends everything. The context of the run has ended.
func (w *world) end() error {
	w.fleet.Kill()
	return w.Close()
}

// grow adds nodes until so many processes report, and waits until all are counted.
// The feature without objects is on, and the one with objects is off.
func (w *world) grow(ctx context.Context, processes int) error {
	begin, nodes := w.nodes, processes/fleet.PerNode
	w.bed.Say("%d processes report", processes)
	if err := fleet.CreateNodes(ctx, w.Kube, begin, nodes, w.templates[fleet.Kubelet].BinaryVersion); err != nil {
		return err
	}
	wanted := map[fleet.UseKey]int32{}
	for _, component := range []string{fleet.Kubelet, fleet.KubeProxy} {
		wanted[fleet.UseKey{Feature: plain, Component: component, Enabled: true}] = int32(nodes)
		wanted[fleet.UseKey{Feature: clears, Component: component, Enabled: false}] = int32(nodes)
	}
	counted, err := fleet.FollowUses(ctx, w.Features, wanted)
	if err != nil {
		return err
	}
	defer counted.Stop()
	for i := begin; i < nodes; i++ {
		w.fleet.Add(fleet.NodeName(i))
	}
	added := w.fleet.Processes()[begin*fleet.PerNode:]
	for _, p := range added {
		if err := p.Start(ctx); err != nil {
			return err
		}
	}
	w.nodes = nodes
	if err := fleet.Reported(ctx, added); err != nil {
		return err
	}
	_, err = counted.Wait(ctx)
	return err
}

// measure measures one setting: ours and the peer in turn.
func (w *world) measure(ctx context.Context, s setting) (found outcome, err error) {
	found = outcome{setting: s}
	if found.write, err = w.writeTime(ctx); err != nil {
		return found, err
	}
	for i := range w.options.Repetitions {
		var own ending
		if s.objects == none {
			own, err = w.transit(ctx, plain, i%2 == 1)
		} else {
			own, err = w.clean(ctx, s.objects)
		}
		if err != nil {
			return found, err
		}
		// The last report comes at all phases of the script's period alike.
		phase := period * time.Duration(2*i+1) / time.Duration(2*w.options.Repetitions)
		other, err := w.script(ctx, s, s.objects == none && i%2 == 1, phase)
		if err != nil {
			return found, fmt.Errorf("the script: %w", err)
		}
		w.bed.Say("%d processes, %d objects: %s after the last report with %d writes of the feature, the script %s", s.processes, max(s.objects, 0),
			own.took.Round(time.Millisecond), own.writes, other.took.Round(time.Millisecond))
		found.ours, found.peer = append(found.ours, own), append(found.peer, other)
	}
	return found, nil
}

// transit asks for a value, lets all processes but one report it, and measures from
// the answer to the last one's report until the final state.
func (w *world) transit(ctx context.Context, feature string, on bool) (e ending, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	seen, err := w.see(ctx, feature)
	if err != nil {
		return e, err
	}
	defer seen.stop()
	turning, final := v1alpha1.StateTurningOff, v1alpha1.StateOff
	if on {
		turning, final = v1alpha1.StateTurningOn, v1alpha1.StateOn
	}
	if _, err := w.Features.FeaturesV1alpha1().Features(metav1.NamespaceSystem).Patch(ctx, feature, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"enabled":%t}}`, on), metav1.PatchOptions{}); err != nil {
		return e, err
	}
	if _, err := seen.until(ctx, func(f *v1alpha1.Feature) bool { return f.Status.State == turning }); err != nil {
		return e, err
	}
	begun := time.Now()
	processes := w.fleet.Processes()
	last := processes[len(processes)-1]
	for _, p := range processes[:len(processes)-1] {
		p.Set(feature, on)
	}
	if _, err := seen.until(ctx, func(f *v1alpha1.Feature) bool { return users(f, !on) == 1 }); err != nil {
		return e, err
	}
	// The last of real ones has the last turn. A transition continues no sooner
	// anyway.
	if err := measure.Pause(ctx, time.Until(begun.Add(lastReportDelay(len(processes))))); err != nil {
		return e, err
	}
	answered, err := report(ctx, last, feature, on)
	if err != nil {
		return e, err
	}
	ended, err := seen.until(ctx, func(f *v1alpha1.Feature) bool { return f.Status.State == final && len(f.Status.Tasks) == 0 })
	if err != nil {
		return e, err
	}
	return ending{took: ended.Sub(answered), writes: seen.between(answered, ended)}, nil
}

// lastReportDelay returns how long after the value the last of so many processes reports
// it. Processes pace their reports; those of this benchmark do not, since that would hide
// what is measured.
func lastReportDelay(processes int) time.Duration {
	const spread = time.Second / v1alpha1.ReportsPerSecond
	return min(v1alpha1.MaxReportDelay, time.Duration(processes)*(spread+spread/v1alpha1.ReportHeadStart))
}

// users is how many processes use the feature with a value, as it is counted.
func users(f *v1alpha1.Feature, enabled bool) (count int32) {
	for _, use := range f.Status.Uses {
		if use.Enabled != nil && *use.Enabled == enabled {
			count += use.Count
		}
	}
	return count
}

// report lets a process find a value and returns when the server answered that it
// took the report.
func report(ctx context.Context, p *fleet.Process, feature string, enabled bool) (time.Time, error) {
	select {
	case <-p.Written():
	default:
	}
	p.Set(feature, enabled)
	select {
	case at := <-p.Written():
		return at, nil
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("%s does not report %s=%t: %w", p.Name(), feature, enabled, ctx.Err())
	}
}

// samples is how many writes are measured.
const samples = 50

// writeTime is the time of one write of an administrator, from the request to
// the response, without other load.
func (w *world) writeTime(ctx context.Context) (time.Duration, error) {
	var times measure.Latencies
	for i := range samples {
		begun := time.Now()
		if err := w.decide(ctx, fmt.Sprint(i)); err != nil {
			return 0, err
		}
		times.Record(time.Since(begun))
	}
	return times.Take().Percentile(50), nil
}
