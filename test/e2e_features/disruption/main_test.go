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

package disruption

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

const (
	// shortest is the time that a run of all at once lasts without SOAK_DURATION. Up to long, a
	// run says little of memory: a process that has just started grows for a while, and the
	// slope of what is left of the second half is lost in noise.
	shortest = 5 * time.Minute
	long     = 90 * time.Minute
)

// TestMain prints the table of the disruptions that came one after another, also when
// something failed, and looks for goroutines that the tests left in this process.
func TestMain(m *testing.M) { framework.MainWithTable(m, writeTable) }

// settings of a run.
type settings struct {
	// wholeForm is true for the whole form of what comes one after another.
	wholeForm bool
	// duration is the time that all happen at once.
	duration time.Duration
	seed     uint64
	// extra are more flags of kube-apiservers.
	extra []string
}

func readSettings(t *testing.T) settings {
	t.Helper()
	s := settings{wholeForm: os.Getenv("FAULTS_SHORT") == "false", duration: shortest, seed: uint64(time.Now().UnixNano())}
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

// random makes the choices of one disruption.
func (s settings) random(name string) *rand.Rand {
	hash := fnv.New64a()
	// It cannot fail.
	_, _ = hash.Write([]byte(name))
	return rand.New(rand.NewPCG(s.seed, hash.Sum64()))
}

// form returns what suits the form that runs.
func form[T any](s settings, whole, short T) T {
	if s.wholeForm {
		return whole
	}
	return short
}

// table has what became of every disruption that came alone. It is safe for concurrent use.
var table struct {
	sync.Mutex
	rows []*row
}

// row is one kind of disruption.
type row struct {
	name string
	// most is what convergence (L2) may take before a test fails for it, 0 for a test that
	// only waits.
	most time.Duration
	// injected is how often it was injected.
	injected int
	// lostTransitions did not end in the configured state; lostObjects are gone
	// or changed elsewhere than in the field, or kept the field.
	lostTransitions, lostObjects int
	// recovery is the longest time from the disruption, or its end if that is later,
	// until the state was as configured; none for those that only hold.
	recovery time.Duration
}

// newRow returns the row of a disruption. It is there from now on, so that a test that
// does not get to its end shows as well.
func newRow(name string) *row {
	table.Lock()
	defer table.Unlock()
	r := &row{name: name, most: tooLong}
	table.rows = append(table.rows, r)
	return r
}

func (r *row) note(injected, lostTransitions, lostObjects int, recovery time.Duration) {
	table.Lock()
	defer table.Unlock()
	r.injected += injected
	r.lostTransitions += lostTransitions
	r.lostObjects += lostObjects
	r.recovery = max(r.recovery, recovery)
}

func (r *row) happened()                     { r.note(1, 0, 0, 0) }
func (r *row) lost(transitions, objects int) { r.note(0, transitions, objects, 0) }
func (r *row) recovered(after time.Duration) { r.note(0, 0, 0, after) }

// writeTable writes the table, if there is something in it.
func writeTable(out io.Writer, took time.Duration) {
	if len(table.rows) == 0 {
		return
	}
	what := "The whole form ran"
	if os.Getenv("FAULTS_SHORT") != "false" {
		what = "The short form ran (FAULTS_SHORT=true; \"make test-faults\" runs the whole)"
	}
	fmt.Fprintf(out, "\n%s, in %s.\n\n", what, took.Round(time.Second))
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(w, "fault\t times injected\t lost transitions\t lost or changed objects\t slowest recovery")
	for _, r := range table.rows {
		recovery := "-"
		if r.recovery > 0 {
			recovery = fmt.Sprintf("%.1f s", r.recovery.Seconds())
		}
		fmt.Fprintf(w, "%s\t %d\t %d\t %d\t %s\n", r.name, r.injected, r.lostTransitions, r.lostObjects, recovery)
	}
	_ = w.Flush()
	fmt.Fprintln(out)
}
