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

package watchtools

import (
	"context"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/klog/v2"
)

// NewWatchErrorHandler returns the handler of failed watches for informers of
// features.k8s.io in a namespace. A server without the API is no error and may stay like
// that, so the handler logs it once for all informers that share it. All other errors go
// to client-go's own handler. Purpose says what does not work without the API. The handler
// is safe for concurrent use.
func NewWatchErrorHandler(purpose, namespace string) cache.WatchErrorHandlerWithContext {
	var logged atomic.Bool
	return func(ctx context.Context, r *cache.Reflector, err error) {
		if !backoff.IsAPINotServed(err) {
			cache.DefaultWatchErrorHandler(ctx, r, err)
			return
		}
		if logged.CompareAndSwap(false, true) {
			klog.FromContext(ctx).Info("Watch ended, server does not have the API features.k8s.io/v1alpha1, will retry", "purpose", purpose, "namespace", namespace)
		}
	}
}
