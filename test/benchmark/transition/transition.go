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
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"k8s.io/kubernetes-features/test/benchmark/fleet"
	"k8s.io/kubernetes-features/test/benchmark/result"
	"k8s.io/kubernetes-features/test/benchmark/testbed"
)

const (
	// plain has nothing to be cleaned up; clears clears a field of StatefulSets when it
	// is turned off.
	plain  = "PodDeletionCost"
	clears = "MaxUnavailableStatefulSet"
)

// Options are sizes.
type Options struct {
	// Servers are numbers of kube-apiservers, Settle their settle periods; each pair is
	// a cluster.
	Servers []int
	Settle  []time.Duration
	// Processes are how many report, besides the servers.
	Processes []int
	// Objects are how many StatefulSets have the field, while ObjectProcesses report.
	Objects         []int
	ObjectProcesses int
	// Repetitions is how often each is measured.
	Repetitions int
	// Template is for how long a real node is watched for what it reports.
	Template time.Duration
}

// Defaults are the sizes of a run that counts.
func Defaults() Options {
	return Options{Servers: []int{1, 3}, Settle: []time.Duration{10 * time.Second}, Processes: []int{2, 100, 10000},
		Objects: []int{0, 100, 1000}, ObjectProcesses: 100, Repetitions: 6, Template: 75 * time.Second}
}

// AddFlags makes the sizes flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.IntSliceVar(&o.Servers, "servers", o.Servers, "Numbers of kube-apiservers; more than one need root.")
	fs.DurationSliceVar(&o.Settle, "settle", o.Settle, "kube-apiserver's --feature-settle-period, one cluster for each.")
	fs.IntSliceVar(&o.Processes, "processes", o.Processes, "How many processes report, two on each node, while nothing is to be cleaned up.")
	fs.IntSliceVar(&o.Objects, "objects", o.Objects, "How many StatefulSets have a field that has to be cleared.")
	fs.IntVar(&o.ObjectProcesses, "object-processes", o.ObjectProcesses, "How many processes report then; one of --processes.")
	fs.IntVar(&o.Repetitions, "repetitions", o.Repetitions, "How often each is measured.")
	fs.DurationVar(&o.Template, "template", o.Template, "For how long a real node is watched for what it reports.")
}

func (o *Options) validate() error {
	if len(o.Servers) == 0 || len(o.Settle) == 0 || len(o.Processes) == 0 || o.Repetitions < 2 || o.Repetitions%2 != 0 {
		return errors.New("there have to be servers, settle periods, processes, and an even number of repetitions: a feature is turned off and on in turn")
	}
	if err := fleet.OfWholeNodes(o.Processes...); err != nil {
		return err
	}
	if slices.Max(o.Servers) > 1 && os.Geteuid() != 0 {
		return fmt.Errorf("--servers=%v: several kube-apiservers on one machine need namespaces, which only root may make; run it as root, or say --servers=1", o.Servers)
	}
	if !slices.IsSorted(o.Processes) {
		return fmt.Errorf("--processes=%v: processes are added to those before, so the numbers have to grow", o.Processes)
	}
	if len(o.Objects) > 0 && !slices.Contains(o.Processes, o.ObjectProcesses) {
		return fmt.Errorf("--object-processes=%d is none of --processes=%v", o.ObjectProcesses, o.Processes)
	}
	return nil
}

// setting is what a figure was measured in.
type setting struct {
	servers, processes int
	settle             time.Duration
	// objects is how many have to be cleaned up, none for a feature that cleans up
	// nothing.
	objects int
}

// none stands for a feature that has nothing to be cleaned up.
const none = -1

// outcome is what was measured in one setting.
type outcome struct {
	setting
	ours, peer []ending
	// write is the time of one write of an administrator, the median.
	write time.Duration
}

// ending is the end of one transition.
type ending struct {
	// took is from the answer to the last report until the final state, cleaning the
	// part of it in which objects were written (of the peer only).
	took, cleaning time.Duration
	// writes is how often the Feature was written in it.
	writes int
}

// Run measures all settings, one cluster after the other. With an error it returns
// what was measured before.
func Run(ctx context.Context, bed *testbed.Bed, o Options) (*result.Result, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	templates, err := fleet.Templates(ctx, bed, o.Template)
	if err != nil {
		return nil, err
	}
	var outcomes []outcome
	for _, servers := range o.Servers {
		for _, settle := range o.Settle {
			found, err := inCluster(ctx, bed, o, templates, servers, settle)
			outcomes = append(outcomes, found...)
			if err != nil {
				return describe(o, templates, outcomes), fmt.Errorf("%d servers, settle period %s: %w", servers, settle, err)
			}
		}
	}
	return describe(o, templates, outcomes), nil
}

// inCluster measures what one cluster is for. With an error it returns what was
// measured before.
func inCluster(ctx context.Context, bed *testbed.Bed, o Options, templates map[string]fleet.Template, servers int, settle time.Duration) (outcomes []outcome, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := begin(ctx, bed, o, templates, servers, settle)
	if w != nil {
		defer func() {
			cancel()
			err = errors.Join(err, w.end())
		}()
	}
	if err != nil {
		return nil, err
	}
	for _, processes := range o.Processes {
		if err := w.grow(ctx, processes); err != nil {
			return outcomes, err
		}
		sizes := []int{none}
		if processes == o.ObjectProcesses {
			sizes = append(sizes, o.Objects...)
		}
		for _, objects := range sizes {
			one, err := w.measure(ctx, setting{servers, processes, settle, objects})
			if err != nil {
				return outcomes, fmt.Errorf("%d processes, %d objects: %w", processes, max(objects, 0), err)
			}
			outcomes = append(outcomes, one)
		}
	}
	return outcomes, nil
}
