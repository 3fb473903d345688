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

package task

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// request is one that a task made.
type request struct {
	verb     string
	resource schema.GroupResource
	// name is also that of a list or a watch of one object.
	name string
	// namespace is that of the request, "" for all.
	namespace string
}

// wire lies between a task and the fake server. It records requests and may hold
// or refuse them; unlike the fake's reactors it is called concurrently.
type wire struct {
	*server
	before func(ctx context.Context, r request) error
	// size is the number of objects in a page, 0 for the requested limit.
	size int
	// expired decides which continue tokens are answered with an error.
	expired func(token string) error

	mu   sync.Mutex
	seen []request
}

func (w *wire) clients() Clients { return Clients{Dynamic: w, Mapper: mapperOf(widgetKind)} }

func (w *wire) Resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	all := w.server.Resource(resource)
	return &wiredAll{wired{all, w, resource.GroupResource(), ""}, all}
}

// IsWatchListSemanticsUnSupported: the fake behind it does not support them.
func (w *wire) IsWatchListSemanticsUnSupported() bool { return true }

func (w *wired) pass(ctx context.Context, verb, name string) error {
	return w.wire.pass(ctx, request{verb, w.resource, name, w.namespace})
}

func (w *wire) pass(ctx context.Context, r request) error {
	w.mu.Lock()
	w.seen = append(w.seen, r)
	w.mu.Unlock()
	if w.before != nil {
		if err := w.before(ctx, r); err != nil {
			return err
		}
	}
	// The fake ignores contexts.
	return ctx.Err()
}

// requests returns those seen so far, of some verbs only if any are given.
func (w *wire) requests(verbs ...string) []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.seen), func(r request) bool { return len(verbs) > 0 && !slices.Contains(verbs, r.verb) })
}

type wiredAll struct {
	wired
	all dynamic.NamespaceableResourceInterface
}

func (w *wiredAll) Namespace(namespace string) dynamic.ResourceInterface {
	return &wired{w.all.Namespace(namespace), w.wire, w.resource, namespace}
}

type wired struct {
	dynamic.ResourceInterface
	wire      *wire
	resource  schema.GroupResource
	namespace string
}

func (w *wired) Create(ctx context.Context, object *unstructured.Unstructured, options metav1.CreateOptions, sub ...string) (*unstructured.Unstructured, error) {
	if err := w.pass(ctx, "create", object.GetName()); err != nil {
		return nil, err
	}
	return w.ResourceInterface.Create(ctx, object, options, sub...)
}

func (w *wired) Delete(ctx context.Context, name string, options metav1.DeleteOptions, sub ...string) error {
	if err := w.pass(ctx, "delete", name); err != nil {
		return err
	}
	return w.ResourceInterface.Delete(ctx, name, options, sub...)
}

func (w *wired) Get(ctx context.Context, name string, options metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	if err := w.pass(ctx, "get", name); err != nil {
		return nil, err
	}
	return w.ResourceInterface.Get(ctx, name, options, sub...)
}

// only returns the name of the one requested object, "" if it is not one.
func only(options metav1.ListOptions) string {
	return strings.TrimPrefix(options.FieldSelector, metav1.ObjectNameField+"=")
}

func (w *wired) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if err := w.pass(ctx, "list", only(options)); err != nil {
		return nil, err
	}
	if w.wire.expired != nil {
		if err := w.wire.expired(options.Continue); err != nil {
			return nil, err
		}
	}
	list, err := w.ResourceInterface.List(ctx, options)
	if err != nil {
		return nil, err
	}
	return page(list, options, w.wire.size)
}

// page makes a page of a list, in the order of names, and obeys field selectors,
// as a real server does; the fake does neither.
func page(list *unstructured.UnstructuredList, options metav1.ListOptions, size int) (*unstructured.UnstructuredList, error) {
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetNamespace(), b.GetNamespace()))
	})
	only, err := fields.ParseSelector(options.FieldSelector)
	if err != nil {
		return nil, err
	}
	after, of, some := strings.Cut(strings.TrimPrefix(options.Continue, "after "), " of ")
	list.Items = slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool {
		passed := o.GetName() < after || o.GetName() == after && (!some || o.GetNamespace() <= of)
		return options.Continue != "" && passed || !only.Matches(fields.Set{metav1.ObjectNameField: o.GetName()})
	})
	if size == 0 {
		size = int(options.Limit)
	}
	if rest := int64(len(list.Items) - size); size > 0 && rest > 0 {
		token := "after " + list.Items[size-1].GetName()
		if list.Items[size].GetName() == list.Items[size-1].GetName() {
			token += " of " + list.Items[size-1].GetNamespace()
		}
		list.Items = list.Items[:size]
		list.SetContinue(token)
		list.SetRemainingItemCount(&rest)
	}
	return list, nil
}

func (w *wired) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if err := w.pass(ctx, "watch", only(options)); err != nil {
		return nil, err
	}
	return w.ResourceInterface.Watch(ctx, options)
}

