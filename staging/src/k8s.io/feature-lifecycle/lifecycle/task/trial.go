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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/feature-lifecycle/internal/objectdiff"
)

// Trial is what became of the objects of a task that were tried (Task.Try).
type Trial struct {
	// Objects counts those that were tried, and Ready those that Run would change as
	// intended.
	Objects, Ready int64
	// Refused counts those that the server would not change, or in which it would change
	// something else, too. Untried counts those of which that is not known.
	Refused, Untried int64
	// RefusedExamples and UntriedExamples are the first of them in the order of the
	// collection, each with the reason.
	RefusedExamples, UntriedExamples []string
}

// Held returns true if Run would not get through.
func (t Trial) Held() bool { return t.Refused > 0 || t.Untried > 0 }

// Note counts one object of a name, and what the server answered to the dry run of its
// change: nil for one that it would change.
func (t *Trial) Note(name string, err error) {
	t.Objects++
	add := func(n *int64, examples *[]string) {
		*n++
		if len(*examples) < maxExamples {
			*examples = append(*examples, name+": "+cut(err))
		}
	}
	switch hinders, tells := admits(err); {
	case isSideEffect(err):
		add(&t.Refused, &t.RefusedExamples)
	case !tells:
		add(&t.Untried, &t.UntriedExamples)
	// The gate is off, so validation decides as it will.
	case hinders, apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		add(&t.Refused, &t.RefusedExamples)
	default:
		t.Ready++
	}
}

// tryAll tries a change of every object that matches, without storing it.
func tryAll(ctx context.Context, clients Clients, resource schema.GroupVersionResource, attempt Attempt, matches func(*unstructured.Unstructured) bool, try func(context.Context, *unstructured.Unstructured) error) (Trial, error) {
	var trial Trial
	limiter := newWriteLimiter()
	err := forEachPage(ctx, clients, resource, "", func(page *unstructured.UnstructuredList) error {
		if err := attempt.check(ctx); err != nil {
			return err
		}
		var objects []*unstructured.Unstructured
		for i := range page.Items {
			if matches(&page.Items[i]) {
				objects = append(objects, &page.Items[i])
			}
		}
		results := make([]error, len(objects))
		limiter.each(len(objects), func(i int) outcome {
			took, err := timed(func() error { return try(ctx, objects[i]) })
			results[i] = err
			return outcomeOf(took, err)
		})
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, err := range results {
			trial.Note(objectName(objects[i].GetNamespace(), objects[i].GetName()), err)
		}
		attempt.Report(Progress{Done: trial.Ready, Total: trial.Objects})
		return nil
	})
	return trial, err
}

// maxSideEffects is the number of other changes that a message names.
const maxSideEffects = 3

// sideEffectError is returned for an object in which a write changes something else, too.
type sideEffectError struct{ message string }

func (e *sideEffectError) Error() string { return e.message }

func isSideEffect(err error) bool {
	var effect *sideEffectError
	return errors.As(err, &effect)
}

// sideEffects returns an error if an object, as the server answered a write, differs from
// the one that was read by more than the field. Answers with metadata alone show nothing.
func (c clearField) sideEffects(before *unstructured.Unstructured, after metav1.Object) error {
	full, ok := after.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	if c.path.in(full.Object) {
		return &sideEffectError{fmt.Sprintf("the server puts %s in again", c.path)}
	}
	others := objectdiff.Paths(objectdiff.Beside(before.Object, c.path.Pointers(before.Object)), objectdiff.Beside(full.Object, nil), maxSideEffects)
	if len(others) == 0 {
		return nil
	}
	return &sideEffectError{fmt.Sprintf("the server changes %s with it", strings.Join(others, ", "))}
}

// try is Task.Try.
func (c clearField) try(ctx context.Context, clients Clients, attempt Attempt) (Trial, error) {
	if err := findable(ctx, clients, c.resource, c.path, nil); err != nil {
		return Trial{}, err
	}
	return tryAll(ctx, clients, c.resource, attempt, c.has, func(ctx context.Context, o *unstructured.Unstructured) error {
		patch, err := c.patch(o, nil)
		if err != nil {
			return err
		}
		after, err := c.send(ctx, clients, o, patch, metav1.PatchOptions{DryRun: dryRun}, c.subresources...)
		if err != nil {
			return err
		}
		return c.sideEffects(o, after)
	})
}

// try is Task.Try. Objects with finalizers of others are deleted and waited for.
func (c clearCollection) try(ctx context.Context, clients Clients, attempt Attempt) (Trial, error) {
	resource, isServed, err := served(clients, c.resource)
	switch {
	case err != nil:
		return Trial{}, err
	case !isServed:
		return Trial{}, undefined(ctx, clients, c.resource)
	}
	live := func(o *unstructured.Unstructured) bool { return o.GetDeletionTimestamp() == nil }
	return tryAll(ctx, clients, resource, attempt, live, func(ctx context.Context, o *unstructured.Unstructured) error {
		return clients.Dynamic.Resource(resource).Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), deletion(o, dryRun...))
	})
}

// tryIn is runIn for what tries a task.
func tryIn(declared schema.GroupVersionResource, fields []Path, try func(context.Context, Clients, Attempt, schema.GroupVersionResource) (Trial, error)) func(context.Context, Clients, Attempt) (Trial, error) {
	return func(ctx context.Context, clients Clients, attempt Attempt) (trial Trial, err error) {
		err = anyVersion(ctx, clients, declared, fields, func(resource schema.GroupVersionResource) error {
			trial, err = try(ctx, clients, attempt, resource)
			return err
		})
		return trial, err
	}
}

// firstProblem keeps the first error of writes that are under way at the same time, for an
// attempt that stops there (Attempt.StopAtFirst). It is safe for concurrent use.
type firstProblem struct {
	mu  sync.Mutex
	err error
}

// note records the result of a write, nil for one that went well.
func (f *firstProblem) note(namespace, name string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil && err != nil {
		f.err = fmt.Errorf("%s: %w", objectName(namespace, name), err)
	}
}

// seen returns the first one.
func (f *firstProblem) seen() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
