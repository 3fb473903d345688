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

package start

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"k8s.io/kubernetes-features/test/benchmark/measure"
	"k8s.io/kubernetes-features/test/benchmark/result"
	"k8s.io/kubernetes-features/test/benchmark/testbed"
)

// Options are sizes.
type Options struct {
	// Repetitions is how often each binary is started cold and warm.
	Repetitions int
	// Quiet is the time that nothing may have been written until a server counts as quiet;
	// it renews its Lease every 10 s.
	Quiet time.Duration
	// Profiles is a directory for profiles of each start, "" for none.
	Profiles string
}

// Defaults are the sizes of a run that counts.
func Defaults() Options { return Options{Repetitions: 15, Quiet: 3 * time.Second} }

// AddFlags makes the sizes flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.IntVar(&o.Repetitions, "repetitions", o.Repetitions, "How often each binary is started, cold and warm.")
	fs.DurationVar(&o.Quiet, "quiet", o.Quiet, "How long nothing may have been written until a server counts as quiet.")
	fs.StringVar(&o.Profiles, "profiles", o.Profiles, "A directory for CPU profiles of each start, from the first answer on; for a look, not for figures.")
}

// server is what is started.
type server struct {
	title string
	role  result.Role
	// binary is the file, gates are its feature gates.
	binary, gates string
}

const (
	ours     = "this repository's"
	disabled = "this repository's, FeatureLifecycle=false"
	peer     = "upstream's"
)

// The kinds of starts, in their order: a warm one is the second on the same etcd.
var kinds = []string{"cold", "warm"}

// Run starts every server as often as was said, in an order that rotates.
func Run(ctx context.Context, bed *testbed.Bed, o Options) (*result.Result, error) {
	if o.Repetitions < 1 {
		return nil, fmt.Errorf("%d repetitions measure nothing", o.Repetitions)
	}
	binary, err := bed.Upstream("kube-apiserver")
	if err != nil {
		return nil, err
	}
	servers := []server{
		{title: ours, role: result.Ours},
		{title: disabled, role: result.Ours, gates: "FeatureLifecycle=false"},
		{title: peer, role: result.Peer, binary: binary},
	}
	found := figures{}
	for i := range o.Repetitions {
		for j := range servers {
			s := servers[(i+j)%len(servers)]
			bed.Say("repetition %d of %d: %s", i+1, o.Repetitions, s.title)
			if err := found.take(ctx, bed, s, o); err != nil {
				return nil, fmt.Errorf("starting %s kube-apiserver: %w", s.title, err)
			}
		}
	}
	return report(found, servers, o), nil
}

