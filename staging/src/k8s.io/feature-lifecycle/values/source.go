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

package values

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	informers "k8s.io/feature-lifecycle/client/informers/externalversions/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/feature-lifecycle/watchtools"
	"k8s.io/klog/v2"
)

// Selectors of Features. A watch selects one control only, which is what
// kube-apiserver keeps its watchers by.
var (
	told = fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.control", ""),
		fields.OneTermNotEqualSelector("status.control", string(v1alpha1.ControlLocal))).String()
	dynamic = fields.OneTermEqualSelector("status.control", string(v1alpha1.ControlDynamic)).String()
)

// pageSize bounds one answer; Kubernetes has 240 features.
const pageSize = 500

// errMissing means that the server has no such API: an older one, an unpatched
// one, or one whose gate FeatureLifecycle is off.
var errMissing = errors.New("the server does not have the API features.k8s.io/v1alpha1")

// ClientConfig returns how a follower's client should reach the server: as the
// configuration says, but with protobuf, and without client-go's own repetitions,
// since a follower has pauses of its own, which grow and are random. A change brings
// some events to thousands of followers, and JSON takes seven times as long to read
// (BenchmarkReadFeature).
func ClientConfig(config *rest.Config) *rest.Config { return backoff.ClientConfig(config) }

// look lists the Features that say something. The first list is as new as the
// server's storage; later ones come from its cache and are not older than the one
// before.
func (f *Follower) look(ctx context.Context) error {
	if f.client != nil && f.config.Reconnect != nil && f.config.Reconnect() {
		f.watch.stop()
		f.watch, f.client = nil, nil
	}
	if f.client == nil {
		client, err := f.config.Connect()
		if err != nil {
			return fmt.Errorf("connecting: %w", err)
		}
		f.client = client
	}
	options := metav1.ListOptions{FieldSelector: told, Limit: pageSize}
	if f.seen != "" {
		options.ResourceVersion, options.ResourceVersionMatch = f.seen, metav1.ResourceVersionMatchNotOlderThan
	}
	listed := map[string]*v1alpha1.Feature{}
	for {
		list, err := f.client.FeaturesV1alpha1().Features(f.config.Namespace).List(ctx, options)
		if err != nil {
			if apierrors.IsTooManyRequests(err) {
				return err
			}
			// A server that was restored from a backup may never get there.
			f.seen = ""
			return f.explain(ctx, err)
		}
		for i := range list.Items {
			listed[list.Items[i].Name] = &list.Items[i]
		}
		if list.Continue == "" {
			f.listed, f.seen = listed, list.ResourceVersion
			return nil
		}
		options.Continue, options.ResourceVersion, options.ResourceVersionMatch = list.Continue, "", ""
	}
}

// explain finds out whether the server has the API at all. Who may not read
// Features is refused, whether there are any or not: an unpatched server says so
// only in its discovery.
func (f *Follower) explain(ctx context.Context, err error) error {
	switch {
	case backoff.IsNotFound(err):
		return fmt.Errorf("%w: %w", errMissing, err)
	case !backoff.IsForbidden(err):
		return err
	}
	found := make(chan error, 1)
	go func() {
		_, err := f.client.Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String())
		found <- err
	}()
	select {
	case missing := <-found:
		if backoff.IsNotFound(missing) {
			return fmt.Errorf("%w: %w", errMissing, missing)
		}
	case <-ctx.Done():
	}
	return err
}

// lookAgain is look for a process that runs. It logs what changed in the server's
// answers.
func (f *Follower) lookAgain(ctx context.Context) error {
	attempt, cancel := context.WithTimeout(ctx, maxBackoff)
	defer cancel()
	err := f.look(attempt)
	logger := klog.FromContext(ctx).WithValues("component", f.config.Component)
	state := ""
	switch {
	case err == nil:
		f.failures = 0
		if !f.trusted {
			if cause := f.ready(attempt); cause != nil {
				logger.V(2).Info("The values of features are not saved yet: the server may not know what is set centrally; it is asked again", "cause", cause)
			}
		}
		if f.state != "" {
			logger.Info("The server says again which values of features are set centrally")
		}
	case errors.Is(err, errMissing), errors.Is(err, ErrNoServer):
		f.failures++
		state = "missing"
		// What was told by a server with the API stays until one takes it back.
		f.watch.stop()
		f.watch, f.listed = nil, nil
	default:
		f.failures++
		state = "failing"
	}
	if state != "" && state != f.state && ctx.Err() == nil {
		logger.Info("It is not known which values of features are set centrally; looking again from time to time", "cause", err)
	}
	f.state = state
	return err
}

// LookWhenServed has Run look within some seconds when a server takes reports again, as
// who reports to it finds out, or takes the first one although the last look found no API:
// reporting is Reporting of a report.Reporter. While reports are taken Run looks soon again
// after a look that finds no API. It returns when the context ends, and may run at the same
// time as Run.
func (f *Follower) LookWhenServed(ctx context.Context, reporting func() (is bool, changed <-chan struct{})) {
	for again := false; ; {
		is, changed := reporting()
		f.reports.Store(is)
		if is {
			select {
			case f.served <- again:
			default:
			}
			again = true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// ready asks whether the server that has just answered knows what is set
// centrally.
func (f *Follower) ready(ctx context.Context) error {
	if f.config.Ready != nil {
		if err := f.config.Ready(ctx, f.client); err != nil {
			return err
		}
	}
	f.trusted = true
	return nil
}

// watch follows the dynamic features. A nil watch has none.
type watch struct {
	cancel context.CancelFunc
	done   chan struct{}
	store  cache.Store
	// changed has room for one signal.
	changed chan struct{}
	// vanished is true when a feature has left the watch.
	vanished *atomic.Bool
}

// startWatch watches until the context ends or stop is called.
func startWatch(ctx context.Context, client versioned.Interface, namespace string) *watch {
	ctx, cancel := context.WithCancel(ctx)
	informer := informers.NewFilteredFeatureInformer(client, namespace, 0, cache.Indexers{}, func(options *metav1.ListOptions) { options.FieldSelector = dynamic })
	w := &watch{cancel: cancel, done: make(chan struct{}), store: informer.GetStore(), changed: make(chan struct{}, 1), vanished: &atomic.Bool{}}
	signal := func() {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { signal() },
		UpdateFunc: func(any, any) { signal() },
		DeleteFunc: func(any) { w.vanished.Store(true); signal() },
	})
	// Who looks again says that the API is missing, and this that values come late.
	handler := watchtools.NewWatchErrorHandler("changes of dynamic features at once", namespace)
	if err = errors.Join(err, informer.SetWatchErrorHandlerWithContext(handler)); err != nil {
		// Only a stopped informer refuses handlers, and one that runs that of watches.
		klog.FromContext(ctx).Error(err, "Dynamic features are not followed")
	}
	go func() {
		defer close(w.done)
		informer.RunWithContext(ctx)
	}()
	return w
}

// stop ends the watch and waits for that.
func (w *watch) stop() {
	if w != nil {
		w.cancel()
		<-w.done
	}
}

// news receives a signal after changes.
func (w *watch) news() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.changed
}

// features are the dynamic ones as they are now.
func (w *watch) features() map[string]*v1alpha1.Feature {
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

// newer is true when a resource version is newer than another. What cannot be
// compared is not.
func newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0
}

// pause waits.
func (f *Follower) pause(ctx context.Context, d time.Duration) {
	timer := f.config.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

// spread makes a pause up to a quarter shorter.
func spread(pause time.Duration) time.Duration { return pause - backoff.Jitter(pause/4) }
