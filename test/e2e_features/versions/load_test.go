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

package versions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	// loadNamespace has the objects of load. Etcd has ConfigMaps there below loadKey.
	loadNamespace = "load"
	loadKey       = "/registry/configmaps/" + loadNamespace + "/"
	// counter is the annotation that writers count up.
	counter = "versions.example.com/counter"
	// requestTimeout bounds a request of a client. A server that was killed closes its
	// connections; one that hangs does not.
	requestTimeout = 20 * time.Second
	// requestRate bounds each client, in requests a second: two cores run servers, too.
	requestRate = 15
	// mostOfWriter is how many objects a writer has at a time.
	mostOfWriter = 12
)

// kind is a kind of objects that writers write.
type kind struct {
	resource schema.GroupVersionResource
	object   map[string]any
	// stays is the path of a value that no write of the load changes.
	stays []string
}

// kinds are objects that have nothing to do with versions, and some with the field of the
// gate that is on throughout.
var kinds = []kind{
	{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"stays": "here"},
	}, []string{"data", "stays"}},
	{schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, map[string]any{
		"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"stays": "aGVyZQ=="},
	}, []string{"data", "stays"}},
	{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet",
		"spec": map[string]any{
			"replicas": int64(0), "serviceName": "load", "selector": map[string]any{"matchLabels": map[string]any{"app": "load"}},
			"updateStrategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": int64(3)}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "load"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "example.invalid/c"}}},
			},
		},
	}, []string{"spec", "updateStrategy", "rollingUpdate", "maxUnavailable"}},
}

// instance is a new object of the kind.
func (k kind) instance(name string) *unstructured.Unstructured {
	object := (&unstructured.Unstructured{Object: k.object}).DeepCopy()
	object.SetName(name)
	object.SetAnnotations(map[string]string{counter: "1"})
	return object
}

// check returns what is wrong with an object besides its counter.
func (k kind) check(object *unstructured.Unstructured) error {
	want, _, _ := unstructured.NestedFieldNoCopy(k.object, k.stays...)
	is, _, _ := unstructured.NestedFieldNoCopy(object.Object, k.stays...)
	if is != want {
		return fmt.Errorf("%s %s has %s=%v, want %v", k.resource.Resource, object.GetName(), strings.Join(k.stays, "."), is, want)
	}
	return nil
}

// load is clients that write, read and watch through all servers while those end and others
// start. A write that a server acknowledged must not be lost, whatever becomes of the server.
// It is safe for concurrent use.
type load struct {
	clients []dynamic.Interface
	stop    func()
	done    sync.WaitGroup

	mu sync.Mutex
	// written has the acknowledged counters of objects, by name; deleted has those whose
	// deletion was acknowledged.
	written map[string]int
	deleted map[string]bool
	counts  map[string]int
	// wrong is what must not be, each once.
	wrong map[string]bool
}

// startLoad starts clients, each with objects of its own, until endLoad.
func (b *binaries) startLoad(t *testing.T) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{stop: cancel, written: map[string]int{}, deleted: map[string]bool{}, counts: map[string]int{}, wrong: map[string]bool{}}
	t.Cleanup(func() {
		cancel()
		l.done.Wait()
	})
	for _, server := range b.servers {
		config := rest.CopyConfig(b.ConfigOf(server))
		config.QPS, config.Burst, config.Timeout = requestRate, requestRate, requestTimeout
		l.clients = append(l.clients, dynamic.NewForConfigOrDie(config))
	}
	if _, err := b.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: loadNamespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, k := range kinds {
		l.done.Go(func() { l.write(ctx, k, random(i)) })
	}
	l.done.Go(func() { l.list(ctx, random(len(kinds))) })
	l.done.Go(func() { l.follow(ctx, random(len(kinds)+1)) })
	return l
}

// random is a source of choices for one client.
func random(seed int) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), 0)) }

func (l *load) count(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[what]++
}

// problem records what must not be.
func (l *load) problem(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong[fmt.Sprintf(format, args...)] = true
}

// any is a client of a random server, which may be down.
func (l *load) any(random *rand.Rand) dynamic.Interface {
	return l.clients[random.IntN(len(l.clients))]
}

// unanswered is what is counted of requests without a result.
const unanswered = "requests without an answer"

