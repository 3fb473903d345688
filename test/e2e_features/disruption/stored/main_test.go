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

package stored

import (
	"fmt"
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

// TestMain prints the table, also when something failed, and looks for goroutines that the
// tests left in this process.
func TestMain(m *testing.M) { framework.MainWithTable(m, writeTable) }

// settings of a run.
type settings struct {
	// objects is how many have the field, kills how often the leader is killed.
	objects, kills int
	// long is true for cases that take minutes, too.
	long bool
	seed uint64
	// through is the value of --feature-clear-through, "" for the default.
	through string
}

func readSettings(t *testing.T) settings {
	t.Helper()
	s := settings{objects: 2000, kills: 5, seed: uint64(time.Now().UnixNano()), through: os.Getenv("CLEAR_THROUGH")}
	if os.Getenv("FAULTS_SHORT") == "false" {
		s.objects, s.kills, s.long = 20000, 20, true
	}
	var err error
	if given := os.Getenv("STORED_OBJECTS"); given != "" {
		if s.objects, err = strconv.Atoi(given); err != nil || s.objects < 100 {
			t.Fatalf("STORED_OBJECTS is %q; want a number from 100: %v", given, err)
		}
	}
	if given := os.Getenv("STORED_SEED"); given != "" {
		if s.seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("STORED_SEED is %q; want the number that another run printed: %v", given, err)
		}
	}
	return s
}

// random makes the choices that belong to a number.
func (s settings) random(number uint64) *rand.Rand { return rand.New(rand.NewPCG(s.seed, number)) }

// table has what became of every case. It is safe for concurrent use.
var table struct {
	sync.Mutex
	rows []*row
}

// row is one case.
type row struct {
	name string
	// objects are those that were compared, in all transitions.
	objects, transitions int
	// injected is how often the fault came.
	injected int
	// conflicts is how many writes of the server flow others came before.
	conflicts int
	// contested is how many writes of others went to objects while these were cleared.
	contested int
	// events and watches are what the clients received, in how many watches.
	events, watches int
	// slow is how many watches servers ended since their clients did not keep up, which
	// depends on who else has the cores. Such a watch may resume where it was: what is
	// judged is that none has to begin again with a list (endWatches).
	slow   int
	failed bool
}

// newRow adds the row of a case, which shows also if the test does not get to its end.
func newRow(t *testing.T, name string) *row {
	r := &row{name: name}
	table.Lock()
	table.rows = append(table.rows, r)
	table.Unlock()
	t.Cleanup(func() {
		table.Lock()
		defer table.Unlock()
		r.failed = t.Failed()
	})
	return r
}

// writeTable writes the table, if there is something in it.
func writeTable(out io.Writer, took time.Duration) {
	table.Lock()
	defer table.Unlock()
	if len(table.rows) == 0 {
		return
	}
	fmt.Fprintf(out, "\nFields were cleared where objects are stored, in %s.\n\n", took.Round(time.Second))
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(w, "case\t transitions\t objects\t faults\t conflicts\t writes of others\t watches\t events\t ended as slow\t result")
	for _, r := range table.rows {
		result := "nothing lost or changed"
		if r.failed {
			result = "FAILED"
		}
		fmt.Fprintf(w, "%s\t %d\t %d\t %d\t %d\t %d\t %d\t %d\t %d\t %s\n", r.name, r.transitions, r.objects, r.injected, r.conflicts, r.contested, r.watches, r.events, r.slow, result)
	}
	_ = w.Flush()
	fmt.Fprintln(out)
}
