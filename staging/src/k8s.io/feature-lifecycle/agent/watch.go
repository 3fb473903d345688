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

package agent

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	informers "k8s.io/feature-lifecycle/client/informers/externalversions/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/feature-lifecycle/watchtools"
	"k8s.io/klog/v2"
)

// selectDynamic and selectDynamicValues select one control only, by which kube-apiserver
// indexes its watchers.
var (
	selectDynamic       = fields.OneTermEqualSelector("status.control", string(v1alpha1.ControlDynamic)).String()
	selectDynamicValues = fields.OneTermEqualSelector("control", string(v1alpha1.ControlDynamic)).String()
)

// dynamicWatch watches the dynamic features, or their values. A nil dynamicWatch has none.
type dynamicWatch struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	store   cache.Store
	// listed is closed once the store has what the server has.
	listed <-chan struct{}
	// changed has room for one signal.
	changed chan struct{}
	// removed is true when an object has left the watch.
	removed *atomic.Bool
	// refused is true when the server answered that it does not have these objects, or does
	// not permit to read them. Only a watch of values has it.
	refused *atomic.Bool
}

// startWatch watches Features until the context ends or stop is called.
func startWatch(ctx context.Context, client versioned.Interface, namespace string) *dynamicWatch {
	informer := informers.NewFilteredFeatureInformer(client, namespace, 0, cache.Indexers{}, func(options *metav1.ListOptions) { options.FieldSelector = selectDynamic })
	// A list logs that the API is not served; this handler logs that values come late.
	handler := watchtools.NewWatchErrorHandler("changes of dynamic features at once", namespace)
	return newWatch().run(ctx, informer, handler)
}

// startValueWatch watches FeatureValues until the context ends or stop is called.
func startValueWatch(ctx context.Context, client versioned.Interface, namespace string) *dynamicWatch {
	w := newWatch()
	informer := informers.NewFilteredFeatureValueInformer(client, namespace, 0, cache.Indexers{}, func(options *metav1.ListOptions) { options.FieldSelector = selectDynamicValues })
	return w.run(ctx, informer, func(ctx context.Context, r *cache.Reflector, err error) {
		if backoff.IsNotFound(err) || backoff.IsForbidden(err) {
			w.refused.Store(true)
			w.signal()
			return
		}
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
}

func newWatch() *dynamicWatch {
	return &dynamicWatch{changed: make(chan struct{}, 1), removed: &atomic.Bool{}, refused: &atomic.Bool{}}
}

// run starts the informer.
func (w *dynamicWatch) run(ctx context.Context, informer cache.SharedIndexInformer, handler cache.WatchErrorHandlerWithContext) *dynamicWatch {
	ctx, w.cancel = context.WithCancel(ctx)
	w.store, w.listed = informer.GetStore(), informer.HasSyncedChecker().Done()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { w.signal() },
		UpdateFunc: func(any, any) { w.signal() },
		DeleteFunc: func(any) { w.removed.Store(true); w.signal() },
	})
	if err = errors.Join(err, informer.SetWatchErrorHandlerWithContext(handler)); err != nil {
		// Only a stopped informer refuses handlers, and only a running one error handlers.
		klog.FromContext(ctx).Error(err, "Dynamic features are not watched")
	}
	w.running.Go(func() { informer.RunWithContext(ctx) })
	w.running.Go(func() {
		// That there is nothing is no event.
		select {
		case <-w.listed:
			w.signal()
		case <-ctx.Done():
		}
	})
	return w
}

// signal wakes the Syncer.
func (w *dynamicWatch) signal() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// stop ends the watch and waits for its end.
func (w *dynamicWatch) stop() {
	if w != nil {
		w.cancel()
		w.running.Wait()
	}
}

// events returns the channel that receives a signal after changes.
func (w *dynamicWatch) events() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.changed
}

// left returns true once after an object has left the watch.
func (w *dynamicWatch) left() bool { return w != nil && w.removed.Swap(false) }

// complete returns true once the store has what the server has.
func (w *dynamicWatch) complete() bool {
	if w == nil {
		return false
	}
	select {
	case <-w.listed:
		return true
	default:
		return false
	}
}

// features returns the dynamic features in their current state.
func (w *dynamicWatch) features() map[string]*v1alpha1.Feature {
	result := map[string]*v1alpha1.Feature{}
	if w == nil {
		return result
	}
	for _, obj := range w.store.List() {
		if feature, ok := obj.(*v1alpha1.Feature); ok && feature.Status.Control == v1alpha1.ControlDynamic {
			result[feature.Name] = feature
		}
	}
	return result
}

// values returns the values of dynamic features in their current state.
func (w *dynamicWatch) values() map[string]*v1alpha1.FeatureValue {
	result := map[string]*v1alpha1.FeatureValue{}
	if w == nil {
		return result
	}
	for _, obj := range w.store.List() {
		if value, ok := obj.(*v1alpha1.FeatureValue); ok && value.Control == v1alpha1.ControlDynamic {
			result[value.Name] = value
		}
	}
	return result
}

// newer returns true if a resource version is newer than another. Versions that cannot be
// compared are not.
func newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0
}
