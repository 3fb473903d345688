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

package feature

import (
	"errors"
	"fmt"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// follow prints the progress of features whose request was stored: the servers'
// response, or with --wait everything until the end.
func (o *setOptions) follow(w *follower, stored []change) (exitCode int, err error) {
	codes := map[int]bool{}
	var failed []error
	for _, change := range stored {
		code, err := o.followOne(w, change)
		switch {
		case errors.Is(err, errInterrupted):
			return ExitFailed, fmt.Errorf("%w; what was requested is stored, and continues", err)
		case err != nil:
			failed = append(failed, err)
		}
		codes[code] = true
	}
	switch {
	case codes[ExitHeld]:
		return ExitHeld, errors.Join(failed...)
	case codes[ExitTimedOut]:
		return ExitTimedOut, errors.Join(failed...)
	default:
		return ExitDone, errors.Join(failed...)
	}
}

// followOne follows one feature from what was stored. Without --wait it ends with
// the servers' answer.
func (o *setOptions) followOne(w *follower, change change) (int, error) {
	stored, last := change.feature, change.feature
	ended, part := underWay, &trial{}
	err := w.until(stored, func(f *v1alpha1.Feature) bool {
		last = f
		if !answered(f, stored.Generation) {
			return false
		}
		ended = o.request.outcome(f, stored.Generation)
		if !o.wait {
			return true
		}
		o.progress.of(f)
		if ended == inPart {
			if part = o.trial(w.last, f); part.underWay() {
				ended = underWay
			}
		}
		return ended != underWay
	})
	o.progress.end()
	name := title(stored.Name)
	switch timedOut := errors.Is(err, errTimedOut); {
	case errors.Is(err, errInterrupted):
		return ExitFailed, err
	case err != nil && !timedOut:
		return ExitFailed, fmt.Errorf("feature %s in %s was %s, and is not followed any more: %w", stored.Name, o.namespace, o.request.done(), err)
	case !o.wait && timedOut:
		fmt.Fprintln(o.Out, unanswered(change.said, stored))
		return ExitDone, nil
	case !o.wait:
		fmt.Fprintf(o.Out, "%s: %s\n", change.said, progressOf(last))
		return ExitDone, nil
	case timedOut:
		fmt.Fprintf(o.ErrOut, "%s: timed out after %s: %s; the request is stored, and continues\n", name, o.timeout, progressOf(last)+part.progress())
		return ExitTimedOut, nil
	case ended == inPart && part.unread != "":
		fmt.Fprintf(o.ErrOut, "%s: %s\n", name, part.unknown(last))
		return ExitHeld, nil
	case ended == inPart:
		fmt.Fprintf(o.Out, "%s: %s\n", name, part.done(last))
		return ExitDone, nil
	case ended == held:
		fmt.Fprintf(o.ErrOut, "%s: it needs user action to continue; the request is stored\n", name)
		return ExitHeld, nil
	default:
		return ExitDone, nil
	}
}
