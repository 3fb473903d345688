//go:build linux

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

package flip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"k8s.io/kubernetes-features/test/benchmark/fleet"
	"k8s.io/kubernetes-features/test/benchmark/measure"
)

const (
	// namespace has the ConfigMap with the value.
	namespace = "flip"
	valueName = "values"
	// openers is how many plain watches are opened at once.
	openers = 32
)

var (
	configMaps = schema.GroupResource{Resource: "configmaps"}
	selection  = fields.OneTermEqualSelector(metav1.ObjectNameField, valueName).String()
)

// kindOutcome is what one kind of watchers costs, and how fast changes get there.
type kindOutcome struct {
	// opened is what opening all watches took, memory what they add at rest.
	opened  measure.Part
	memory  measure.Live
	changes []changed
}

// changed is one change.
type changed struct {
	// answered is the time at which the writer had its answer, times when watchers had the value,
	// both from the request on.
	answered time.Duration
	times    measure.Distribution
	load     measure.Part
}

// watchers are watches that are open. Changes show on the board.
type watchers struct {
	*board
	close func()
}

// prepareConfigMap makes the ConfigMap, which everybody may read.
func (w *world) prepareConfigMap(ctx context.Context) error {
	if err := fleet.ShareConfigMaps(ctx, w.Kube, namespace, "get", "list", "watch"); err != nil {
		return err
	}
	_, err := w.Kube.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: valueName}, Data: map[string]string{feature: "0"}}, metav1.CreateOptions{})
	return err
}

// configMap measures one kind of watchers of the ConfigMap and closes them.
func (w *world) configMap(ctx context.Context, name string, open func(context.Context) (watchers, error)) (found kindOutcome, err error) {
	before, err := w.open(ctx, configMaps)
	if err != nil {
		return found, err
	}
	at, err := w.meter.Memory(ctx)
	if err != nil {
		return found, err
	}
	w.bed.Say("%d processes: opening %s", w.n, name)
	var all watchers
	found.opened, err = w.meter.During(ctx, configMaps, func(ctx context.Context) error {
		var err error
		if all, err = open(ctx); err != nil {
			return err
		}
		return w.untilOpen(ctx, configMaps, func(n float64) bool { return n >= before+float64(w.n) })
	})
	if all.close != nil {
		defer all.close()
	}
	if err != nil {
		return found, err
	}
	after, err := w.meter.Memory(ctx)
	if err != nil {
		return found, err
	}
	found.memory = after.Less(at)
	for i := range w.options.Changes {
		one, err := w.changeConfigMap(ctx, all.board, fmt.Sprint(i+1))
		if err != nil {
			return found, err
		}
		found.changes = append(found.changes, one)
		w.bed.Say("%s: a change was answered after %s and was everywhere after %s", name, one.answered.Round(time.Millisecond), one.times.Max().Round(time.Millisecond))
	}
	all.close()
	return found, w.untilOpen(ctx, configMaps, func(n float64) bool { return n <= before })
}

// changeConfigMap changes the value and waits until all watchers have it.
func (w *world) changeConfigMap(ctx context.Context, b *board, value string) (one changed, err error) {
	one.load, err = w.meter.During(ctx, configMaps, func(ctx context.Context) error {
		now := &change{newArrivals(w.n), value}
		b.now.Store(now)
		begun := time.Now()
		_, err := w.Kube.CoreV1().ConfigMaps(namespace).Patch(ctx, valueName, types.MergePatchType, fmt.Appendf(nil, `{"data":{%q:%q}}`, feature, value), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		one.answered = time.Since(begun)
		if one.times, err = now.wait(ctx, begun); err != nil {
			return err
		}
		return w.window(ctx, begun)
	})
	return one, err
}

// wait waits until all watchers have the change, and returns when they had it, from
// a moment on.
func (c *change) wait(ctx context.Context, begun time.Time) (measure.Distribution, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-c.all:
		return c.since(begun).Take(), nil
	case <-ctx.Done():
		return measure.Distribution{}, fmt.Errorf("%d of %d watchers do not get the value %s: %w", c.left.Load(), len(c.at), c.value, ctx.Err())
	}
}

