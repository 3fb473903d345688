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

// Package single does to real clusters what happens to them in life: servers that
// crash, freeze, disagree or have different versions, a database that restarts,
// is cut off or full. After each fault it checks that no state was false, no
// transition lost and no object changed otherwise than by clearing one field. A
// table of all faults is printed at the end. With FAULTS_SHORT=true it does each
// fault less often and for a shorter time.
package single

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"k8s.io/kubernetes-features/test/integration/framework"
)

// short is true when the short form runs.
var short = os.Getenv("FAULTS_SHORT") == "true"

// TestMain prints the table, also when something failed.
func TestMain(m *testing.M) {
	framework.RequireRoot()
	begun := time.Now()
	code := m.Run()
	form := "The whole form ran"
	if short {
		form = "The short form ran (FAULTS_SHORT=true; \"make test-faults\" runs the whole)"
	}
	fmt.Printf("\n%s, in %s.\n\n%s\n", form, time.Since(begun).Round(time.Second), faults.table())
	os.Exit(code)
}

// pick returns what suits the form of the suite that runs.
func pick[T any](whole, shorter T) T {
	if short {
		return shorter
	}
	return whole
}

// faults collects what became of every fault.
var faults collector

// collector is safe for concurrent use.
type collector struct {
	mu   sync.Mutex
	rows []*row
}

// row is one kind of fault.
type row struct {
	fault string
	// injected is how often it was injected.
	injected int
	// lostTransitions did not end in the configured state; lostObjects are gone
	// or changed elsewhere than in the field, or kept the field.
	lostTransitions, lostObjects int
	// recovery is the longest time from the fault, or its end if that is later,
	// until the state was as configured; none for faults that only hold.
	recovery time.Duration
}

// fault returns the row of a fault. It is there from now on, so that a test that
// does not get to its end shows as well.
func (c *collector) fault(name string) *row {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &row{fault: name}
	c.rows = append(c.rows, r)
	return r
}

// happened counts one injection.
func (r *row) happened() {
	faults.mu.Lock()
	defer faults.mu.Unlock()
	r.injected++
}

// lost counts a transition that did not end as it should, and objects.
func (r *row) lost(transitions, objects int) {
	faults.mu.Lock()
	defer faults.mu.Unlock()
	r.lostTransitions += transitions
	r.lostObjects += objects
}

// recovered notes how long a recovery took.
func (r *row) recovered(after time.Duration) {
	faults.mu.Lock()
	defer faults.mu.Unlock()
	r.recovery = max(r.recovery, after)
}

func (c *collector) table() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(w, "fault\t times injected\t lost transitions\t lost or changed objects\t slowest recovery")
	for _, r := range c.rows {
		recovery := "-"
		if r.recovery > 0 {
			recovery = fmt.Sprintf("%.1f s", r.recovery.Seconds())
		}
		fmt.Fprintf(w, "%s\t %d\t %d\t %d\t %s\n", r.fault, r.injected, r.lostTransitions, r.lostObjects, recovery)
	}
	_ = w.Flush()
	return text.String()
}
