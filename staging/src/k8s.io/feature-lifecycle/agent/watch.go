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
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	informers "k8s.io/feature-lifecycle/client/informers/externalversions/features/v1alpha1"
	"k8s.io/feature-lifecycle/watchtools"
	"k8s.io/klog/v2"
)

// selectDynamic selects one control only, by which kube-apiserver indexes its watchers.
var selectDynamic = fields.OneTermEqualSelector("status.control", string(v1alpha1.ControlDynamic)).String()

// dynamicWatch watches the dynamic features. A nil dynamicWatch has none.
type dynamicWatch struct {
	cancel context.CancelFunc
	done   chan struct{}
	store  cache.Store
	// changed has room for one signal.
	changed chan struct{}
	// removed is true when a feature has left the watch.
	removed *atomic.Bool
}

// startWatch watches until the context ends or stop is called.
func startWatch(ctx context.Context, client versioned.Interface, namespace string) *dynamicWatch {
	ctx, cancel := context.WithCancel(ctx)
	informer := informers.NewFilteredFeatureInformer(client, namespace, 0, cache.Indexers{}, func(options *metav1.ListOptions) { options.FieldSelector = selectDynamic })
	w := &dynamicWatch{cancel: cancel, done: make(chan struct{}), store: informer.GetStore(), changed: make(chan struct{}, 1), removed: &atomic.Bool{}}
	signal := func() {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { signal() },
		UpdateFunc: func(any, any) { signal() },
		DeleteFunc: func(any) { w.removed.Store(true); signal() },
	})
	// A list logs that the API is not served; this handler logs that values come late.
	handler := watchtools.NewWatchErrorHandler("changes of dynamic features at once", namespace)
	if err = errors.Join(err, informer.SetWatchErrorHandlerWithContext(handler)); err != nil {
		// Only a stopped informer refuses handlers, and only a running one error handlers.
		klog.FromContext(ctx).Error(err, "Dynamic features are not watched")
	}
	go func() {
		defer close(w.done)
		informer.RunWithContext(ctx)
	}()
	return w
}

// stop ends the watch and waits for its end.
func (w *dynamicWatch) stop() {
	if w != nil {
		w.cancel()
		<-w.done
	}
}

// events returns the channel that receives a signal after changes.
func (w *dynamicWatch) events() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.changed
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

// newer returns true if a resource version is newer than another. Versions that cannot be
// compared are not.
func newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0
}
