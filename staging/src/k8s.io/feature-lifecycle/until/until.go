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

// Package until watches objects until something is so. It does what UntilWithSync of
// k8s.io/client-go/tools/watch does: it goes on after lost connections and expired
// resource versions. It takes events from the informer one at a time instead of keeping
// them in a goroutine of its own: that of client-go is sometimes not woken when the
// watch ends, and stays for good (kubernetes/kubernetes#90581), which a process that
// waits often does not bear.
package until

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Met lists and watches objects of a type until condition returns true, which makes
// Met return nil, or an error, which Met returns. Each object is an event when it is
// first seen, when it changes and when it is deleted; what happens while the
// connection is lost is one event. When no object is there at the beginning, empty is
// called, which has the same say; it may be nil. Both are called in the goroutine of
// the caller. The connection is closed when Met returns, and no goroutine is left.
//
// When the context ends first, the error is one that [wait.Interrupted] knows, and
// wraps the context's cause.
func Met(ctx context.Context, source cache.ListerWatcher, object runtime.Object, empty func() (bool, error), condition func(watch.Event) (bool, error)) error {
	inner, stop := context.WithCancel(ctx)
	events := make(chan watch.Event)
	see := func(kind watch.EventType, object any) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		seen, ok := object.(runtime.Object)
		if !ok {
			return
		}
		select {
		case events <- watch.Event{Type: kind, Object: seen}:
		case <-inner.Done():
		}
	}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source,
		ObjectType:    object,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { see(watch.Added, object) },
			UpdateFunc: func(_, object any) { see(watch.Modified, object) },
			DeleteFunc: func(object any) { see(watch.Deleted, object) },
		},
	})
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(inner) })
	// Deferred: a condition of a test may end the goroutine.
	defer running.Wait()
	defer stop()

	var listed <-chan struct{}
	if empty != nil {
		listed = informer.HasSyncedChecker().Done()
	}
	for {
		met, err := false, error(nil)
		select {
		case event := <-events:
			met, err = condition(event)
		case <-listed:
			listed = nil
			if len(store.ListKeys()) == 0 {
				met, err = empty()
			}
		case <-ctx.Done():
			return wait.ErrorInterrupted(context.Cause(ctx))
		}
		if met || err != nil {
			return err
		}
	}
}
