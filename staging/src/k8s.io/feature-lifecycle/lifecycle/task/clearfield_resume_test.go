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
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// many are objects w00, w01, ..., all with the field.
func many(n int) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for i := range n {
		objects = append(objects, widget(fmt.Sprintf("w%02d", i), "x"))
	}
	return objects
}

// progresses records what an attempt reports.
type progresses struct {
	mu  sync.Mutex
	all []Progress
}

func (p *progresses) attempt(last Progress) Attempt {
	return Attempt{Last: last, Report: func(progress Progress) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all = append(p.all, progress)
	}}
}

func (p *progresses) last() Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[len(p.all)-1]
}

// monotone checks that an attempt never counts back.
func (p *progresses) monotone(t *testing.T, total int64) {
	t.Helper()
	done := int64(0)
	for i, progress := range p.all {
		if progress.Done < done || progress.Done > progress.Total || progress.Total > total {
			t.Errorf("progress %d is %d of %d after %d; there are %d objects", i, progress.Done, progress.Total, done, total)
		}
		done = progress.Done
	}
}

// crashAfter runs an attempt whose process ends once so many pages are done, and
// returns its last progress.
func crashAfter(t *testing.T, w *wire, pages int) Progress {
	t.Helper()
	ctx, crash := context.WithCancel(t.Context())
	defer crash()
	var known []Progress
	err := ClearField(widgets, "spec.field").Run(ctx, w.clients(), Attempt{Report: func(p Progress) {
		if known = append(known, p); len(known) == pages {
			crash()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the attempt cut short", err)
	}
	return known[pages-1]
}

func TestClearFieldResumesAfterCrashAndRereadsAll(t *testing.T) {
	s := &wire{server: serve(many(20)...), size: 4}
	known := crashAfter(t, s, 2)
	if known.Done != 8 || known.Total != 20 || known.Checkpoint == "" {
		t.Fatalf("known is %+v, want 8 of 20 and a checkpoint", known)
	}
	// The field was written behind the checkpoint between the attempts.
	if err := s.Tracker().Update(widgets, widget("w01", "again"), "ns"); err != nil {
		t.Fatal(err)
	}
	var tokens []string
	s.expired = func(token string) error {
		tokens = append(tokens, token)
		return nil
	}
	s.ClearActions()
	var p progresses
	if err := ClearField(widgets, "spec.field").Run(t.Context(), s.clients(), p.attempt(known)); err != nil {
		t.Fatal(err)
	}
	if tokens[0] != "after w07" {
		t.Errorf("the second attempt began at %q, want it behind w07", tokens[0])
	}
	if patched := s.patched(); patched[0] != "w01" {
		t.Errorf("written were %v; w01 got the field again", patched)
	}
	if n := len(s.patched()); n != 13 {
		t.Errorf("%d objects were written, want the 12 behind the checkpoint and w01", n)
	}
	p.monotone(t, 20)
	if last := p.last(); last.Done != 20 || last.Total != 20 || last.Checkpoint != "" {
		t.Errorf("progress ended with %+v", last)
	}
}

// TestClearFieldRereadsBeforeCheckpoint checks that nothing is left behind the
// checkpoint, and the field was written before it meanwhile.
func TestClearFieldRereadsBeforeCheckpoint(t *testing.T) {
	w := &wire{server: serve(widget("w01", "again"), widget("w20", "")), size: 4}
	last := Progress{Done: 19, Total: 20, Checkpoint: apiTokens.checkpoint(19, "after w19")}
	var p progresses
	if err := ClearField(widgets, "spec.field").Run(t.Context(), w.clients(), p.attempt(last)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"w01"}, w.patched()); diff != "" {
		t.Errorf("unexpected writes (-want +got):\n%s", diff)
	}
	p.monotone(t, 20)
	// One that cannot be read is as good as none.
	for _, text := range []string{"after w19", "x after w19", " "} {
		w := &wire{server: serve(many(5)...), size: 4}
		if err := ClearField(widgets, "spec.field").Run(t.Context(), w.clients(), Attempt{Last: Progress{Checkpoint: text}, Report: func(Progress) {}}); err != nil {
			t.Fatal(err)
		}
		if n := len(w.patched()); n != 5 {
			t.Errorf("checkpoint %q: %d objects were written, want 5", text, n)
		}
	}
}

func TestCheckpointStaysBeforeUnclearedObjects(t *testing.T) {
	for name, refusal := range map[string]error{
		"an object refuses": apierrors.NewForbidden(widgets.GroupResource(), "w09", errors.New("no")),
		"an object fails":   apierrors.NewInternalError(errors.New("etcd")),
	} {
		t.Run(name, func(t *testing.T) {
			s := &wire{server: serve(many(20)...), size: 4}
			s.PrependReactor("patch", "widgets", func(a clienttesting.Action) (bool, runtime.Object, error) {
				return a.(clienttesting.PatchAction).GetName() == "w09", nil, refusal
			})
			var last Progress
			// However often it is attempted, the numbers stay those of the objects.
			for attempt := range 4 {
				var p progresses
				if err := ClearField(widgets, "spec.field").Run(t.Context(), s.clients(), p.attempt(last)); err == nil {
					t.Fatal("it is done, and w09 has the field")
				}
				p.monotone(t, 20)
				last = p.last()
				if _, from, _ := strings.Cut(last.Checkpoint, " "); from != "after w07" {
					t.Errorf("attempt %d: the checkpoint is %q, want it behind w07", attempt, last.Checkpoint)
				}
				if last.Done != 19 || last.Total != 20 {
					t.Errorf("attempt %d is done with %d of %d, want 19 of 20", attempt, last.Done, last.Total)
				}
			}
		})
	}
}

// TestTokensExpire checks a walk that takes longer than etcd keeps old revisions. It
// continues at the present one, or restarts when the server offers no token.
func TestTokensExpire(t *testing.T) {
	inconsistent := apierrors.NewResourceExpired("the provided continue parameter is too old")
	inconsistent.ErrStatus.Continue = "after w07 as of now"
	for name, tc := range map[string]struct {
		err error
		// lists is the number of LIST calls: 5 pages in each of two passes, one answer that
		// is an error, and what is listed again.
		lists int
	}{
		"the server returns a new token": {inconsistent, 11},
		"the server says nothing":        {apierrors.NewResourceExpired("too old"), 13},
	} {
		t.Run(name, func(t *testing.T) {
			expire := true
			w := &wire{server: serve(many(20)...), size: 4, expired: func(token string) error {
				if token == "after w07" && expire {
					expire = false
					return tc.err
				}
				return nil
			}}
			if err := ClearField(widgets, "spec.field").Run(t.Context(), w.clients(), ignored); err != nil {
				t.Fatal(err)
			}
			if n := len(w.patched()); n != 20 {
				t.Errorf("%d objects were written, want each once", n)
			}
			if n := len(w.requests("list")); n != tc.lists {
				t.Errorf("%d lists, want %d", n, tc.lists)
			}
		})
	}
}

// TestTokenExpiresEachTime is trouble, and no endless loop.
func TestTokenExpiresEachTime(t *testing.T) {
	w := &wire{server: serve(many(20)...), size: 4, expired: func(token string) error {
		if token == "" {
			return nil
		}
		expired := apierrors.NewResourceExpired("too old")
		expired.ErrStatus.Continue = token
		return expired
	}}
	err := ClearField(widgets, "spec.field").Run(t.Context(), w.clients(), ignored)
	if err == nil || !apierrors.IsResourceExpired(err) {
		t.Errorf("got %v, want the server's error", err)
	}
}

// TestAttemptEnds leaves no goroutine behind: synctest fails then.
func TestAttemptEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		w := &wire{server: serve(many(60)...), size: 20, before: func(ctx context.Context, r request) error {
			if r.verb == "patch" {
				return pause(ctx, time.Second)
			}
			return nil
		}}
		begun := time.Now()
		err := ClearField(widgets, "spec.field").Run(ctx, w.clients(), ignored)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		if took := time.Since(begun); took != 2500*time.Millisecond {
			t.Errorf("it ended after %s", took)
		}
	})
}

// pause waits, unless the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
