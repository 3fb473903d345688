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

package gates

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycletest"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

// having are the objects of a view that have what an entry says remains.
func having(r catalog.Remainder, view *lifecycletest.View) ([]lifecycletest.Object, error) {
	var found []lifecycletest.Object
	for _, object := range view.Objects {
		switch {
		case r.MediaType != "":
			if object.MediaType == r.MediaType {
				found = append(found, object)
			}
		case object.Resource == r.Resource:
			has, err := r.In(object.Object)
			if err != nil {
				return nil, err
			}
			if has {
				found = append(found, object)
			}
		}
	}
	return found, nil
}

// remain compares what an entry says that remains with what is stored: the
// fixture has it while the feature is on, and what is not removed has it when the
// feature is off. It returns how many objects still have it.
func (w *world) remain(t *testing.T, entry catalog.Entry, c *lifecycletest.Case, all []*lifecycletest.Case, before, after *lifecycletest.View) (count int64, problems []string) {
	t.Helper()
	problem := func(r catalog.Remainder, format string, args ...any) {
		what := strings.TrimSpace(r.Resource.String() + " " + r.Path)
		if r.Value != "" {
			what += "=" + r.Value
		}
		problems = append(problems, fmt.Sprintf("%s: %s remains, its entry says, and %s", entry.Name, what, fmt.Sprintf(format, args...)))
	}
	counted := map[string]bool{}
	for _, r := range entry.Retained {
		if r.With != "" {
			continue // The other gate's fixture has it.
		}
		view := c.Own(before)
		if r.Unstored {
			view = before
		}
		had, err := having(r, view)
		switch {
		case err != nil:
			problem(r, "it cannot be examined: %v", err)
		case r.Unstored && len(had) > 0:
			problem(r, "that the API does not store it, but %s has it; remove Unstored and say in Why who ends it, or add a task", had[0].ID())
		case !r.Unstored && len(had) == 0:
			problem(r, "no object of the fixture has it while the feature is on; add one to %s, or set Unstored or With in the Remainder", c.Fixture)
		}
		has, err := having(r, after)
		if err != nil {
			continue // It is a problem already.
		}
		now, still := after.ByID(), lifecycletest.NewView(has, nil, nil).ByID()
		for _, object := range had {
			is, exists := now[object.ID()]
			_, remains := still[object.ID()]
			switch {
			case !exists || is.GetUID() != object.GetUID():
				// It may have been waited for, or gone with its collection.
				if !w.lookedAfter(t, object, all) {
					problem(r, "%s, which had it, is gone, although no task is about that object", object.ID())
				}
			case !remains && !w.lookedAfter(t, object, all):
				problem(r, "%s does not have it any more; say in Why who removes it, or drop the Remainder", object.ID())
			case remains && !counted[object.ID()]:
				counted[object.ID()] = true
				count++
			}
		}
	}
	return count, problems
}

// lookedAfter is true for an object in which a task of any feature finds
// something.
func (w *world) lookedAfter(t *testing.T, object lifecycletest.Object, all []*lifecycletest.Case) bool {
	t.Helper()
	alone := lifecycletest.NewView([]lifecycletest.Object{object}, w.Mapper, convert).Clients()
	return slices.ContainsFunc(all, func(c *lifecycletest.Case) bool {
		return slices.ContainsFunc(c.Feature.OnDisable, func(one task.Task) bool {
			found, err := one.Find(t.Context(), alone)
			return err == nil && len(found) > 0
		})
	})
}

// authentication is the ConfigMap in which kube-apiservers tell extension servers
// about headers.
const authentication = "configmaps kube-system/extension-apiserver-authentication"

// whys holds what entries say in a Why about other objects than the fixture's.
var whys = map[gate]func(before, after *lifecycletest.View) []string{
	"RemoteRequestHeaderUID": func(before, after *lifecycletest.View) (problems []string) {
		const key = "requestheader-uid-headers"
		has := func(view *lifecycletest.View) bool {
			data, _ := view.ByID()[authentication].Object["data"].(map[string]any)
			return data[key] != nil
		}
		if !has(before) {
			problems = append(problems, authentication+" does not have "+key+" while the gate is on; does kube-apiserver have --requestheader-uid-headers?")
		}
		if has(after) {
			problems = append(problems, authentication+" still has "+key+" when the gate is off, and the entry says that kube-apiserver writes it without; declare a task")
		}
		return problems
	},
}

