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

package gates

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

// TestMain prints the table, also when something failed.
func TestMain(m *testing.M) {
	begun := time.Now()
	code := m.Run()
	fmt.Print(results.table(time.Since(begun)))
	os.Exit(code)
}

// row is what became of one gate.
type row struct {
	gate, verdict string
	// used is how many stored objects used it, left how many still do.
	used, left int64
	// remains is how many have what the entry says stays, and why.
	remains int64
	// held describes how often it was held by objects until they were released.
	held   int
	copies string
	// problems are what is wrong, for the author.
	problems []string
	failed   bool
}

// table collects rows. It is safe for concurrent use.
type table struct {
	mu   sync.Mutex
	rows []*row
	// problems counts those that are not one gate's.
	problems int
}

var results table

func (r *table) add(row *row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = append(r.rows, row)
}

// complain reports problems that are not one gate's.
func (r *table) complain(t *testing.T, problems ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problems += len(problems)
	for _, problem := range problems {
		t.Error(problem)
	}
}

func (r *table) table(took time.Duration) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rows) == 0 {
		return ""
	}
	slices.SortFunc(r.rows, func(a, b *row) int { return cmp.Compare(a.gate, b.gate) })
	var text strings.Builder
	failed := 0
	w := tabwriter.NewWriter(&text, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(w, "gate\t verdict\t objects used\t held\t left over\t remain\t copies elsewhere\t result")
	for _, row := range r.rows {
		result := "pristine"
		switch {
		case row.failed:
			result = "FAILED"
			failed++
		case row.remains > 0:
			result = fmt.Sprintf("pristine, but for %d that remain as declared", row.remains)
		}
		fmt.Fprintf(w, "%s\t %s\t %d\t %d\t %d\t %d\t %s\t %s\n", row.gate, row.verdict, row.used, row.held, row.left, row.remains, cmp.Or(row.copies, "-"), result)
	}
	_ = w.Flush()
	return fmt.Sprintf("\n%s\n%d gates, %d failed, %d problems that are not one gate's, in %s\n", text.String(), len(r.rows), failed, r.problems, took.Round(time.Second))
}

// verdict is what the catalog says becomes of what a feature stores.
func verdict(entry catalog.Entry) string {
	if entry.Stateless != "" {
		return "stores nothing"
	}
	words := map[string]bool{}
	var verdicts []string
	add := func(word string) {
		if !words[word] {
			words[word] = true
			verdicts = append(verdicts, word)
		}
	}
	for _, t := range entry.OnDisable {
		kind, _, _ := strings.Cut(t.Name, "/")
		switch kind {
		case "ClearField":
			add("field cleared")
		case "WaitForNone":
			add("waited for")
		case "ClearCollection":
			add("collection cleared")
		case "MigrateStorage":
			add("storage rewritten")
		default:
			add("task " + kind)
		}
	}
	if len(entry.Retained) > 0 {
		add("remains")
	}
	return strings.Join(verdicts, ", ")
}
