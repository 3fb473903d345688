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

// Package quiet keeps watches from filling logs when the server does not have the API that
// they are of: that is no error, and may stay so. Who watches Features or reports uses it.
package quiet

import (
	"context"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"
	"k8s.io/feature-lifecycle/internal/retry"
	"k8s.io/klog/v2"
)

// Watches are those of one purpose in one namespace. It is safe for concurrent use.
type Watches struct {
	// Purpose is what does not happen without the API, for the log.
	Purpose string
	// Namespace is what is watched.
	Namespace string

	said atomic.Bool
}

// Failed is the handler of informers for watches that failed. It says once that the server
// does not have the API, and all else as client-go does.
func (w *Watches) Failed(ctx context.Context, r *cache.Reflector, err error) {
	if !retry.NoAPI(err) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
		return
	}
	if w.said.CompareAndSwap(false, true) {
		klog.FromContext(ctx).Info("A watch has ended, since the server does not have the API features.k8s.io/v1alpha1; asking again from time to time", "without", w.Purpose, "namespace", w.Namespace)
	}
}
