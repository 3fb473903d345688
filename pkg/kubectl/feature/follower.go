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
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	clientgowatch "k8s.io/client-go/tools/watch"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/watchtools"
	"k8s.io/klog/v2"
)

// lookTimeout limits the last read of all features after the time limit.
const lookTimeout = 2 * time.Second

var (
	// errInterrupted is returned when the user interrupts the command.
	errInterrupted = errors.New("interrupted")
	// errTimedOut is returned after the command's own time limit, and not after
	// that of a request (--request-timeout).
	errTimedOut = errors.New("the time is over")
)

// follower watches features, one after the other; all share one time limit. It fails
// with errInterrupted when the user interrupts the command, and with errTimedOut
// when the time is over.
type follower struct {
	// ctx ends with an interrupt, limited also with the time limit, and last some
	// time after that.
	ctx, limited, last context.Context
	client             versioned.Interface
}

// newFollower makes one with a time limit from now on; 0 is without.
func newFollower(ctx context.Context, client versioned.Interface, limit time.Duration) (*follower, context.CancelFunc) {
	limited, cancel := clientgowatch.ContextWithOptionalTimeout(ctx, limit)
	if limit == 0 {
		return &follower{ctx, limited, limited, client}, cancel
	}
	last, cancelLast := context.WithTimeout(ctx, limit+lookTimeout)
	return &follower{ctx, limited, last, client}, func() { cancel(); cancelLast() }
}

// lookUp reads a feature.
func (w *follower) lookUp(namespace, name string) (*v1alpha1.Feature, error) {
	f, err := lookUp(w.limited, w.client.FeaturesV1alpha1().Features(namespace), namespace, name)
	return f, w.cause(err)
}

// cause returns the cause of a failure: if a context has ended, that, whatever the
// library's error.
func (w *follower) cause(err error) error {
	switch {
	case err == nil:
		return nil
	case w.ctx.Err() != nil:
		return errInterrupted
	case w.limited.Err() != nil:
		return fmt.Errorf("%w: %w", errTimedOut, err)
	default:
		return err
	}
}

// until watches a feature from its current state until a function returns true. When
// the time is over it reads the feature once more, since earlier features may have
// used all of it. It fails when the feature is deleted, even if it is recreated, and
// when the server forbids the watch.
func (w *follower) until(seen *v1alpha1.Feature, enough func(*v1alpha1.Feature) bool) error {
	err := w.cause(w.watch(seen, enough))
	if !errors.Is(err, errTimedOut) {
		return err
	}
	f, lookErr := w.client.FeaturesV1alpha1().Features(seen.Namespace).Get(w.last, seen.Name, metav1.GetOptions{})
	switch {
	case w.ctx.Err() != nil:
		return errInterrupted
	case apierrors.IsNotFound(lookErr), lookErr == nil && f.UID != seen.UID:
		return errDeleted(seen.Namespace)
	case lookErr == nil && enough(f):
		return nil
	default:
		return err
	}
}

// watch is until without the last read. The informer logs its errors, here to the
// screen, and retries after any of them. So it gets the zero logger, which logs
// nothing.
func (w *follower) watch(seen *v1alpha1.Feature, enough func(*v1alpha1.Feature) bool) error {
	ctx, fail := context.WithCancelCause(klog.NewContext(w.limited, klog.Logger{}))
	defer fail(nil)
	features := w.client.FeaturesV1alpha1().Features(seen.Namespace)
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, seen.Name).String()
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			list, err := features.List(ctx, options)
			if refused := refusal(err, seen.Namespace); refused != nil {
				fail(refused)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			events, err := features.Watch(ctx, options)
			if refused := refusal(err, seen.Namespace); refused != nil {
				fail(refused)
			}
			return events, err
		},
	}, w.client)
	deleted := errDeleted(seen.Namespace)
	gone := func() (bool, error) { return false, deleted }
	err := watchtools.UntilWithSync(ctx, lw, &v1alpha1.Feature{}, gone, func(event watch.Event) (bool, error) {
		feature, ok := event.Object.(*v1alpha1.Feature)
		switch {
		case !ok || feature.Name != seen.Name:
			return false, nil
		case event.Type == watch.Deleted, feature.UID != seen.UID:
			// It may have been recreated while it was not watched.
			return false, deleted
		default:
			return enough(feature), nil
		}
	})
	var refused *refusedError
	if err != nil && errors.As(context.Cause(ctx), &refused) {
		return refused
	}
	return err
}

// refusedError is an answer that does not change by asking again.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

// refusal returns why a server forbids watching features, nil if that may pass.
func refusal(err error, namespace string) error {
	switch {
	case apierrors.IsForbidden(err):
		return &refusedError{fmt.Errorf("following it needs permission to list and watch features in %s: %w", namespace, err)}
	case apierrors.IsUnauthorized(err):
		return &refusedError{fmt.Errorf("the server does not know you any more: %w", err)}
	case apierrors.IsNotFound(err):
		return &refusedError{errNoAPI}
	default:
		return nil
	}
}

// errDeleted is returned for a feature that is no longer the followed one.
func errDeleted(namespace string) error {
	if namespace == metav1.NamespaceSystem {
		return errors.New("it was deleted; kube-apiserver recreates it, without a request")
	}
	return errors.New("it was deleted; its operator recreates it while it runs, without a request")
}