// passes is true for errors that a server that ends, or has just started, may cause: there
// was no answer, or the server wants the request later.
func passes(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	return apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// try repeats a request through random servers until one answers. The answer may be an error.
func (l *load) try(ctx context.Context, random *rand.Rand, what string, request func(dynamic.Interface) error) error {
	for ctx.Err() == nil {
		err := request(l.any(random))
		if err == nil || !passes(err) {
			l.count(what)
			return err
		}
		l.count(unanswered)
	}
	return ctx.Err()
}

// write creates objects of a kind, counts them up and deletes them.
func (l *load) write(ctx context.Context, k kind, random *rand.Rand) {
	var names []string
	for number := 0; ctx.Err() == nil; {
		var err error
		switch what := random.IntN(10); {
		case len(names) < 3 || what == 0 && len(names) < mostOfWriter:
			number++
			name := fmt.Sprintf("%s-%04d", k.resource.Resource, number)
			names = append(names, name)
			err = l.create(ctx, random, k, name)
		case what == 1:
			at := random.IntN(len(names))
			err = l.remove(ctx, random, k, names[at])
			names = slices.Delete(names, at, at+1)
		default:
			err = l.increment(ctx, random, k, names[random.IntN(len(names))])
		}
		if err != nil && ctx.Err() == nil {
			l.problem("%v", err)
			return
		}
	}
}

func (l *load) create(ctx context.Context, random *rand.Rand, k kind, name string) error {
	err := l.try(ctx, random, "creations", func(client dynamic.Interface) error {
		_, err := client.Resource(k.resource).Namespace(loadNamespace).Create(ctx, k.instance(name), metav1.CreateOptions{})
		return err
	})
	// An attempt before, whose answer was lost, may have made it.
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s: %w", name, err)
	}
	l.acknowledge(name, 1)
	return nil
}

func (l *load) acknowledge(name string, value int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written[name] = value
}

// increment counts an object up by one, and reads it through any server. An attempt whose
// answer was lost has counted or has not, and cannot count later: each is for one version of
// the object.
func (l *load) increment(ctx context.Context, random *rand.Rand, k kind, name string) error {
	l.mu.Lock()
	was := l.written[name]
	l.mu.Unlock()
	for ctx.Err() == nil {
		object, is, err := l.get(ctx, random, k, name)
		switch {
		case err != nil:
			return err
		case is == was+1:
			l.acknowledge(name, is)
			return nil
		case is != was:
			return fmt.Errorf("%s counts %d, and %d was acknowledged: a write is lost", name, is, was)
		}
		annotations := object.GetAnnotations()
		annotations[counter] = strconv.Itoa(was + 1)
		object.SetAnnotations(annotations)
		_, err = l.any(random).Resource(k.resource).Namespace(loadNamespace).Update(ctx, object, metav1.UpdateOptions{})
		switch {
		case err == nil:
			l.count("updates")
			l.acknowledge(name, was+1)
			if _, is, err = l.get(ctx, random, k, name); err == nil && is != was+1 {
				err = fmt.Errorf("%s counts %d right after %d was acknowledged", name, is, was+1)
			}
			return err
		case apierrors.IsConflict(err):
			l.count("updates that an attempt before had made")
		case passes(err):
			l.count(unanswered)
		default:
			return fmt.Errorf("updating %s: %w", name, err)
		}
	}
	return ctx.Err()
}

