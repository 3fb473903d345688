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

package task

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/feature-lifecycle/lifecycle/internal/phrase"
)

// progressTracker counts what became of the objects of one attempt at clearing a field.
// It is safe for concurrent use.
type progressTracker struct {
	report func(Progress)

	mu sync.Mutex
	// progress counts objects that do not have the field, or not any more. walked counts
	// those that were visited.
	progress Progress
	walked   int64
	// found had the field, written had it removed.
	found, written int64
	// refused counts objects that the server does not let be changed so.
	// examples are the first of them in the order of their names, so that the
	// message is the same each time.
	refused  int
	examples []refusal
	// failure is the first error that is no refusal: the server's trouble. failed counts
	// the objects that met one.
	failure error
	failed  int
	// verifying is true from the second pass on.
	verifying bool
	// from is where the first pass begins, "" for the beginning. tokens are what it is.
	from   string
	tokens tokens
}

// tokens are of the way in which a walk continues. An attempt does not resume one that went
// another way.
type tokens string

const (
	// apiTokens are continue tokens of the API, and storedTokens keys of stored objects.
	apiTokens    tokens = ""
	storedTokens tokens = "stored:"
)

// resumed returns where a walk of these tokens continues after a checkpoint, false if the
// checkpoint is of the other ones.
func (t tokens) resumed(from string) (string, bool) {
	after, stored := strings.CutPrefix(from, string(storedTokens))
	return after, stored == (t == storedTokens)
}

// refusal is an object that cannot be changed, and why.
type refusal struct {
	namespace, name string
	cause           error
}

func (r refusal) shown() string { return objectName(r.namespace, r.name) }

func newProgressTracker(attempt Attempt, tokens tokens) *progressTracker {
	t := &progressTracker{report: attempt.Report, tokens: tokens}
	done, from, _ := strings.Cut(attempt.Last.Checkpoint, " ")
	from, same := tokens.resumed(from)
	// A number below zero would be refused as part of the status, for ever.
	if n, err := strconv.ParseInt(done, 10, 64); err == nil && n >= 0 && from != "" && same {
		t.from = from
		t.walked = n
		t.progress = Progress{Done: n, Total: attempt.Last.Total, Checkpoint: attempt.Last.Checkpoint}
	}
	return t
}

// checkpoint is where another attempt resumes: the number of objects before it and the
// token of what follows. An attempt with a refused object counts on behind its
// checkpoint, so its number of completed objects differs.
func (t tokens) checkpoint(done int64, from string) string {
	if from == "" {
		return ""
	}
	return fmt.Sprintf("%d %s%s", done, t, from)
}

func (t *progressTracker) add() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found++
}

func (t *progressTracker) foundSoFar() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.found
}

// cleared records the result for one object.
func (t *progressTracker) cleared(namespace, name string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		t.written++
	case refuses(err):
		t.refused++
		t.examples = append(t.examples, refusal{namespace, name, err})
		slices.SortFunc(t.examples, func(a, b refusal) int { return cmp.Compare(a.shown(), b.shown()) })
		t.examples = t.examples[:min(len(t.examples), maxExamples)]
	default:
		t.failed++
		if t.failure == nil {
			t.failure = fmt.Errorf("clearing %s: %w", objectName(namespace, name), err)
		}
	}
}

// pageDone reports the progress of the attempt after a page of so many objects, behind
// which so many remain and next begins. Once an object failed or refused the checkpoint
// stays before its page.
func (t *progressTracker) pageDone(objects, remaining int64, next string) {
	t.mu.Lock()
	if !t.verifying {
		t.walked += objects
		t.progress.Total = t.walked + remaining
		if t.refused == 0 && t.failure == nil {
			t.progress.Checkpoint = t.tokens.checkpoint(t.walked, next)
		}
		t.progress.Message = phrase.Count(t.written, "object", "objects") + " changed"
	}
	t.progress.Done = t.walked - int64(t.refused+t.failed)
	progress := t.progress
	t.mu.Unlock()
	t.report(progress)
}

// verify begins another pass: what is written meanwhile may have the field.
func (t *progressTracker) verify() {
	t.mu.Lock()
	t.verifying = true
	t.progress.Checkpoint = ""
	t.progress.Message = phrase.Count(t.written, "object", "objects") + " changed; checking for what was written meanwhile"
	progress := t.progress
	t.mu.Unlock()
	t.report(progress)
}

// blocked returns why a pass was not enough, nil when it was: an error that
// names the objects that refused, or the server's trouble. Retry returns whether one that
// refused does not any more.
func (t *progressTracker) blocked(c clearField, retry func(ctx context.Context, namespace, name string) bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.failure != nil:
		return t.failure
	case t.refused == 0:
		return nil
	}
	var named []string
	for _, r := range t.examples {
		named = append(named, r.shown()+": "+cut(r.cause))
	}
	first := t.examples[0]
	return &BlockedError{
		Message: fmt.Sprintf("%s to have %s removed: %s",
			phrase.Objects(t.refused, c.resource.GroupResource(), "refuses", "refuse"), c.path, strings.Join(named, "; ")),
		// One of them shows when it is worth retrying all.
		Until: func(ctx context.Context) error {
			return probe(ctx, func(ctx context.Context) bool { return retry(ctx, first.namespace, first.name) })
		},
	}
}
