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
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/feature-lifecycle/lifecycle/internal/phrase"
	"k8s.io/feature-lifecycle/watchtools"
)

// probePeriod is how often a refused request is retried while no event announces a
// change. One request is small; a minute is the limit for progress (L2).
const probePeriod = 30 * time.Second

// probe tries from time to time until try succeeds. It returns an error when
// the context ends first.
func probe(ctx context.Context, try func(context.Context) bool) error {
	return wait.PollUntilContextCancel(ctx, probePeriod, false, func(ctx context.Context) (bool, error) {
		return try(ctx), nil
	})
}

// object names one object of a resource.
type object struct {
	namespace, name string
	uid             string
}

// untilOneIsGone watches a few objects, each by its name, and returns nil as soon as
// one of them is deleted, is another one of the same name, or does not match any more.
// Watching a whole collection for days would cost a copy of it.
func untilOneIsGone(ctx context.Context, clients Clients, resource schema.GroupVersionResource, objects []object, matches func(*unstructured.Unstructured) bool) error {
	var waits []func(context.Context) error
	for _, o := range objects {
		waits = append(waits, func(ctx context.Context) error { return untilGone(ctx, clients, resource, o, matches) })
	}
	return first(ctx, waits...)
}

// first runs several waits at once and returns what the first returns that ends.
// The others have ended, too, by then.
func first(ctx context.Context, waits ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, len(waits))
	for _, wait := range waits {
		go func() { results <- wait(ctx) }()
	}
	var err error
	for i := range waits {
		result := <-results
		if i == 0 {
			err = result
		}
		cancel()
	}
	return err
}

// untilGone is untilOneIsGone for one object.
func untilGone(ctx context.Context, clients Clients, resource schema.GroupVersionResource, o object, matches func(*unstructured.Unstructured) bool) error {
	client := clients.Dynamic.Resource(resource).Namespace(o.namespace)
	return watchOne(ctx, clients, client, o.name, func(found *unstructured.Unstructured) (bool, error) {
		return found == nil || string(found.GetUID()) != o.uid || !matches(found), nil
	})
}

// watchOne watches one object by its name until done returns true or an error. Done is
// called with nil when the object does not exist. The clients are those that client is
// one of.
func watchOne(ctx context.Context, clients Clients, client dynamic.ResourceInterface, name string, done func(*unstructured.Unstructured) (bool, error)) error {
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return client.Watch(ctx, options)
		},
	}
	absent := func() (bool, error) { return done(nil) }
	// A fake client cannot begin a watch with the existing objects, and declares that.
	source := cache.ToListWatcherWithWatchListSemantics(lw, clients.Dynamic)
	return watchtools.UntilWithSync(ctx, source, &unstructured.Unstructured{}, absent, func(event watch.Event) (bool, error) {
		found, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case !ok || found.GetName() != name:
			return false, nil
		case event.Type == watch.Deleted:
			return done(nil)
		default:
			return done(found)
		}
	})
}

// refuses returns true when an object cannot be changed without an external action:
// permissions, validation or a webhook forbid it, or one cannot be called. Anything
// else, such as a busy or missing server, is transient.
func refuses(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err) || denied(err) ||
		// A webhook that cannot be called is an internal error like many others; only the
		// text distinguishes it (k8s.io/apiserver/pkg/admission/plugin/webhook).
		apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}

// denied returns true when a webhook or a policy denies a request. A webhook chooses
// any code, those of conflicts and of a server in trouble among them, and a policy may
// choose 401. Only the text distinguishes them (k8s.io/apiserver's
// pkg/admission/plugin/webhook/errors and plugin/policy/validating).
func denied(err error) bool {
	text := err.Error()
	return strings.Contains(text, "admission webhook") && strings.Contains(text, "denied the request") ||
		strings.Contains(text, "ValidatingAdmissionPolicy") && strings.Contains(text, "denied request")
}

// maxCause is how much of a server's answer about one object a message quotes:
// validation can name hundreds of problems.
const maxCause = 500

// cut shortens a server's answer.
func cut(err error) string { return phrase.Cut(err.Error(), maxCause) }
