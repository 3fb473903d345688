//go:build linux

/*
Copyright 2026 The Kubernetes Authors.

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

// Package disruption runs a whole cluster under everything that happens to clusters, all
// at once and for hours: gates flip, on command lines and through the API;
// processes crash and freeze; the database dies, is compacted and defragmented;
// nodes, reporters and objects come and go; clients read and write. Every few
// minutes the faults pause and all has to converge. In the end everything that was
// added goes, and nothing may be left of it: no goroutine, watch, lease, open
// file or object; memory has to be flat. SOAK_DURATION says how long the faults
// last, SOAK_SEED repeats the choices of another run.
package disruption

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"k8s.io/kubernetes-features/test/integration/framework"
)

const (
	// shortest is how long a run lasts when nobody says otherwise. Up to long, a run
	// says little of memory: a process that has just started grows for a while, and
	// the slope of what is left of the second half is lost in noise.
	shortest = 5 * time.Minute
	long     = 90 * time.Minute
)

// TestMain looks for goroutines that the tests left in this process.
func TestMain(m *testing.M) {
	framework.RequireRoot()
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(leftByDesign...); err != nil {
			fmt.Printf("FAIL: the test's own process has goroutines left: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}

// leftByDesign are goroutines that live as long as a process.
var leftByDesign = []goleak.Option{
	// The thread that starts processes has to live as long as they do.
	goleak.IgnoreTopFunction("k8s.io/kubernetes-features/cmd/local-up/process.NewStarter.func1"),
	// klog flushes what it buffers as long as there is a process.
	goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
}

// settings of a run.
type settings struct {
	duration time.Duration
	seed     uint64
}

func readSettings(t *testing.T) settings {
	t.Helper()
	s := settings{duration: shortest, seed: uint64(time.Now().UnixNano())}
	var err error
	if given := os.Getenv("SOAK_DURATION"); given != "" {
		if s.duration, err = time.ParseDuration(given); err != nil || s.duration <= 0 {
			t.Fatalf("SOAK_DURATION is %q; want something like 2h or 5m: %v", given, err)
		}
	}
	if given := os.Getenv("SOAK_SEED"); given != "" {
		if s.seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("SOAK_SEED is %q; want the number that another run printed: %v", given, err)
		}
	}
	return s
}

// long is true when memory is judged.
func (s settings) long() bool { return s.duration >= long }

// TestSoak is the whole: rest, faults, rest, and nothing is left.
func TestSoak(t *testing.T) {
	s := readSettings(t)
	w := newWorld(t, s)
	w.said("%s of faults; the same choices again: SOAK_SEED=%d", s.duration, s.seed)
	defer func() { fmt.Fprintf(t.Output(), "\n%s\n", w.table()) }()
	defer w.readLogs()
	defer w.keepEvidence()
	before := w.rest("before the faults", nil)
	w.populate()
	w.memory.follow()
	w.run()
	w.memory.end()
	if t.Failed() {
		return
	}
	for _, what := range idle(s.duration, w.happened) {
		t.Errorf("this happened too rarely: %s", what)
	}
	if says := often(w.happened(rests), w.happened(late)); says != "" {
		t.Error(says)
	}
	w.depopulate()
	if after := w.rest("after the faults", before); after != nil {
		w.memory.judge(before, after)
	}
}
