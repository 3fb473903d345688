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
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestParsePath(t *testing.T) {
	for text, ok := range map[string]bool{
		"spec":                                   true,
		"spec.a.b":                               true,
		"spec.containers[*].x":                   true,
		"a[*].b[*].c":                            true,
		"":                                       false,
		"spec.":                                  false,
		".spec":                                  false,
		"spec..a":                                false,
		"spec.containers[*]":                     true,
		"spec.containers[0].x":                   false,
		"spec.[*].x":                             false,
		"metadata.labels.a/b":                    false,
		"spec.containers[*]x.y":                  false,
		"spec.containers [*].xy":                 false,
		"status.conditions[type=Unused]":         true,
		"status.conditions[type=Unused].message": true,
		"spec[hostNetwork=true].hostUsers":       true,
		"metadata.labels{topology.kubernetes.io/zone}": true,
		"spec.devices[*].capacity{*}.requestPolicy":    true,
		"spec.devices[*].capacity{*}":                  false,
		"spec.a{}":                                     false,
		"spec.a[]":                                     false,
		"spec.a[=x]":                                   false,
		"spec.a[x=]":                                   false,
		"spec.a[*}":                                    false,
		"spec.a{*":                                     false,
		"spec.a[*][*].b":                               false,
		"spec.a=b":                                     false,
	} {
		path, err := ParsePath(text)
		if (err == nil) != ok {
			t.Errorf("ParsePath(%q): %v, want ok %t", text, err, ok)
		}
		if ok && path.String() != text {
			t.Errorf("%q is shown as %q", text, path)
		}
	}
}

func TestPointers(t *testing.T) {
	object := map[string]any{
		"spec": map[string]any{
			"a":    map[string]any{"b": int64(1)},
			"odd":  map[string]any{"x.io/y~z": "1", "k": map[string]any{"z": "2"}, "j": map[string]any{"z": "3"}},
			"null": nil,
			"list": []any{
				map[string]any{"x": "1"},
				map[string]any{"y": "2"},
				map[string]any{"x": "3", "deep": []any{map[string]any{"z": true}}},
				"no object",
			},
		},
	}
	for text, want := range map[string][]string{
		"spec.a.b":               {"/spec/a/b"},
		"spec.a":                 {"/spec/a"},
		"spec.null":              {"/spec/null"},
		"spec.a.c":               nil,
		"spec.a.b.c":             nil,
		"spec.list.x":            nil,
		"spec.list[*].x":         {"/spec/list/0/x", "/spec/list/2/x"},
		"spec.list[*].deep[*].z": {"/spec/list/2/deep/0/z"},
		"spec.a[*].b":            nil,
		"status":                 nil,
		"spec.odd{x.io/y~z}":     {"/spec/odd/x.io~1y~0z"},
		"spec.odd{*}.z":          {"/spec/odd/j/z", "/spec/odd/k/z"},
		"spec.odd{none}":         nil,
		"spec.list{*}.x":         nil,
		"spec.list[x=3]":         {"/spec/list/2"},
		"spec.list[x=3].deep":    {"/spec/list/2/deep"},
		"spec.list[x=4]":         nil,
		"spec.a[b=1]":            {"/spec/a"},
		"spec.a[b=1].b":          {"/spec/a/b"},
		"spec.a[b=2].b":          nil,
		"spec.null[b=1]":         nil,
	} {
		path, err := ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, path.Pointers(object), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// TestPointersAgreeWithPlainSearch compares with a naive twin on random objects.
func TestPointersAgreeWithPlainSearch(t *testing.T) {
	keys := []string{"a", "b", "c"}
	var object func(depth int) *rapid.Generator[any]
	object = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			if depth == 0 {
				return rapid.Int64().Draw(t, "leaf")
			}
			if rapid.Bool().Draw(t, "list") {
				return rapid.SliceOfN(object(depth-1), 0, 3).Draw(t, "elements")
			}
			return rapid.MapOfN(rapid.SampledFrom(keys), object(depth-1), 0, 3).Draw(t, "fields")
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		root := rapid.MapOfN(rapid.SampledFrom(keys), object(3), 0, 3).Draw(t, "object")
		path, err := ParsePath(rapid.SampledFrom([]string{"a", "a.b", "a[*].b", "a[*].b[*].c", "a.b.c", "b[*].a.c"}).Draw(t, "path"))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(path.Pointers(root)), occurrences(root, path.segments); got != want {
			t.Fatalf("%s found %d times, want %d in %v", path, got, want, root)
		} else if is := path.in(root); is != (want > 0) {
			t.Fatalf("%s is in %v: %t, and found %d times", path, root, is, want)
		}
	})
}

