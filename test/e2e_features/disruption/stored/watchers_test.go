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

package stored

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// mostEvents bounds how many events a client takes from one watch.
const mostEvents = 400

// watcher watches all objects in many watches, one after the other. Each begins where the
// one before ended, or earlier: then the same events have to come again.
type watcher struct {
	server server
	random *rand.Rand
	stop   context.CancelFunc
	done   sync.WaitGroup
	// marked is the name of the object after which it ends.
	marked string

	// The rest is for who waited for its end.

	// events are all that came, in order, each once.
	events  []seen
	began   int64
	watches int
	// state is the revision of each object.
	state map[string]int64
	err   error
}

// seen is an event.
type seen struct {
	name     string
	kind     watch.EventType
	revision int64
}

// newWatcher reads all objects, and watches them from then on.
func newWatcher(t *testing.T, w *world, s server, number uint64, marked string) *watcher {
	t.Helper()
	kube := kubernetes.NewForConfigOrDie(inProtobuf(s.config))
	list, err := kube.AppsV1().StatefulSets(objectNS).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("a client lists StatefulSets at %s: %v", s.name, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	c := &watcher{server: s, random: w.random(number), stop: stop, marked: marked, state: map[string]int64{}}
	for i := range list.Items {
		revision, err := revisionOf(&list.Items[i])
		if err != nil {
			t.Fatal(err)
		}
		c.state[list.Items[i].Name] = revision
	}
	if c.began, err = revisionOf(list); err != nil {
		t.Fatal(err)
	}
	c.done.Go(func() {
		for ended := false; !ended && c.err == nil && ctx.Err() == nil; {
			ended, c.err = c.watch(ctx, kube)
		}
	})
	t.Cleanup(func() {
		stop()
		c.done.Wait()
	})
	return c
}

// inProtobuf is a configuration for many objects.
func inProtobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	return config
}

// revisionOf is the resourceVersion of an object or a list.
func revisionOf(of interface{ GetResourceVersion() string }) (int64, error) {
	revision, err := strconv.ParseInt(of.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("a resourceVersion is not that of etcd: %w", err)
	}
	return revision, nil
}

// watch is one watch. It returns true once the object came that ends all.
func (c *watcher) watch(ctx context.Context, kube kubernetes.Interface) (ended bool, err error) {
	// Half of all watches begin with events that came before.
	place := len(c.events)
	if place > 0 && c.random.IntN(2) == 0 {
		place -= c.random.IntN(min(place, mostEvents) + 1)
	}
	from := c.began
	if place > 0 {
		from = c.events[place-1].revision
	}
	watching, err := kube.AppsV1().StatefulSets(objectNS).Watch(ctx, metav1.ListOptions{ResourceVersion: strconv.FormatInt(from, 10)})
	if err != nil {
		return false, c.broken(ctx, from, err)
	}
	defer watching.Stop()
	c.watches++
	for range len(c.events) - place + 1 + c.random.IntN(mostEvents) {
		event, open := <-watching.ResultChan()
		if !open {
			// The server ends watches from time to time.
			return false, nil
		}
		if event.Type == watch.Error {
			return false, c.broken(ctx, from, apierrors.FromObject(event.Object))
		}
		if ended, err := c.take(event, place); ended || err != nil {
			return ended, err
		}
		place++
	}
	return false, nil
}

// broken describes what no watch may end with.
func (c *watcher) broken(ctx context.Context, from int64, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("a watch from revision %d at %s ended with: %w", from, c.server.name, err)
}

// take takes the event at a place: one that came before has to be the same again.
func (c *watcher) take(event watch.Event, place int) (ended bool, err error) {
	set, ok := event.Object.(*appsv1.StatefulSet)
	if !ok {
		return false, fmt.Errorf("a watch at %s got a %T", c.server.name, event.Object)
	}
	revision, err := revisionOf(set)
	if err != nil {
		return false, err
	}
	got := seen{set.Name, event.Type, revision}
	if place < len(c.events) {
		if want := c.events[place]; got != want {
			return false, fmt.Errorf("a watch at %s that began again got %v, the one before got %v", c.server.name, got, want)
		}
		return false, nil
	}
	if place > 0 && revision <= c.events[place-1].revision {
		return false, fmt.Errorf("a watch at %s got %v after %v", c.server.name, got, c.events[place-1])
	}
	c.events = append(c.events, got)
	if event.Type == watch.Deleted {
		delete(c.state, set.Name)
	} else {
		c.state[set.Name] = revision
	}
	return set.Name == c.marked, nil
}