// get reads an object and its counter through any server.
func (l *load) get(ctx context.Context, random *rand.Rand, k kind, name string) (object *unstructured.Unstructured, value int, err error) {
	err = l.try(ctx, random, "reads", func(client dynamic.Interface) error {
		var err error
		object, err = client.Resource(k.resource).Namespace(loadNamespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	if err == nil {
		value, err = countOf(object)
	}
	if err == nil {
		err = k.check(object)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", name, err)
	}
	return object, value, nil
}

func countOf(object *unstructured.Unstructured) (int, error) {
	return strconv.Atoi(object.GetAnnotations()[counter])
}

func (l *load) remove(ctx context.Context, random *rand.Rand, k kind, name string) error {
	l.mu.Lock()
	delete(l.written, name)
	l.mu.Unlock()
	err := l.try(ctx, random, "deletions", func(client dynamic.Interface) error {
		return client.Resource(k.resource).Namespace(loadNamespace).Delete(ctx, name, metav1.DeleteOptions{})
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s: %w", name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleted[name] = true
	return nil
}

// snapshot has what was acknowledged until now.
func (l *load) snapshot() (written map[string]int, deleted map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.written), maps.Clone(l.deleted)
}

// list reads whole collections.
func (l *load) list(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		l.compare(ctx, random, kinds[random.IntN(len(kinds))])
	}
}

// compare lists one collection through any server: everything that was acknowledged before
// has to be there, and nothing that was deleted.
func (l *load) compare(ctx context.Context, random *rand.Rand, k kind) {
	before, deleted := l.snapshot()
	var list *unstructured.UnstructuredList
	err := l.try(ctx, random, "lists", func(client dynamic.Interface) error {
		var err error
		list, err = client.Resource(k.resource).Namespace(loadNamespace).List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		if ctx.Err() == nil {
			l.problem("listing %s: %v", k.resource.Resource, err)
		}
		return
	}
	after, _ := l.snapshot()
	found := map[string]int{}
	for i := range list.Items {
		object := &list.Items[i]
		if !strings.HasPrefix(object.GetName(), k.resource.Resource+"-") {
			continue
		}
		value, err := countOf(object)
		if err = errors.Join(err, k.check(object)); err != nil {
			l.problem("listed: %v", err)
		}
		found[object.GetName()] = value
		if deleted[object.GetName()] {
			l.problem("%s was deleted and is listed", object.GetName())
		}
	}
	for name, value := range before {
		// One that is not in after was being deleted meanwhile.
		if _, there := after[name]; strings.HasPrefix(name, k.resource.Resource+"-") && there && found[name] < value {
			l.problem("%s is listed with %d, and %d was acknowledged before", name, found[name], value)
		}
	}
}

// follow watches ConfigMaps, and continues at another server where one ended: no object
// counts down.
func (l *load) follow(ctx context.Context, random *rand.Rand) {
	seen, version := map[string]int{}, ""
	for ctx.Err() == nil {
		configMaps := l.any(random).Resource(kinds[0].resource).Namespace(loadNamespace)
		if version == "" {
			list, err := configMaps.List(ctx, metav1.ListOptions{})
			if err != nil {
				l.count(unanswered)
				continue
			}
			version = list.GetResourceVersion()
		}
		watching, err := configMaps.Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		if err != nil {
			l.count(unanswered)
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				version = ""
			}
			continue
		}
		l.count("watches")
		version = l.events(watching, seen, version)
	}
}

// events takes the events of a watch until it ends, and returns the version after which the
// next one begins.
func (l *load) events(watching watch.Interface, seen map[string]int, version string) string {
	defer watching.Stop()
	for event := range watching.ResultChan() {
		if event.Type == watch.Error {
			if err := apierrors.FromObject(event.Object); apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				return ""
			}
			return version
		}
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		version = object.GetResourceVersion()
		if event.Type == watch.Bookmark || object.GetAnnotations()[counter] == "" {
			continue
		}
		value, err := countOf(object)
		if was := seen[object.GetName()]; err != nil || value < was {
			l.problem("%s was watched with %d and then with %d (%v)", object.GetName(), was, value, err)
		}
		seen[object.GetName()] = value
		l.count("events")
	}
	return version
}

// endLoad ends the clients, and compares what was acknowledged with what servers and etcd
// have.
func (b *binaries) endLoad(t *testing.T, l *load) {
	t.Helper()
	l.stop()
	l.done.Wait()
	for _, k := range kinds {
		l.compare(t.Context(), random(0), k)
	}
	written, deleted := l.snapshot()
	stored := b.stored(t, loadKey)
	for name := range written {
		if _, ok := stored[loadKey+name]; !ok && strings.HasPrefix(name, kinds[0].resource.Resource+"-") {
			t.Errorf("%s was acknowledged and is not in etcd", name)
		}
	}
	for name := range deleted {
		if _, ok := stored[loadKey+name]; ok {
			t.Errorf("%s was deleted and is in etcd", name)
		}
	}
	for _, problem := range slices.Sorted(maps.Keys(l.wrong)) {
		t.Error(problem)
	}
	// Otherwise nothing was shown: there was load, and servers were away meanwhile.
	for _, what := range []string{"creations", "updates", "deletions", "reads", "lists", "watches", "events", unanswered} {
		if l.counts[what] == 0 {
			t.Errorf("there were no %s: %v", what, l.counts)
		}
	}
	fmt.Fprintf(t.Output(), "load: %d objects are left, %d were deleted; %v\n", len(written), len(deleted), l.counts)
}
