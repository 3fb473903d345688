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
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// WaitForNone waits until no object of a resource uses something, and changes nothing.
// It is for what cannot be removed from live objects, or whose removal would destroy
// something. Using names what is used in the field's words, for example "volume source
// clusterTrustBundle". An object matches if it has any of the fields, written as for
// ClearField; <field>=<value> requires a value, too.
func WaitForNone(resource schema.GroupVersionResource, using string, fields ...string) Task {
	return waitForNoneWith(resource, using, fields, parseMatcher)
}

// WaitForNoneWhere waits like WaitForNone, for objects of which one of the
// fields has a value that wanted chooses. Wanted has to be quick and without
// side effects.
func WaitForNoneWhere(resource schema.GroupVersionResource, using string, wanted func(value any) bool, fields ...string) Task {
	return waitForNoneWith(resource, using, fields, func(field string) (matcher, error) {
		path, err := ParsePath(field)
		return matcher{path: path, wanted: wanted}, err
	})
}

func waitForNoneWith(resource schema.GroupVersionResource, using string, fields []string, parse func(field string) (matcher, error)) Task {
	w := waitForNone{resource: resource, using: using, text: strings.Join(fields, ",")}
	var err error
	var looks []Field
	for _, field := range fields {
		var m matcher
		if m, err = parse(field); err != nil {
			break
		}
		w.matchers = append(w.matchers, m)
		looks = append(looks, Field{Resource: resource.GroupResource(), Path: m.path.String(), Value: m.value, Chosen: m.wanted != nil && m.value == ""})
	}
	switch {
	case err != nil:
	case len(fields) == 0:
		err = fmt.Errorf("WaitForNone for %s names no field", resource.GroupResource())
	case using == "":
		err = fmt.Errorf("WaitForNone for %s does not say what is used; people read it", resource.GroupResource())
	}
	return Task{
		Name:        "WaitForNone/" + resource.GroupResource().String() + "/" + strings.ReplaceAll(using, " ", "-"),
		Description: fmt.Sprintf("wait until no object of %s uses %s", resource.GroupResource(), using),
		Fields:      looks,
		Waits:       true,
		matches:     w.matches,
		paths:       w.paths(),
		collection:  resource.GroupResource(),
		Find: findIn(resource, w.paths(), func(ctx context.Context, clients Clients, served schema.GroupVersionResource) ([]v1alpha1.ResourceLeftovers, error) {
			return w.in(served).find(ctx, clients)
		}),
		Run: runIn(resource, w.paths(), func(ctx context.Context, clients Clients, attempt Attempt, served schema.GroupVersionResource) error {
			return w.in(served).run(ctx, clients, attempt)
		}),
		Rules:   append([]rbacv1.PolicyRule{rule(resource.GroupResource(), "list", "watch")}, definitionRules(resource.GroupResource())...),
		invalid: err,
		about:   resource.GroupResource(),
		version: resource.Version,
	}
}

type waitForNone struct {
	resource schema.GroupVersionResource
	using    string
	text     string
	matchers []matcher
}

// paths returns the fields that are read.
func (w waitForNone) paths() []Path {
	var paths []Path
	for _, m := range w.matchers {
		paths = append(paths, m.path)
	}
	return paths
}

// in returns the task in another version of the resource.
func (w waitForNone) in(resource schema.GroupVersionResource) waitForNone {
	w.resource = resource
	return w
}

func (w waitForNone) matches(object *unstructured.Unstructured) bool {
	for _, m := range w.matchers {
		if m.matches(object.Object) {
			return true
		}
	}
	return false
}

func (w waitForNone) find(ctx context.Context, clients Clients) ([]v1alpha1.ResourceLeftovers, error) {
	if clients.Storage == nil {
		if err := w.findable(ctx, clients); err != nil {
			return nil, err
		}
	}
	return findSearched(ctx, clients, w.resource, w.text, w.search(), w.matches)
}