// end waits for the last event and returns what the client knows.
func (c *watcher) end(t *testing.T) map[string]int64 {
	t.Helper()
	ended := make(chan struct{})
	go func() { c.done.Wait(); close(ended) }()
	ctx, cancel := context.WithTimeout(t.Context(), framework.Patience)
	defer cancel()
	select {
	case <-ended:
	case <-ctx.Done():
		c.stop()
		<-ended
		c.err = errors.Join(c.err, fmt.Errorf("a client of %s did not get the last of all events; it got %d", c.server.name, len(c.events)))
	}
	if c.err != nil {
		t.Error(c.err)
	}
	return c.state
}

// informed is an informer and how often it read everything.
type informed struct {
	server server
	lists  atomic.Int64
	// synced is how often that was when it had everything for the first time.
	synced int64
	store  cache.Store
}

// newInformed starts an informer.
func newInformed(t *testing.T, s server) *informed {
	t.Helper()
	i := &informed{server: s}
	config := inProtobuf(s.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, &i.lists} })
	factory := informers.NewSharedInformerFactoryWithOptions(kubernetes.NewForConfigOrDie(config), 0, informers.WithNamespace(objectNS))
	informer := factory.Apps().V1().StatefulSets().Informer()
	i.store = informer.GetStore()
	ctx, stop := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	t.Cleanup(func() {
		stop()
		factory.Shutdown()
	})
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatalf("an informer of %s does not sync", s.name)
	}
	i.synced = i.lists.Load()
	return i
}

// end waits for the last object and returns what the informer knows.
func (i *informed) end(t *testing.T, marked string) map[string]int64 {
	t.Helper()
	framework.Eventually(t, "the last object in an informer of "+i.server.name, func() error {
		if _, ok, err := i.store.GetByKey(objectNS + "/" + marked); err != nil || !ok {
			return errors.Join(err, errors.New("it does not have the object"))
		}
		return nil
	})
	if lists := i.lists.Load(); lists != i.synced {
		t.Errorf("an informer of %s read everything again, %d times", i.server.name, lists-i.synced)
	}
	state := map[string]int64{}
	for _, known := range i.store.List() {
		set := known.(*appsv1.StatefulSet)
		revision, err := revisionOf(set)
		if err != nil {
			t.Fatal(err)
		}
		state[set.Name] = revision
	}
	return state
}

// counter counts the requests that ask for everything.
type counter struct {
	next  http.RoundTripper
	lists *atomic.Int64
}

func (c counter) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	if watches, _ := strconv.ParseBool(query.Get("watch")); !watches || query.Get("sendInitialEvents") == "true" {
		c.lists.Add(1)
	}
	return c.next.RoundTrip(request)
}

// watchers is how many clients watch at each server, beside an informer.
const watchers = 2

// watch lets clients watch at servers until the end of the round.
func (r *round) watch(t *testing.T, servers ...server) {
	t.Helper()
	r.marked = fmt.Sprintf("%s%d", markers, r.mark)
	for i, s := range servers {
		for j := range watchers {
			r.watchers = append(r.watchers, newWatcher(t, r.w, s, uint64(watchers*i+j), r.marked))
		}
		r.informed = append(r.informed, newInformed(t, s))
	}
}

// endWatches checks that all clients know the last state of every object.
func (r *round) endWatches(t *testing.T) {
	t.Helper()
	r.w.create(t, bystander(r.marked))
	want := map[string]int64{}
	for key, revision := range framework.KeysBelow(t, r.w.etcd, framework.StatefulSetsKey) {
		want[strings.TrimPrefix(key, framework.StatefulSetsKey)] = revision
	}
	check := func(s server, who string, got map[string]int64) {
		t.Helper()
		if !maps.Equal(want, got) {
			t.Errorf("%s of %s does not know the last state of all objects (-want +got):\n%s", who, s.name, first(cmp.Diff(want, got)))
		}
	}
	for _, c := range r.watchers {
		check(c.server, "a client", c.end(t))
		r.row.watches += c.watches
		r.row.events += len(c.events)
	}
	for _, i := range r.informed {
		check(i.server, "an informer", i.end(t, r.marked))
	}
}

// first is the beginning of a long text.
func first(text string) string {
	const most = 2000
	return text[:min(most, len(text))]
}