// take starts a server on an empty etcd and once more on the same.
func (f figures) take(ctx context.Context, bed *testbed.Bed, s server, o Options) (err error) {
	run, err := begin(ctx, bed, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	for _, kind := range kinds {
		if err := run.stop(ctx); err != nil {
			return err
		}
		got, err := run.start(ctx, o, fmt.Sprintf("%s-%s-%d", kind, s.title, len(f[kind+s.title])))
		if err != nil {
			return err
		}
		f[kind+s.title] = append(f[kind+s.title], got)
	}
	return nil
}

// figures are those of all starts, by kind and title.
type figures map[string][]figure

// of are one figure of all starts of a kind.
func (f figures) of(kind, title string, get func(figure) float64) []float64 {
	var all []float64
	for _, one := range f[kind+title] {
		all = append(all, get(one))
	}
	return all
}

// ratios are those of each repetition.
func (f figures) ratios(kind, title string, get func(figure) float64) []float64 {
	var all []float64
	theirs := f.of(kind, peer, get)
	for i, v := range f.of(kind, title, get) {
		all = append(all, v/theirs[i])
	}
	return all
}

// ratio is the median of the ratios of each repetition.
func (f figures) ratio(kind, title string, get func(figure) float64) float64 {
	return measure.SpreadOf(f.ratios(kind, title, get)...).Median
}

func ready(f figure) float64 { return f.ready.Seconds() }

func answers(f figure) float64 { return f.answers.Seconds() }

// columns are the figures of the table.
var columns = []struct {
	result.Column
	get func(figure) float64
}{
	{result.Column{Name: "answers after", Unit: "s"}, answers},
	{result.Column{Name: "quiet after", Unit: "s"}, func(f figure) float64 { return f.quiet.Seconds() }},
	{result.Column{Name: "processor", Unit: "s"}, processor},
	{result.Column{Name: "writes to etcd until ready"}, func(f figure) float64 { return float64(f.writesReady) }},
	{result.Column{Name: "until quiet"}, func(f figure) float64 { return float64(f.writesQuiet) }},
	{result.Column{Name: "requests"}, func(f figure) float64 { return f.requests }},
	{result.Column{Name: "memory", Unit: "MiB"}, memory},
	{result.Column{Name: "database", Unit: "KiB"}, func(f figure) float64 { return float64(f.database) / measure.KiB }},
}

func processor(f figure) float64 { return f.cpu.Seconds() }

func memory(f figure) float64 { return measure.Mebibytes(f.rss) }

func report(found figures, servers []server, o Options) *result.Result {
	r := &result.Result{
		Question: "How much later is kube-apiserver ready because of this repository, and what does it write and hold?",
		Peer:     "upstream's kube-apiserver of the same version with the same flags; and ours with FeatureLifecycle=false, which tells the cost of the system from that of the build.",
		Method: []string{
			fmt.Sprintf("%d repetitions; the order of the servers rotates. A cold start is on an empty etcd, a warm one the second on the same etcd, which keeps running.", o.Repetitions),
			fmt.Sprintf("Ready is from the start of the process to the first 200 of /readyz, asked every 20 ms. A server is quiet once etcd's revision has stayed the same for %s; processor time, requests, memory and the database are of that moment. Requests are those that the server answered, its own included.", o.Quiet),
		},
	}
	heads := []result.Column{{Name: "start"}, {Name: "kube-apiserver"}, {Name: "ready after", Unit: "s"}, {Name: "fastest", Unit: "s"}, {Name: "slowest", Unit: "s"}, {Name: "of upstream's"}, {Name: "processor, of upstream's"}}
	for _, c := range columns {
		heads = append(heads, c.Column)
	}
	table := r.AddTable("From the start of the process", heads...)
	table.Note = "Medians. The ratio is the median of those of each repetition."
	times := r.AddChart("ready", "Time until kube-apiserver is ready", result.Axis{Label: "start", Categories: kinds}, result.Axis{Label: "time until ready", Unit: "s"})
	held := r.AddChart("memory", "Memory of kube-apiserver once it is quiet", result.Axis{Label: "start", Categories: kinds}, result.Axis{Label: "resident memory", Unit: "MiB"})
	for i, kind := range kinds {
		for _, s := range servers {
			took := measure.SpreadOf(found.of(kind, s.title, ready)...)
			row := []any{kind, s.title, took.Median, took.Low, took.High, found.ratio(kind, s.title, ready), found.ratio(kind, s.title, processor)}
			for _, c := range columns {
				row = append(row, measure.SpreadOf(found.of(kind, s.title, c.get)...).Median)
			}
			table.AddRow(row...)
			times.Add(s.title, s.role, result.Point{X: float64(i), Y: took.Median, Low: took.Low, High: took.High})
			rss := measure.SpreadOf(found.of(kind, s.title, memory)...)
			held.Add(s.title, s.role, result.Point{X: float64(i), Y: rss.Median, Low: rss.Low, High: rss.High})
		}
	}
	low, high := measure.MedianRange(found.ratios("cold", ours, ready)...)
	r.Budgets = []result.Budget{{
		Text: "cold start, of upstream's time", Compare: result.AtMost, Target: 1.05, Measured: found.ratio("cold", ours, ready), Low: low, High: high, Unit: "×",
		How: "median of the ratios of each repetition",
	}}
	for _, kind := range kinds {
		// No server is ready before it responds at all. Upstream's distance from that is
		// the part of ours that any server has.
		first, upstreams := measure.SpreadOf(found.of(kind, peer, answers)...).Median, measure.SpreadOf(found.of(kind, peer, ready)...).Median
		r.Limits = append(r.Limits, result.Limit{
			Text:  fmt.Sprintf("until upstream's process gives its first answer, whatever that says, a %s start; a lower bound, upstream itself is ready after %.2f times that", kind, upstreams/first),
			Limit: first, Ours: measure.SpreadOf(found.of(kind, ours, ready)...).Median, Unit: "s", Cost: true,
		})
	}
	return r
}