// openPeer runs an informer of the ConfigMap in each process, as people write it who
// keep a value there.
func (w *world) openPeer(ctx context.Context) (watchers, error) {
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, klog.Logger{}))
	var running sync.WaitGroup
	all := watchers{&board{}, func() { cancel(); running.Wait() }}
	var synced []cache.InformerSynced
	for number, p := range w.fleet.Processes() {
		informer := cache.NewSharedIndexInformer(listWatch(p), &corev1.ConfigMap{}, 0, nil)
		show := func(object any) {
			if c, ok := object.(*corev1.ConfigMap); ok {
				all.show(number, c.Data[feature])
			}
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: show, UpdateFunc: func(_, object any) { show(object) }}); err != nil {
			return all, err
		}
		running.Go(func() { informer.RunWithContext(p.As(ctx)) })
		synced = append(synced, informer.HasSynced)
	}
	waiting, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if !cache.WaitForCacheSync(waiting.Done(), synced...) {
		return all, fmt.Errorf("informers do not sync within %s", patience)
	}
	return all, nil
}

// listWatch is that of a process.
func listWatch(p *fleet.Process) cache.ListerWatcher {
	client := p.Plain().CoreV1().ConfigMaps(namespace)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selection
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selection
			return client.Watch(ctx, options)
		},
	}, p.Plain())
}

// openPlain opens a watch in each process and reads its bytes without decoding
// them: no client can learn of a change sooner.
func (w *world) openPlain(ctx context.Context) (watchers, error) {
	ctx, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	all := watchers{&board{}, func() { cancel(); reading.Wait() }}
	now, err := present(ctx, w.Kube)
	if err != nil {
		return all, err
	}
	group, opening := errgroup.WithContext(ctx)
	group.SetLimit(openers)
	for number, p := range w.fleet.Processes() {
		group.Go(func() error {
			if opening.Err() != nil {
				return opening.Err()
			}
			stream, err := plainWatch(ctx, p, now)
			if err != nil {
				return err
			}
			reading.Go(func() {
				defer stream.Close()
				// Without all of them the count of open watches is waited for in vain; this says why.
				if err := events(stream, func() { all.show(number, anyValue) }); ctx.Err() == nil {
					w.bed.Say("a plain watch ended: %v", err)
				}
			})
			return nil
		})
	}
	return all, group.Wait()
}

// busyPause is the time that a server is left alone that had no room for a watch.
const busyPause = time.Second

// present is the version that the collection has now. That of the ConfigMap itself is of
// when it was written: others write theirs all the while, and the server has forgotten
// what came in between, so that a watch from there would end at once.
func present(ctx context.Context, kube kubernetes.Interface) (version string, err error) {
	list, err := kube.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{FieldSelector: selection})
	if err != nil {
		return "", err
	}
	return list.ResourceVersion, nil
}

// plainWatch opens a watch of the ConfigMap from a version on. A server that is busy is
// asked again.
func plainWatch(ctx context.Context, p *fleet.Process, version string) (stream io.ReadCloser, err error) {
	// The stream ends with the context that it was opened with, which is not that of the
	// wait.
	asked := wait.PollUntilContextTimeout(ctx, busyPause, patience, true, func(context.Context) (bool, error) {
		stream, err = p.Kube().CoreV1().RESTClient().Get().Namespace(namespace).Resource(configMaps.Resource).
			VersionedParams(&metav1.ListOptions{FieldSelector: selection, ResourceVersion: version, Watch: true}, scheme.ParameterCodec).
			Stream(p.As(ctx))
		if apierrors.IsTooManyRequests(err) {
			return false, nil
		}
		return true, err
	})
	if wait.Interrupted(asked) {
		asked = errors.Join(asked, err)
	}
	return stream, asked
}

// errEnded is the reason why a watch ends that the server could not go on with: it says so in an
// event.
var errEnded = errors.New("the server ended it with an event")

// events calls show for each event of a stream, and returns why it ended.
func events(stream io.Reader, show func()) error {
	// An event is far smaller, so that one read has all of it or its end is near.
	buffer := make([]byte, 4096)
	for {
		n, err := io.ReadAtLeast(stream, buffer, 1)
		// The type is what an event begins with, as JSON and as protobuf.
		if bytes.Contains(buffer[:min(n, 32)], []byte(watch.Error)) {
			return fmt.Errorf("%w: %q", errEnded, buffer[:n])
		}
		if n > 0 {
			show()
		}
		if err != nil {
			return err
		}
	}
}
