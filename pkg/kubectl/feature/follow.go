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

package feature

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
)

// follow says what becomes of features whose request was stored: what the servers
// answer, or with --wait everything until the end. All share one time limit.
func (o *setOptions) follow(ctx context.Context, stored []change) (exitCode int, err error) {
	limit := answerTimeout
	if o.wait {
		limit = o.timeout
	}
	limited, cancel := watchtools.ContextWithOptionalTimeout(ctx, limit)
	defer cancel()
	codes := map[int]bool{}
	var failed []error
	for _, change := range stored {
		code, err := o.followOne(limited, change)
		switch {
		case ctx.Err() != nil:
			return ExitFailed, fmt.Errorf("interrupted; what was requested is stored, and goes on")
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
func (o *setOptions) followOne(ctx context.Context, change change) (int, error) {
	stored, last := change.feature, change.feature
	ended := underWay
	err := until(ctx, o.client, stored.Namespace, stored.Name, func(f *v1alpha1.Feature) bool {
		last = f
		if !answered(f, stored.Generation) {
			return false
		}
		ended = o.request.outcome(f, stored.Generation)
		if o.wait {
			o.progress.of(f)
		}
		return !o.wait || ended != underWay
	})
	o.progress.end()
	name := title(stored.Name)
	switch timedOut := wait.Interrupted(err); {
	case err != nil && !timedOut:
		return ExitFailed, fmt.Errorf("feature %s in %s was %s, and is not followed any more: %w", stored.Name, o.namespace, o.request.done(), err)
	case !o.wait && timedOut:
		fmt.Fprintf(o.Out, "%s: the request is stored; no server has said yet what becomes of it (kubectl feature describe %s%s)\n",
			change.said, stored.Name, namespaceFlag(stored))
		return ExitDone, nil
	case !o.wait:
		fmt.Fprintf(o.Out, "%s: %s\n", change.said, progressOf(last))
		return ExitDone, nil
	case timedOut:
		fmt.Fprintf(o.ErrOut, "%s: timed out after %s: %s; the request is stored, and goes on\n", name, o.timeout, progressOf(last))
		return ExitTimedOut, nil
	case ended == held:
		fmt.Fprintf(o.ErrOut, "%s: it does not go on before somebody acts; the request is stored\n", name)
		return ExitHeld, nil
	default:
		return ExitDone, nil
	}
}

// until watches one feature, beginning with what it is now, until a function
// returns true. It fails when the feature is deleted, and, as wait.Interrupted
// tells, when the context ends.
func until(ctx context.Context, client versioned.Interface, namespace, name string, enough func(*v1alpha1.Feature) bool) error {
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			return client.FeaturesV1alpha1().Features(namespace).List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return client.FeaturesV1alpha1().Features(namespace).Watch(ctx, options)
		},
	}, client)
	gone := func(store cache.Store) (bool, error) {
		if len(store.List()) == 0 {
			return false, errDeleted
		}
		return false, nil
	}
	_, err := watchtools.UntilWithSync(ctx, lw, &v1alpha1.Feature{}, gone, func(event watch.Event) (bool, error) {
		feature, ok := event.Object.(*v1alpha1.Feature)
		switch {
		case !ok || feature.Name != name:
			return false, nil
		case event.Type == watch.Deleted:
			return false, errDeleted
		default:
			return enough(feature), nil
		}
	})
	if err != nil && ctx.Err() != nil {
		// While it lists, the library says only what the context says.
		return wait.ErrorInterrupted(err)
	}
	return err
}

var errDeleted = errors.New("it was deleted; kube-apiserver makes it anew, without a request")
