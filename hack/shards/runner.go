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
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	passedResult      = "passed"
	failedResult      = "failed"
	unchangedResult   = "unchanged"
	skippedResult     = "skipped"
	interruptedResult = "interrupted"
)

// runner runs shards of a checkout.
type runner struct {
	root, out string
	// outArgument is the output directory as the Makefile names it.
	outArgument string
	lanes       int
	// reuse is true when shards whose inputs did not change since they passed are
	// left out.
	reuse bool
	// stop is true when the run ends with the first shard that fails.
	stop bool
	// stopRun interrupts shards that run, and those that did not start.
	stopRun context.CancelFunc
	// requireAll is true when nothing may be left out for what the machine lacks.
	requireAll bool
	// external is true when binaries are not those that the Makefile builds.
	external bool
	// seed is that of the first process of shards with Schedules.
	seed uint64
	// grace is the time that processes have to end.
	grace  time.Duration
	now    func() time.Time
	prints *fingerprints

	mu     sync.Mutex
	stdout io.Writer
	builds []row
	// failed are the names of the shards that failed in the last run.
	failed []string
}

// outcome is the result of a shard.
type outcome struct {
	figures
	shard    Shard
	result   string
	duration time.Duration
	notes    []string
	failures []failure
	// print is the fingerprint of an outcome that may be recorded.
	print string
	in    inputs
}

// run runs the shards and prints how they ended. ok is true when all passed and at
// least one test ran, or all were unchanged.
func (r *runner) run(ctx context.Context, shards []Shard) (ok bool, err error) {
	if err := os.MkdirAll(r.dir(), 0o755); err != nil {
		return false, err
	}
	unlock, err := r.lock()
	if err != nil {
		return false, err
	}
	defer unlock()
	r.builds, r.failed = nil, nil
	outcomes := make([]*outcome, len(shards))
	var rest []Shard
	for i, s := range shards {
		outcomes[i] = &outcome{shard: s}
		if err := r.prepare(ctx, outcomes[i]); err != nil {
			return false, err
		}
		if outcomes[i].result == "" {
			rest = append(rest, s)
		}
	}
	notBuilt := r.build(ctx, rest)
	var together, alone []*outcome
	for _, o := range outcomes {
		need := slices.IndexFunc(o.shard.Needs, func(need string) bool { return notBuilt[need] })
		switch {
		case o.result != "":
		case need >= 0 && ctx.Err() == nil:
			o.fail("make " + o.shard.Needs[need] + " failed")
			if err := r.record(ctx, o); err != nil {
				return false, err
			}
		case o.shard.Alone:
			alone = append(alone, o)
		default:
			together = append(together, o)
		}
	}
	ctx, r.stopRun = context.WithCancel(ctx)
	defer r.stopRun()
	if err := r.runLanes(ctx, together, r.lanes); err != nil {
		return false, err
	}
	if err := r.runLanes(ctx, alone, 1); err != nil {
		return false, err
	}
	for _, o := range outcomes {
		if o.result == failedResult {
			r.failed = append(r.failed, o.shard.Name)
		}
	}
	return r.report(outcomes), nil
}

// prepare decides whether a shard runs at all.
func (r *runner) prepare(ctx context.Context, o *outcome) error {
	s := o.shard
	if missing := s.missing(); missing != "" {
		if r.requireAll {
			o.fail(missing + ", and KUBE_FEATURES_REQUIRE_ALL forbids to leave it out; hack/install-packages.sh all installs programs, ALLOW_MISSING=1 leaves it out")
			return r.record(ctx, o)
		}
		o.result, o.notes = skippedResult, []string{missing}
		return nil
	}
	if note := s.notInstalled(r.out); note != "" {
		o.notes = append(o.notes, note)
	}
	if r.external && len(s.Needs) > 0 {
		return nil
	}
	var err error
	if o.in, err = r.prints.inputs(ctx, s, r.out); err == nil {
		o.print, err = r.prints.hash(ctx, o.in)
	}
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		// The shard runs and shows its error itself.
		o.notes = append(o.notes, "its inputs are not known: "+lastLine(err.Error()))
		return nil
	}
	last, err := r.readRecord(s, passedSuffix)
	if err != nil || !r.reuse || last == nil || last.Hash != o.print {
		return err
	}
	o.result, o.figures, o.duration = unchangedResult, last.figures, time.Duration(last.Seconds*float64(time.Second))
	o.notes = []string{"passed " + last.At.Format("2006-01-02 15:04")}
	return nil
}

