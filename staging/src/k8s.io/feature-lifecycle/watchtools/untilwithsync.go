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
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// UntilWithSync lists and watches objects of a type until condition returns true, which
// makes it return nil, or an error, which it returns. An object is an event when it is
// first observed, when it changes and when it is deleted; changes during a lost connection
// are one event. If the first list is empty, UntilWithSync calls ifEmpty, which ends it in
// the same ways; ifEmpty may be nil. Both run in the goroutine of the caller. When
// UntilWithSync returns, the connection is closed and no goroutine is left.
//
// When the context ends first, [wait.Interrupted] recognizes the error, which wraps the
// context's cause.
//
// Like UntilWithSync of k8s.io/client-go/tools/watch it survives lost connections and
// expired resource versions. It takes events from the informer one at a time instead of
// keeping them in a goroutine of its own. The goroutine of client-go is sometimes not
// woken when the watch ends, and leaks (kubernetes/kubernetes#90581), which a process that
// waits often cannot afford.
func UntilWithSync(ctx context.Context, source cache.ListerWatcher, object runtime.Object, ifEmpty func() (bool, error), condition func(watch.Event) (bool, error)) error {
	inner, stop := context.WithCancel(ctx)
	events := make(chan watch.Event)
	send := func(kind watch.EventType, object any) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		observed, ok := object.(runtime.Object)
		if !ok {
			return
		}
		select {
		case events <- watch.Event{Type: kind, Object: observed}:
		case <-inner.Done():
		}
	}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source,
		ObjectType:    object,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { send(watch.Added, object) },
			UpdateFunc: func(_, object any) { send(watch.Modified, object) },
			DeleteFunc: func(object any) { send(watch.Deleted, object) },
		},
	})
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(inner) })
	// Deferred, since a condition of a test may end the goroutine.
	defer running.Wait()
	defer stop()

	var listed <-chan struct{}
	if ifEmpty != nil {
		listed = informer.HasSyncedChecker().Done()
	}
	for {
		done, err := false, error(nil)
		select {
		case event := <-events:
			done, err = condition(event)
		case <-listed:
			listed = nil
			if len(store.ListKeys()) == 0 {
				done, err = ifEmpty()
			}
		case <-ctx.Done():
			return wait.ErrorInterrupted(context.Cause(ctx))
		}
		if done || err != nil {
			return err
		}
	}
}
