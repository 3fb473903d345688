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

package apidocs

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

var (
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	gadgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
)

// entry is a feature whose off state waits for fields of widgets.
func entry(name featuregate.Feature, paths ...string) catalog.Entry {
	return catalog.Entry{Feature: lifecycle.Feature{Name: name, OnDisable: lifecycle.Tasks{lifecycle.WaitForNone(widgets, "it", paths...)}}}
}

func remains(e catalog.Entry, remainders ...catalog.Remainder) catalog.Entry {
	e.Retained = remainders
	return e
}

func refTo(name string) *spec.Schema { return spec.RefSchema("#/definitions/" + name) }

// example has a part in three places of a widget and in a gadget.
func example() map[string]*spec.Schema {
	keyed := spec.ArrayProperty(refTo("Part"))
	keyed.AddExtension(listMapKeys, []any{"name", "size"})
	color := spec.StringProperty()
	color.Enum = []any{"Blue", "Green", "Red"}
	color.Description = "Its color.\n\nPossible enum values:\n - `\"Blue\"` as the sky\n - `\"Green\"` as grass\n - `\"Red\"` as\n   blood"
	part := spec.Schema{SchemaProps: spec.SchemaProps{
		Required:   []string{"name", "size"},
		Properties: map[string]spec.Schema{"name": *spec.StringProperty(), "size": *spec.Int64Property(), "color": *color, "parts": *spec.ArrayProperty(refTo("Part"))},
	}}
	part.AddExtension(unions, []any{map[string]any{"discriminator": "name", unionFields: map[string]any{"size": "Size", "color": "Color"}}})
	wrapped := spec.Schema{SchemaProps: spec.SchemaProps{AllOf: []spec.Schema{*refTo("Part")}}}
	return map[string]*spec.Schema{
		"Part": &part,
		"Widget": {SchemaProps: spec.SchemaProps{Properties: map[string]spec.Schema{
			"one": wrapped, "many": *keyed, "named": *spec.MapProperty(refTo("Part")), "note": *spec.StringProperty(),
		}}},
		"Gadget": {SchemaProps: spec.SchemaProps{Properties: map[string]spec.Schema{"part": *refTo("Part")}}},
	}
}

// everywhere are the paths of a part's field. A part within a part would be another
// place, so these examples have none.
func everywhere(field string) []string {
	return []string{"one." + field, "many[*]." + field, "named{*}." + field}
}