// runLanes runs shards, so many side by side, in their order.
func (r *runner) runLanes(ctx context.Context, outcomes []*outcome, lanes int) error {
	queue, errs := make(chan *outcome, len(outcomes)), make(chan error, lanes)
	for _, o := range outcomes {
		queue <- o
	}
	close(queue)
	for range lanes {
		go func() {
			var failed error
			for o := range queue {
				if err := r.runOne(ctx, o); err != nil && failed == nil {
					failed = err
				}
				if r.stop && o.result == failedResult {
					r.stopRun()
				}
			}
			errs <- failed
		}()
	}
	var first error
	for range lanes {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// runOne runs a shard, unless the run is to end.
func (r *runner) runOne(ctx context.Context, o *outcome) error {
	if ctx.Err() != nil {
		o.result = interruptedResult
		o.notes = []string{"not started"}
		return nil
	}
	begun := r.now()
	r.progress("start", o.shard.Name, "")
	read, left, err := r.test(ctx, o.shard)
	o.duration = r.now().Sub(begun)
	if len(left) > 0 {
		o.notes = append(o.notes, "left running, and ended: "+strings.Join(left, ", "))
	}
	if read == nil {
		return err
	}
	o.figures, o.failures = read.figures, read.failures()
	switch {
	case ctx.Err() != nil:
		// Its tests may have failed for no other reason: "go test" says so of one whose process
		// is ended, if it has the time to.
		o.result, o.Failed, o.failures = interruptedResult, 0, nil
		r.progress("ended", o.shard.Name, seconds(o.duration))
		return nil
	case o.Failed > 0 || err != nil:
		o.result = failedResult
		if o.Failed == 0 {
			o.fail(err.Error())
			o.failures[0].output = append(o.failures[0].output, read.other...)
		}
	case o.ran() == 0:
		o.fail("no test ran; see Packages, Run and Skip of the shard in hack/shards/table.go")
	case o.Passed == 0:
		// It has shown nothing, and is not remembered as if it had.
		o.result, o.notes = skippedResult, append(o.notes, "all tests were skipped")
		r.progress("skip", o.shard.Name, fmt.Sprintf("%s   %s", seconds(o.duration), o.tests()))
		return nil
	default:
		o.result = passedResult
	}
	r.progress(map[bool]string{true: "ok", false: "FAIL"}[o.result == passedResult], o.shard.Name, fmt.Sprintf("%s   %s", seconds(o.duration), o.tests()))
	return r.record(ctx, o)
}

// fail makes a failure of something that no test says.
func (o *outcome) fail(why string) {
	o.result = failedResult
	o.Failed++
	o.failures = append(o.failures, failure{pkg: "shard " + o.shard.Name, output: []string{why}})
}

// record remembers how the shard ended. A shard whose inputs changed while it ran has
// no fingerprint.
func (r *runner) record(ctx context.Context, o *outcome) error {
	rec := record{figures: o.figures, At: r.now(), Seconds: o.duration.Seconds()}
	if o.result == failedResult {
		return r.writeRecord(o.shard, failedSuffix, rec)
	}
	if o.print != "" {
		if now, err := r.prints.hash(ctx, o.in); err == nil && now == o.print {
			rec.Hash = now
		} else if err == nil {
			o.notes = append(o.notes, "its inputs changed while it ran")
		}
	}
	return r.writeRecord(o.shard, passedSuffix, rec)
}

// progress prints a line when something begins or ends.
func (r *runner) progress(what, name, rest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(r.stdout, strings.TrimRight(fmt.Sprintf("%-6s %-24s %s", what, name, rest), " "))
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndex(text, "\n")+1:]
}
