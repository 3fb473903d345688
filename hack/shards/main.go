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

// Command shards runs the tests of this repository, which are split into named
// shards (table.go). "make test" runs those that are quick, "make test-all" all, and
// "make test-shard SHARD=name" one. Each shard is a process of "go test" in the module
// that it is of. Whole output is in _output/shards. At the end come the causes of
// failures, a table, and one line with the numbers of tests.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == spinArgument {
		spin()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(command(ctx, shards, os.Args[1:], os.Stdout, os.Stderr))
}

// settings are the flags.
type settings struct {
	choice
	root, out          string
	list, force, reuse bool
	// stop ends the run with the first shard that fails.
	stop  bool
	lanes int
	// runs is the number of runs of the shards, busyPerCore the number of busy
	// processes beside them on each core.
	runs, busyPerCore int
	seed              uint64
}

func readFlags(args []string, stderr io.Writer) (settings, error) {
	var s settings
	fs := flag.NewFlagSet("shards", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.BoolVar(&s.quick, "quick", false, "Take the shards that are quick.")
	fs.StringVar(&s.names, "shard", "", "Take the shards with these names, separated by commas; * stands for any letters, and ! takes shards away. They run even when nothing changed.")
	fs.StringVar(&s.only, "only", "", `Take, with "failed", those that failed when they last ran.`)
	fs.BoolVar(&s.list, "list", false, "List the shards and run none.")
	fs.BoolVar(&s.force, "force", false, "Run shards even when nothing changed since they passed.")
	fs.BoolVar(&s.reuse, "reuse", false, "Leave out unchanged shards also with -quick and -shard.")
	fs.BoolVar(&s.stop, "stop", false, "End the run with the first shard that fails.")
	fs.IntVar(&s.runs, "runs", 1, "How often the shards run.")
	fs.IntVar(&s.busyPerCore, "busy", 0, "How many processes keep each core busy meanwhile.")
	fs.IntVar(&s.lanes, "lanes", 2, "How many shards run side by side.")
	fs.Uint64Var(&s.seed, "seed", uint64(time.Now().Unix()), "The seed of the first process of random schedules.")
	fs.StringVar(&s.root, "root", ".", "The top of the checkout.")
	fs.StringVar(&s.out, "out", "_output", "The output directory, relative to the top.")
	if err := fs.Parse(args); err != nil {
		return s, err
	}
	if fs.NArg() > 0 {
		return s, fmt.Errorf("argument %q is not known; -shard takes names of shards", fs.Arg(0))
	}
	if s.lanes < 1 || s.runs < 1 || s.busyPerCore < 0 {
		return s, fmt.Errorf("-lanes=%d -runs=%d -busy=%d: lanes and runs are 1 or more, busy processes 0 or more", s.lanes, s.runs, s.busyPerCore)
	}
	if s.force && s.reuse {
		return s, errors.New("-force and -reuse exclude each other; take one of them")
	}
	return s, nil
}

// command is the whole program, and returns its exit code.
func command(ctx context.Context, table []Shard, args []string, stdout, stderr io.Writer) int {
	s, err := readFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	ok := false
	if err == nil {
		ok, err = s.run(ctx, table, stdout)
	}
	switch {
	case errors.Is(err, errNothingFailed):
		fmt.Fprintln(stdout, err)
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "shards:", err)
		return 1
	case !ok:
		return 1
	}
	return 0
}

func (s settings) run(ctx context.Context, table []Shard, stdout io.Writer) (ok bool, err error) {
	root, err := filepath.Abs(s.root)
	if err != nil {
		return false, err
	}
	out := s.out
	if !filepath.IsAbs(out) {
		out = filepath.Join(root, out)
	}
	r := &runner{
		root: root, out: out, outArgument: s.out, lanes: s.lanes, seed: s.seed, stdout: stdout, now: time.Now, grace: 10 * time.Second,
		reuse: s.reuse || !s.force && !s.quick && s.names == "", stop: s.stop,
		requireAll: os.Getenv("KUBE_FEATURES_REQUIRE_ALL") == "true",
		external:   os.Getenv("KUBE_FEATURES_BIN") != "",
		prints:     newFingerprints(root),
	}
	chosen, err := r.choose(table, s.choice)
	if err != nil {
		return false, err
	}
	if s.list {
		return true, r.list(chosen, stdout)
	}
	if s.runs == 1 && s.busyPerCore == 0 {
		return r.run(ctx, chosen)
	}
	load, err := startBusy(s.busyPerCore)
	if err != nil {
		return false, err
	}
	defer load.end()
	return repeat(ctx, s.runs, stdout, time.Now, func(run int) (bool, []string, error) {
		// Each run has seeds of its own.
		r.seed = s.seed + uint64(run)
		ok, err := r.run(ctx, chosen)
		return ok, r.failed, err
	})
}
