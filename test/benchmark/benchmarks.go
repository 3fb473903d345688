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

package main

import (
	"context"

	"github.com/spf13/pflag"

	"k8s.io/kubernetes-features/test/benchmark/clear"
	"k8s.io/kubernetes-features/test/benchmark/featuregate"
	"k8s.io/kubernetes-features/test/benchmark/flip"
	"k8s.io/kubernetes-features/test/benchmark/reporters"
	"k8s.io/kubernetes-features/test/benchmark/result"
	"k8s.io/kubernetes-features/test/benchmark/start"
	"k8s.io/kubernetes-features/test/benchmark/testbed"
	"k8s.io/kubernetes-features/test/benchmark/transition"
)

// runner runs a benchmark whose flags were read.
type runner func(context.Context, *testbed.Bed) (*result.Result, error)

// benchmark is one subcommand.
type benchmark struct {
	name, short string
	// new makes the benchmark's flags and what runs it with them.
	new func() (addFlags func(*pflag.FlagSet), run runner)
}

// benchmarks are all there are, in the order of result.Names. Each has a Makefile
// target bench-<name> and a section in BENCHMARKS.md, and a smoke test.
var benchmarks = []benchmark{
	{"featuregate", "Enabled of the reporting layer beside upstream's gate", of(featuregate.Defaults(), (*featuregate.Options).AddFlags, featuregate.Run)},
	{"clear", "a field cleared from many objects, beside the storage version migrator", of(clear.Defaults(), (*clear.Options).AddFlags, clear.Run)},
	{"clear-large", "the same with objects of 20 KiB", of(clear.LargeDefaults(), (*clear.Options).AddFlags, clear.Run)},
	{"reporters", "what thousands of processes that report cost", of(reporters.Defaults(), (*reporters.Options).AddFlags, reporters.Run)},
	{"start", "the time until kube-apiserver is ready, beside upstream's", of(start.Defaults(), (*start.Options).AddFlags, start.Run)},
	{"flip", "a dynamic value changed with thousands of watchers, beside informers of a ConfigMap", of(flip.Defaults(), (*flip.Options).AddFlags, flip.Run)},
	{"transition", "from the last matching report to the final state, beside a script", of(transition.Defaults(), (*transition.Options).AddFlags, transition.Run)},
}

// of joins the options of a benchmark, which begin with their defaults, with what
// adds their flags and what runs with them.
func of[Options any](defaults Options, addFlags func(*Options, *pflag.FlagSet), run func(context.Context, *testbed.Bed, Options) (*result.Result, error)) func() (func(*pflag.FlagSet), runner) {
	return func() (func(*pflag.FlagSet), runner) {
		options := defaults
		return func(fs *pflag.FlagSet) { addFlags(&options, fs) },
			func(ctx context.Context, bed *testbed.Bed) (*result.Result, error) { return run(ctx, bed, options) }
	}
}