// search is what is looked for in stored objects.
func (w waitForNone) search() FieldSearch {
	var search FieldSearch
	for _, m := range w.matchers {
		search.Fields = append(search.Fields, SearchedField{Path: m.path.String(), Wanted: m.wanted, NotNull: true})
	}
	return search
}

// findable returns whether the definition lets the fields be found.
func (w waitForNone) findable(ctx context.Context, clients Clients) error {
	for _, m := range w.matchers {
		if err := findable(ctx, clients, w.resource, m.path, m.wanted); err != nil {
			return err
		}
	}
	return nil
}

func (w waitForNone) run(ctx context.Context, clients Clients, attempt Attempt) error {
	if err := w.findable(ctx, clients); err != nil {
		return err
	}
	begun := time.Now()
	using, err := w.inUse(ctx, clients)
	if err != nil {
		return err
	}
	attempt.Report(Progress{Done: using.read - using.total, Total: using.read})
	if using.total == 0 {
		return nil
	}
	took := time.Since(begun)
	return &BlockedError{
		Message: w.message(using.total, using.first),
		Until: func(ctx context.Context) error {
			if err := w.untilOneIsGone(ctx, clients, using); err != nil {
				return err
			}
			return rest(ctx, took)
		},
	}
}

// usage are the objects that a task waits for.
type usage struct {
	matched
	// stored is true if they were found in storage. The API may not serve the version then.
	stored bool
}

// untilOneIsGone watches the first of the objects through the API.
func (w waitForNone) untilOneIsGone(ctx context.Context, clients Clients, using usage) error {
	if !using.stored {
		return untilOneIsGone(ctx, clients, w.resource, using.first, w.matches)
	}
	resource, err := shownIn(ctx, clients, w.resource, w.paths())
	var elsewhere *servedElsewhereError
	if errors.As(err, &elsewhere) {
		// The fields are seen in storage alone, but every version shows a deletion.
		resource = resource.GroupResource().WithVersion(elsewhere.versions[0])
		return untilOneIsGone(ctx, clients, resource, using.first, func(*unstructured.Unstructured) bool { return true })
	}
	if err != nil {
		return err
	}
	return untilOneIsGone(ctx, clients, resource, using.first, w.matches)
}

// inUse returns the objects that match.
func (w waitForNone) inUse(ctx context.Context, clients Clients) (using usage, err error) {
	if clients.Editor != nil {
		result, err := searchStored(ctx, clients, w.resource, w.search())
		if err == nil {
			return usage{matched: *result, stored: true}, nil
		}
		if !isThroughAPI(err) {
			return usage{}, err
		}
	}
	err = forEachPage(ctx, clients, w.resource, "", func(page *unstructured.UnstructuredList) error {
		using.read += int64(len(page.Items))
		for i := range page.Items {
			if found := &page.Items[i]; w.matches(found) {
				using.add(object{found.GetNamespace(), found.GetName(), string(found.GetUID())})
			}
		}
		return nil
	})
	return using, err
}

// message reads "waiting for 2 pods using volume source clusterTrustBundle: ns/a, ns/b".
func (w waitForNone) message(total int64, some []object) string {
	var names []string
	for _, o := range some {
		names = append(names, objectName(o.namespace, o.name))
	}
	more := ""
	if rest := total - int64(len(names)); rest > 0 {
		more = fmt.Sprintf(" and %d more", rest)
	}
	return fmt.Sprintf("waiting for %d %s using %s: %s%s", total, w.resource.GroupResource(), w.using, strings.Join(names, ", "), more)
}

const (
	// restShare is how many times longer than reading a collection the pause before the
	// next reading is. While thousands of objects are deleted, one after the other,
	// reading takes a tenth of the time at most.
	restShare = 10
	// minRest and maxRest bound such a pause: each attempt writes a status, and all work
	// has to continue within a minute (L2).
	minRest = 5 * time.Second
	maxRest = 30 * time.Second
)

// rest waits before a collection is read again whose reading took so long.
func rest(ctx context.Context, took time.Duration) error {
	select {
	case <-time.After(min(max(restShare*took, minRest), maxRest)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
