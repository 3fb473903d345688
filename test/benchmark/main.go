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
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"k8s.io/kubernetes-features/test/benchmark/result"
	"k8s.io/kubernetes-features/test/benchmark/testbed"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := newCommand(os.Stdout).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		stop()
		os.Exit(1)
	}
}

// common are the flags of all benchmarks.
type common struct {
	bed    testbed.Bed
	output string
}

// local are the flags that say where things are on a machine; how a run is repeated
// does not name them.
var local = []string{"root", "bin-dir", "upstream-dir", "output"}

func newCommand(out io.Writer) *cobra.Command {
	options := &common{bed: testbed.Bed{Out: out}}
	root := &cobra.Command{
		Use:           "benchmark",
		Short:         "Run a benchmark on real processes and write what it found",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	fs := root.PersistentFlags()
	fs.StringVar(&options.bed.Root, "root", ".", "The repository's root.")
	fs.StringVar(&options.bed.BinDir, "bin-dir", "", `Where the binaries are. (default "_output/bin" below the root)`)
	fs.StringVar(&options.bed.UpstreamDir, "upstream-dir", "", `Where upstream's binaries are. (default "_output/upstream" below the root)`)
	fs.StringVar(&options.output, "output", "", `The file to write. (default "docs/benchmarks/NAME.json" below the root)`)
	for _, b := range benchmarks {
		root.AddCommand(newBenchmarkCommand(b, options))
	}
	return root
}

func newBenchmarkCommand(b benchmark, options *common) *cobra.Command {
	addFlags, run := b.new()
	cmd := &cobra.Command{
		Use:   b.name,
		Short: b.short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := options.complete(b.name); err != nil {
				return err
			}
			return options.run(cmd, b.name, run)
		},
	}
	addFlags(cmd.Flags())
	return cmd
}

// complete fills in what follows from other flags.
func (o *common) complete(name string) error {
	root, err := filepath.Abs(o.bed.Root)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, "go.work")); err != nil {
		return fmt.Errorf("%w; run it in the repository's root, or say --root", err)
	}
	o.bed.Root = root
	if o.bed.BinDir == "" {
		o.bed.BinDir = filepath.Join(root, "_output", "bin")
	}
	if o.bed.UpstreamDir == "" {
		o.bed.UpstreamDir = filepath.Join(root, "_output", "upstream")
	}
	if o.output == "" {
		o.output = recorded(root, name)
	}
	return nil
}

// recorded is where the result of a whole run is kept.
func recorded(root, name string) string { return filepath.Join(root, result.Folder, name+".json") }

// whole is the command of a run with the sizes that count.
func whole(name string) string { return "make bench-" + name }

// isWhole returns true for such a command, and for that of a longer run where there is one.
func isWhole(command, name string) bool {
	return command == whole(name) || command == whole(name)+long
}

// long is what make is told for a longer run.
const long = " LONG=y"

func (o *common) run(cmd *cobra.Command, name string, run runner) error {
	environment, err := o.bed.Environment()
	if err != nil {
		return err
	}
	command := commandLine(name, cmd.Flags())
	if environment.Dirty && isWhole(command, name) && o.output == recorded(o.bed.Root, name) {
		return fmt.Errorf("benchmark %s: files differ from the commit %.12s that the result would name, so it could not be repeated; commit them or put them aside first, or write elsewhere with --output", name, environment.Commit)
	}
	begun := time.Now()
	r, err := run(cmd.Context(), &o.bed)
	if err != nil {
		if r != nil {
			// What took an hour is not lost, and no result either.
			_, _ = fmt.Fprintln(o.bed.Out, "Measured before it failed, and not written:")
			r.WriteText(o.bed.Out)
		}
		if cmd.Context().Err() != nil {
			err = errors.Join(errors.New("interrupted"), err)
		}
		return fmt.Errorf("benchmark %s: %w", name, err)
	}
	r.Name, r.Environment, r.Begun, r.Seconds = name, environment, begun.UTC().Truncate(time.Second), time.Since(begun).Seconds()
	r.Command = command
	r.WriteText(o.bed.Out)
	return r.Write(o.output)
}

// commandLine is what repeats a run on any machine.
func commandLine(name string, flags *pflag.FlagSet) string {
	var set []string
	flags.Visit(func(flag *pflag.Flag) {
		for _, name := range local {
			if flag.Name == name {
				return
			}
		}
		set = append(set, fmt.Sprintf(" --%s=%s", flag.Name, strings.Trim(flag.Value.String(), "[]")))
	})
	switch {
	case len(set) == 0:
		return whole(name)
	case len(set) == 1 && set[0] == " --long=true":
		return whole(name) + long
	}
	return "go run ./test/benchmark " + name + strings.Join(set, "")
}