// BenchmarkMatches searches a pod template for a missing field, as finders do with
// every object of a cluster.
func BenchmarkMatches(b *testing.B) {
	container := map[string]any{
		"name": "main", "image": "example.com/main", "ports": []any{map[string]any{"containerPort": int64(80)}},
		"env": []any{map[string]any{"name": "A", "value": "1"}, map[string]any{"name": "B", "value": "2"}},
	}
	template := map[string]any{"spec": map[string]any{
		"containers": []any{container, container},
		"volumes":    []any{map[string]any{"name": "data", "emptyDir": map[string]any{}}, map[string]any{"name": "config", "configMap": map[string]any{"name": "main"}}},
	}}
	object := map[string]any{"spec": map[string]any{"replicas": int64(1), "template": template}}
	for _, text := range []string{
		"spec.template.spec.resources",
		"spec.template.spec.containers[*].env[*].valueFrom.fileKeyRef",
		"spec.template.spec.volumes[*].projected.sources[*].clusterTrustBundle",
	} {
		b.Run(text, func(b *testing.B) {
			m, err := parseMatcher(text)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if m.matches(object) {
					b.Fatal("it is not there")
				}
			}
		})
	}
}

func occurrences(value any, segments []segment) int {
	if len(segments) == 0 {
		return 1
	}
	object, ok := value.(map[string]any)
	if !ok {
		return 0
	}
	child, ok := object[segments[0].key]
	if !ok {
		return 0
	}
	if segments[0].which == itself {
		return occurrences(child, segments[1:])
	}
	n := 0
	elements, _ := child.([]any)
	for _, element := range elements {
		n += occurrences(element, segments[1:])
	}
	return n
}

func TestFieldIn(t *testing.T) {
	object := map[string]any{"spec": map[string]any{
		"replicas": int64(0),
		"nothing":  nil,
		"rules":    []any{map[string]any{"operator": "Gt"}, map[string]any{"operator": "Exists"}},
	}}
	for name, test := range map[string]struct {
		field    Field
		has, bad bool
	}{
		"the whole object":         {field: Field{}, has: true},
		"a field":                  {field: Field{Path: "spec.replicas"}, has: true},
		"a field with its value":   {field: Field{Path: "spec.replicas", Value: "0"}, has: true},
		"a field with another":     {field: Field{Path: "spec.replicas", Value: "1"}},
		"a field it does not have": {field: Field{Path: "spec.paused"}},
		"null":                     {field: Field{Path: "spec.nothing"}},
		"one of a list":            {field: Field{Path: "spec.rules[*].operator", Value: "Exists"}, has: true},
		"none of a list":           {field: Field{Path: "spec.rules[*].operator", Value: "Lt"}},
		"chosen values":            {field: Field{Path: "spec.rules[*].operator", Chosen: true}, bad: true},
		"no path":                  {field: Field{Path: "spec..rules"}, bad: true},
	} {
		has, err := test.field.In(object)
		if has != test.has || (err != nil) != test.bad {
			t.Errorf("%s: In says %t, %v; want %t, error %t", name, has, err, test.has, test.bad)
		}
	}
}