func (w *wired) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error) {
	if err := w.pass(ctx, "patch", name); err != nil {
		return nil, err
	}
	return w.ResourceInterface.Patch(ctx, name, kind, data, options, sub...)
}

func (w *wired) Apply(ctx context.Context, name string, object *unstructured.Unstructured, options metav1.ApplyOptions, sub ...string) (*unstructured.Unstructured, error) {
	verb := "patch"
	if len(options.DryRun) > 0 {
		verb = "dry-run patch"
	}
	if err := w.pass(ctx, verb, name); err != nil {
		return nil, err
	}
	return w.ResourceInterface.Apply(ctx, name, object, options, sub...)
}

// permitted checks that a task's rules have every request that it made.
func (w *wire) permitted(t *testing.T, of Task) {
	t.Helper()
	for _, r := range w.requests() {
		verb := strings.TrimPrefix(r.verb, "dry-run ")
		if !slices.ContainsFunc(append(slices.Clone(of.Rules), of.NamespacedRules[r.namespace]...), func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.APIGroups, r.resource.Group) && slices.Contains(rule.Resources, r.resource.Resource) && slices.Contains(rule.Verbs, verb) &&
				(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.name))
		}) {
			t.Errorf("%s: its rules %v and %v do not permit %s %s %q in namespace %q", of.Name, of.Rules, of.NamespacedRules, verb, r.resource, r.name, r.namespace)
		}
	}
}

// mapper knows kinds; those that are not served are unknown to it.
type mapper struct {
	*meta.DefaultRESTMapper
	mu *sync.Mutex
}

func (mapper) Reset() {}

func (m mapper) ResourcesFor(resource schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.DefaultRESTMapper.ResourcesFor(resource)
}

// add makes a kind known while tasks run.
func (m mapper) add(kind schema.GroupVersionKind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Add(kind, meta.RESTScopeRoot)
}

func mapperOf(kinds ...schema.GroupVersionKind) mapper {
	var versions []schema.GroupVersion
	for _, kind := range kinds {
		versions = append(versions, kind.GroupVersion())
	}
	m := meta.NewDefaultRESTMapper(versions)
	for _, kind := range kinds {
		m.Add(kind, meta.RESTScopeNamespace)
	}
	return mapper{m, &sync.Mutex{}}
}

var widgetKind = widgets.GroupVersion().WithKind("Widget")

// storage is what is stored of one resource, by key.
type storage struct {
	mu      sync.Mutex
	objects map[string]StoredObject
	// refuse, if not nil, returns the answer of Delete.
	refuse func(StoredObject) error
	// holds, if not nil, returns whether an object holds a field.
	holds  func(StoredObject, RemovedField) bool
	listed int
}

func store(objects ...StoredObject) *storage {
	s := &storage{objects: map[string]StoredObject{}}
	for _, o := range objects {
		o.Key = o.Namespace + "/" + o.Name
		s.objects[o.Key] = o
	}
	return s
}

func (s *storage) List(_ context.Context, _ schema.GroupResource, limit int64, from string) ([]StoredObject, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed++
	var page []StoredObject
	for _, key := range s.keysLocked() {
		if key <= from {
			continue
		}
		if int64(len(page)) == limit {
			return page, page[limit-1].Key, nil
		}
		page = append(page, s.objects[key])
	}
	return page, "", nil
}

func (s *storage) ListHolding(ctx context.Context, field RemovedField, limit int64, from string) ([]StoredObject, string, error) {
	page, next, err := s.List(ctx, field.Resource.GroupResource(), limit, from)
	return slices.DeleteFunc(page, func(o StoredObject) bool { return s.holds == nil || !s.holds(o, field) }), next, err
}

func (s *storage) Delete(_ context.Context, _ schema.GroupResource, object StoredObject) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		if err := s.refuse(object); err != nil {
			return err
		}
	}
	delete(s.objects, object.Key)
	return nil
}

func (s *storage) keysLocked() []string {
	var keys []string
	for key := range s.objects {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (s *storage) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keysLocked()
}

// blockedBy runs a task that has to be blocked.
func blockedBy(t *testing.T, of Task, clients Clients, attempt Attempt) *BlockedError {
	t.Helper()
	err := of.Run(t.Context(), clients, attempt)
	var blocked *BlockedError
	if !errors.As(err, &blocked) {
		t.Fatalf("%s: got %v, want it blocked", of.Name, err)
	}
	return blocked
}

// stillBlocked lets a blocked task wait for an hour in which nothing changes, and returns
// the channel that gets the end of its wait.
func stillBlocked(t *testing.T, blocked *BlockedError) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- blocked.Until(t.Context()) }()
	select {
	case err := <-done:
		t.Fatalf("it ended while nothing had changed: %v", err)
	case <-time.After(time.Hour):
	}
	return done
}
