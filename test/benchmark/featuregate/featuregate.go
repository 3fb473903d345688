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

package featuregate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"k8s.io/kubernetes-features/test/benchmark/measure"
	"k8s.io/kubernetes-features/test/benchmark/result"
	"k8s.io/kubernetes-features/test/benchmark/testbed"
)

// Options are sizes.
type Options struct {
	// Repetitions is how often everything is measured, Time for how long each time.
	Repetitions int
	Time        time.Duration
}

// Defaults are the sizes of a run that counts.
func Defaults() Options { return Options{Repetitions: 10, Time: 300 * time.Millisecond} }

// AddFlags makes the sizes flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.IntVar(&o.Repetitions, "repetitions", o.Repetitions, "How often everything is measured.")
	fs.DurationVar(&o.Time, "time", o.Time, "For how long each is measured in one repetition.")
}

// library is where the Go benchmark is, below the root.
const library = "staging/src/k8s.io/feature-lifecycle"

// The gates of the Go benchmark.
const (
	layer    = "layer"
	upstream = "upstream"
	lookup   = "lookup"
	load     = "load"
)

var (
	gates = []struct {
		name, title string
		role        result.Role
	}{
		{layer, "the layer", result.Ours},
		{upstream, "upstream's gate", result.Peer},
		{lookup, "atomic pointer and map", result.Bound},
		{load, "atomic pointer alone", result.Bound},
	}
	values  = []string{"default", "explicit", "central", "dynamic"}
	callers = []string{"one", "all"}
)

// Run builds the Go benchmark and runs it as often as was said.
func Run(ctx context.Context, bed *testbed.Bed, o Options) (r *result.Result, err error) {
	if o.Repetitions < 1 || o.Time <= 0 {
		return nil, fmt.Errorf("%d repetitions of %s measure nothing", o.Repetitions, o.Time)
	}
	dir, err := os.MkdirTemp("", "kf-benchmark")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program := filepath.Join(dir, "featuregate.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, "./featuregate")
	build.Dir = filepath.Join(bed.Root, library)
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the benchmark: %w\n%s", err, output)
	}
	found := samples{}
	for i := range o.Repetitions {
		bed.Say("repetition %d of %d", i+1, o.Repetitions)
		// Each repetition measures all gates one after the other, so that what slows
		// the machine down meets them alike.
		cmd := exec.CommandContext(ctx, program, "-test.run=^$", "-test.bench=^BenchmarkEnabled$", "-test.benchtime="+o.Time.String())
		cmd.Dir = filepath.Join(bed.Root, library, "featuregate")
		output, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("the benchmark: %w\n%s", err, output)
		}
		if err := found.read(bytes.NewReader(output)); err != nil {
			return nil, err
		}
	}
	return report(found, o)
}

// report makes tables of the samples.
func report(found samples, o Options) (*result.Result, error) {
	r := &result.Result{
		Question: "What does it cost to ask for a feature? kube-apiserver does so some 60 times to create a Pod.",
		Peer:     "upstream's gate, k8s.io/component-base/featuregate, which the layer stands in front of. It knows no values from outside of the process: beside those stands a value that was set.",
		Method: []string{
			fmt.Sprintf("%d repetitions of %s each; one repetition measures all gates one after the other. Figures are the median, with the lowest and the highest.", o.Repetitions, o.Time),
			"With a caller on every core, the time is that which passes for each call of all callers together (testing.B.RunParallel): its inverse is how many calls a second there are.",
			"All gates know the names of Kubernetes' gates. They are asked through an interface, as binaries ask them.",
		},
	}
	table := r.AddTable("Enabled", result.Column{Name: "value"}, result.Column{Name: "callers"}, result.Column{Name: "gate"},
		result.Column{Name: "median", Unit: "ns"}, result.Column{Name: "lowest", Unit: "ns"}, result.Column{Name: "highest", Unit: "ns"},
		result.Column{Name: "allocations"}, result.Column{Name: "of upstream's"})
	var worst measure.Spread
	mostAllocations := 0.0
	ours, alone := map[string][]float64{}, map[string][]float64{}
	for _, caller := range callers {
		chart := r.AddChart(caller, "Enabled, "+callersTitle(caller), result.Axis{Label: "value", Categories: values}, result.Axis{Label: axisOf(caller), Unit: "ns"})
		for i, value := range values {
			peer, err := found.of(value, caller, upstream)
			if err != nil {
				return nil, err
			}
			for _, gate := range gates {
				s, err := found.of(value, caller, gate.name)
				if err != nil {
					return nil, err
				}
				ns, allocations := measure.SpreadOf(s.ns...), measure.SpreadOf(s.allocations...).High
				ratio := measure.SpreadOf(ratios(s.ns, peer.ns)...)
				table.AddRow(value, caller, gate.title, ns.Median, ns.Low, ns.High, allocations, ratio.Median)
				chart.Add(gate.title, gate.role, result.Point{X: float64(i), Y: ns.Median, Low: ns.Low, High: ns.High})
				switch gate.name {
				case layer:
					mostAllocations = max(mostAllocations, allocations)
					if ratio.Median > worst.Median {
						worst = ratio
					}
					ours[caller] = append(ours[caller], ns.Median)
				case load:
					alone[caller] = append(alone[caller], ns.Median)
				}
			}
		}
	}
	r.Budgets = []result.Budget{
		{Text: "Enabled, of upstream's time", Compare: result.AtMost, Target: 0.5, Measured: worst.Median, Low: worst.Low, High: worst.High, Unit: "×", How: "the worst of all kinds of values and callers; median, lowest and highest of the ratios of each repetition"},
		{Text: "Enabled, allocations", Compare: result.AtMost, Target: 0, Measured: mostAllocations, How: "the most of all repetitions"},
	}
	for _, caller := range callers {
		r.Limits = append(r.Limits, result.Limit{
			Text:  "an atomic load of a pointer, without any lookup, " + callersTitle(caller),
			Limit: measure.SpreadOf(alone[caller]...).Median, Ours: measure.SpreadOf(ours[caller]...).Median, Unit: "ns", Cost: true,
		})
	}
	return r, nil
}

// ratios are those of each repetition, in which both were measured under the same
// circumstances.
func ratios(ours, theirs []float64) []float64 {
	var all []float64
	for i := range min(len(ours), len(theirs)) {
		all = append(all, ours[i]/theirs[i])
	}
	return all
}

// axisOf returns what a chart shows.
func axisOf(callers string) string {
	if callers == "one" {
		return "time of one call"
	}
	return "time for each call of all cores together"
}

func callersTitle(callers string) string {
	if callers == "one" {
		return "one caller"
	}
	return "a caller on every core"
}