// rewritten writes the objects that remain in another encoding once more: they
// can be read while the gate is off, are stored as JSON then, and are the same.
func (w *world) rewritten(t *testing.T, entry catalog.Entry, c *lifecycletest.Case, after *lifecycletest.View) (problems []string) {
	t.Helper()
	for _, r := range entry.Retained {
		if r.MediaType == "" {
			continue
		}
		had, err := having(r, c.Own(after))
		if err != nil || len(had) == 0 {
			return []string{fmt.Sprintf("%s: nothing of %s is stored as %s when the gate is off, so it is not known whether it can be read (%v)", entry.Name, c.Fixture, r.MediaType, err)}
		}
		for _, was := range had {
			client, err := w.client(was.Unstructured)
			if err != nil {
				return append(problems, err.Error())
			}
			read, err := client.Get(t.Context(), was.GetName(), metav1.GetOptions{})
			if err != nil {
				problems = append(problems, fmt.Sprintf("%s: %s is stored as %s and cannot be read with the gate off: %v", entry.Name, was.ID(), r.MediaType, err))
				continue
			}
			if diff := lifecycletest.Changed(was.Unstructured, read, nil); diff != "" {
				problems = append(problems, fmt.Sprintf("%s: %s is stored as %s and is read as something else with the gate off (-stored +read):\n%s", entry.Name, was.ID(), r.MediaType, diff))
			}
			const annotation = `{"metadata":{"annotations":{"example.com/written":"again"}}}`
			if _, err := client.Patch(t.Context(), was.GetName(), types.MergePatchType, []byte(annotation), metav1.PatchOptions{}); err != nil {
				problems = append(problems, fmt.Sprintf("%s: writing %s with the gate off: %v", entry.Name, was.ID(), err))
				continue
			}
			is := w.stored(t).ByID()[was.ID()]
			if is.MediaType != runtime.ContentTypeJSON {
				problems = append(problems, fmt.Sprintf("%s: %s is stored as %q after a write with the gate off; its entry says JSON", entry.Name, was.ID(), is.MediaType))
			}
			if diff := lifecycletest.Changed(was.Unstructured, is.Unstructured, []task.Field{{Path: "metadata.annotations{example.com/written}"}}); diff != "" {
				problems = append(problems, fmt.Sprintf("%s: writing %s with the gate off changed more than the annotation:\n%s", entry.Name, was.ID(), diff))
			}
		}
	}
	return problems
}

// client is for the resource of an object, in its namespace.
func (w *world) client(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := w.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	return w.Dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
}

// stayed is what a view has of an entry's remainders, and what is wrong with it.
func (w *world) stayed(t *testing.T, entry catalog.Entry, c *lifecycletest.Case, all []*lifecycletest.Case, before, after *lifecycletest.View) (count int64, problems []string) {
	t.Helper()
	count, problems = w.remain(t, entry, c, all, before, after)
	if check := whys[entry.Name]; check != nil {
		problems = append(problems, check(before, after)...)
	}
	return count, append(problems, w.rewritten(t, entry, c, after)...)
}

func TestHaving(t *testing.T) {
	class := func(name string, tolerations ...any) lifecycletest.Object {
		return lifecycletest.Object{Resource: schema.GroupResource{Group: "node.k8s.io", Resource: "runtimeclasses"}, Unstructured: &unstructured.Unstructured{Object: map[string]any{
			"metadata":   map[string]any{"name": name},
			"scheduling": map[string]any{"tolerations": tolerations},
		}}}
	}
	is := func(operator any) map[string]any { return map[string]any{"key": "k", "operator": operator} }
	view := lifecycletest.NewView([]lifecycletest.Object{
		class("none"), class("exists", is("Exists")), class("null", is(nil)), class("greater", is("Gt")), class("both", is("Exists"), is("Lt")),
		{Resource: schema.GroupResource{Resource: "pods"}, Unstructured: class("other", is("Lt")).Unstructured},
	}, nil, nil)
	remainder := func(path, value string) catalog.Remainder {
		return catalog.Remainder{Field: task.Field{Resource: class("").Resource, Path: path, Value: value}}
	}
	const operator = "scheduling.tolerations[*].operator"
	for name, test := range map[string]struct {
		catalog.Remainder
		want []string
	}{
		"one value":               {remainder(operator, "Lt"), []string{"both"}},
		"another value":           {remainder(operator, "Gt"), []string{"greater"}},
		"a value that none has":   {remainder(operator, "Equal"), nil},
		"any value but null":      {remainder(operator, ""), []string{"exists", "greater", "both"}},
		"the whole of a resource": {remainder("", ""), []string{"none", "exists", "null", "greater", "both"}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := having(test.Remainder, view)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, object := range found {
				got = append(got, object.GetName())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	for name, field := range map[string]task.Field{
		"a function chooses": {Resource: class("").Resource, Path: operator, Chosen: true},
		"no path":            {Resource: class("").Resource, Path: "a..b"},
	} {
		if found, err := having(catalog.Remainder{Field: field}, view); err == nil {
			t.Errorf("%s: having found %d objects, want an error", name, len(found))
		}
	}
}