func TestDefinitionsRemoved(t *testing.T) {
	onWidgets := map[schema.GroupVersionResource]string{widgets: "Widget"}
	field := func(path string) task.Field { return task.Field{Resource: widgets.GroupResource(), Path: path} }
	for name, test := range map[string]struct {
		entries      []catalog.Entry
		dependencies map[featuregate.Feature][]featuregate.Feature
		roots        map[schema.GroupVersionResource]string
		on           []featuregate.Feature
		want         []string
	}{
		"a field of a gate that is off":                   {entries: []catalog.Entry{entry("A", "note")}, want: []string{"Widget.note"}},
		"a field of a gate that is on stays":              {entries: []catalog.Entry{entry("A", "note")}, on: []featuregate.Feature{"A"}},
		"one place of three is not enough":                {entries: []catalog.Entry{entry("A", "one.size")}},
		"all places are":                                  {entries: []catalog.Entry{entry("A", everywhere("size")...)}, want: []string{"Part.size"}},
		"each place by another gate":                      {entries: []catalog.Entry{entry("A", "one.size"), entry("B", "many[*].size"), entry("C", "named{*}.size")}, want: []string{"Part.size"}},
		"each place by another gate of which one is on":   {entries: []catalog.Entry{entry("A", "one.size"), entry("B", "many[*].size"), entry("C", "named{*}.size")}, on: []featuregate.Feature{"B"}},
		"a place in another resource":                     {entries: []catalog.Entry{entry("A", everywhere("size")...)}, roots: map[schema.GroupVersionResource]string{widgets: "Widget", gadgets: "Gadget"}},
		"a gate that is on keeps what it shares":          {entries: []catalog.Entry{entry("A", "note"), entry("B", "note")}, on: []featuregate.Feature{"A"}},
		"gates that share and are off":                    {entries: []catalog.Entry{entry("A", "note"), entry("B", "note")}, want: []string{"Widget.note"}},
		"a gate that the other needs does not keep it":    {entries: []catalog.Entry{entry("A", "note"), entry("B", "note")}, dependencies: map[featuregate.Feature][]featuregate.Feature{"B": {"C"}, "C": {"A"}}, on: []featuregate.Feature{"A"}, want: []string{"Widget.note"}},
		"what is within goes with what leads there":       {entries: []catalog.Entry{entry("A", "many", "one.size"), entry("B", "named")}, want: []string{"Part.size", "Widget.many", "Widget.named"}},
		"what is within stays as long as one leads there": {entries: []catalog.Entry{entry("A", "many", "one.size"), entry("B", "named")}, on: []featuregate.Feature{"B"}, want: []string{"Widget.many"}},
		"a value":                                           {entries: []catalog.Entry{entry("A", "one.color=Red", "many[*].color=Red", "named{*}.color=Red")}, want: []string{"Part.color=Red"}},
		"a value at one place of three":                     {entries: []catalog.Entry{entry("A", "one.color=Red")}},
		"a value that no enum lists":                        {entries: []catalog.Entry{entry("A", "note=x")}},
		"values that a function chooses":                    {entries: []catalog.Entry{{Feature: lifecycle.Feature{Name: "A", OnDisable: lifecycle.Tasks{lifecycle.WaitForNoneWhere(widgets, "it", func(any) bool { return true }, "note")}}}}},
		"some elements, an entry of a map, the collection":  {entries: []catalog.Entry{entry("A", "many[name=x].size", "named{x}", "metadata.name"), {Feature: lifecycle.Feature{Name: "B", OnDisable: lifecycle.Tasks{lifecycle.ClearCollection(widgets.GroupResource())}}}}},
		"what remains":                                      {entries: []catalog.Entry{remains(entry("A", "one"), catalog.Remainder{Field: field("note")})}, want: []string{"Widget.note", "Widget.one"}},
		"what remains and is another's":                     {entries: []catalog.Entry{remains(entry("A", "one"), catalog.Remainder{Field: field("note")}), entry("B", "note")}, on: []featuregate.Feature{"A"}, want: []string{"Widget.note"}},
		"what remains with a gate that is off when this is": {entries: []catalog.Entry{remains(entry("A", "one"), catalog.Remainder{Field: field("note"), With: "B"})}, want: []string{"Widget.one"}},
	} {
		t.Run(name, func(t *testing.T) {
			schemas := example()
			delete(schemas["Part"].Properties, "parts")
			roots := test.roots
			if roots == nil {
				roots = onWidgets
			}
			cuts := NewGuards(test.entries, test.dependencies).findCuts(schemas, roots)
			got := names(cuts.While(func(gate featuregate.Feature) bool { return slices.Contains(test.on, gate) }))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("what goes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestATypeWithinItself ends, and its inner place is one that no path names.
func TestATypeWithinItself(t *testing.T) {
	cuts := NewGuards([]catalog.Entry{entry("A", everywhere("size")...)}, nil).findCuts(example(), map[schema.GroupVersionResource]string{widgets: "Widget"})
	if len(cuts) > 0 {
		t.Errorf("a part within a part has a size: %v", cuts)
	}
	cuts = NewGuards([]catalog.Entry{entry("A", append(everywhere("size"), everywhere("parts")...)...)}, nil).findCuts(example(), map[schema.GroupVersionResource]string{widgets: "Widget"})
	if diff := cmp.Diff([]string{"Part.parts", "Part.size"}, names(cuts.While(off))); diff != "" {
		t.Errorf("once no part is in a part (-want +got):\n%s", diff)
	}
	cuts = NewGuards([]catalog.Entry{entry("A", append(everywhere("size"), everywhere("parts[*].size")...)...)}, nil).findCuts(example(), map[schema.GroupVersionResource]string{widgets: "Widget"})
	if diff := cmp.Diff([]string{"Part.size"}, names(cuts.While(off))); diff != "" {
		t.Errorf("with a path for each level of parts (-want +got):\n%s", diff)
	}
	cuts = NewGuards([]catalog.Entry{entry("A", append(everywhere("size"), "one.parts[*].size")...)}, nil).findCuts(example(), map[schema.GroupVersionResource]string{widgets: "Widget"})
	if len(cuts) > 0 {
		t.Errorf("only some parts have a path for each level: %v", cuts)
	}
}

// TestReferencesToRemovedDefinitionsFail: nothing that is left names a property that is not.
func TestReferencesToRemovedDefinitionsFail(t *testing.T) {
	schemas := example()
	delete(schemas["Part"].Properties, "parts")
	paths := append(everywhere("size"), "one.color=Red", "many[*].color=Red", "named{*}.color=Red")
	before := asJSON(t, schemas)
	cuts := NewGuards([]catalog.Entry{entry("A", paths...)}, nil).findCuts(schemas, map[schema.GroupVersionResource]string{widgets: "Widget"})
	changed := cuts.While(off).apply(schemas)
	if diff := cmp.Diff([]featuregate.Feature{"A"}, cuts.Gates()); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
	want := map[string]any{
		"Part": map[string]any{
			"required": []any{"name"},
			"properties": map[string]any{
				"name": map[string]any{"type": "string"},
				"color": map[string]any{
					"type": "string", "enum": []any{"Blue", "Green"},
					"description": "Its color.\n\nPossible enum values:\n - `\"Blue\"` as the sky\n - `\"Green\"` as grass",
				},
			},
			unions: []any{map[string]any{"discriminator": "name", unionFields: map[string]any{"color": "Color"}}},
		},
		"Widget": map[string]any{"properties": map[string]any{
			"one":   map[string]any{"allOf": []any{map[string]any{"$ref": "#/definitions/Part"}}},
			"many":  map[string]any{"type": "array", "items": map[string]any{"$ref": "#/definitions/Part"}, listMapKeys: []any{"name"}},
			"named": map[string]any{"type": "object", "additionalProperties": map[string]any{"$ref": "#/definitions/Part"}},
			"note":  map[string]any{"type": "string"},
		}},
	}
	if diff := cmp.Diff(want, asMap(t, changed)); diff != "" {
		t.Errorf("changed schemas (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, asJSON(t, schemas)); diff != "" {
		t.Errorf("the schemas that were given changed (-want +got):\n%s", diff)
	}
}

// TestUnionsWithoutFields: a union whose fields are all gone goes, and the list of
// them with the last one.
func TestUnionsWithoutFields(t *testing.T) {
	union := func(fields ...string) any {
		discriminated := map[string]any{}
		for _, field := range fields {
			discriminated[field] = field
		}
		return map[string]any{"discriminator": "name", unionFields: discriminated}
	}
	for name, test := range map[string]struct {
		before, want []any
	}{
		"one of two goes":          {[]any{union("size"), union("color")}, []any{union("color")}},
		"the last one":             {[]any{union("size")}, nil},
		"all of them":              {[]any{union("size"), union("size")}, nil},
		"a union without fields":   {[]any{map[string]any{"discriminator": "name"}, union("size")}, []any{map[string]any{"discriminator": "name"}}},
		"one that loses one field": {[]any{union("size", "color")}, []any{union("color")}},
	} {
		t.Run(name, func(t *testing.T) {
			schemas := example()
			part := schemas["Part"]
			delete(part.Properties, "parts")
			part.Extensions[unions] = test.before
			cuts := NewGuards([]catalog.Entry{entry("A", everywhere("size")...)}, nil).findCuts(schemas, map[schema.GroupVersionResource]string{widgets: "Widget"})
			got, ok := cuts.While(off).apply(schemas)["Part"].Extensions[unions]
			if ok != (test.want != nil) {
				t.Fatalf("unions are there: %t: %v", ok, got)
			}
			if ok {
				if diff := cmp.Diff(any(test.want), got); diff != "" {
					t.Errorf("unions (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestValuesOfElements go out of the enum of a list's elements.
func TestValuesOfElements(t *testing.T) {
	color := spec.StringProperty()
	color.Enum = []any{"Blue", "Red"}
	colors := spec.ArrayProperty(color)
	colors.Description = "Possible enum values:\n - `\"Blue\"` as the sky\n - `\"Red\"` as blood"
	schemas := map[string]*spec.Schema{"Widget": {SchemaProps: spec.SchemaProps{Properties: map[string]spec.Schema{"colors": *colors}}}}
	cuts := NewGuards([]catalog.Entry{entry("A", "colors=Red")}, nil).findCuts(schemas, map[schema.GroupVersionResource]string{widgets: "Widget"})
	want := map[string]any{"Widget": map[string]any{"properties": map[string]any{"colors": map[string]any{
		"type": "array", "items": map[string]any{"type": "string", "enum": []any{"Blue"}},
		"description": "Possible enum values:\n - `\"Blue\"` as the sky",
	}}}}
	if diff := cmp.Diff(want, asMap(t, cuts.While(off).apply(schemas))); diff != "" {
		t.Errorf("changed schemas (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{"Blue", "Red"}, schemas["Widget"].Properties["colors"].Items.Schema.Enum); diff != "" {
		t.Errorf("the schema that was given changed (-want +got):\n%s", diff)
	}
}
