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
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi/openapitest"
	clienttesting "k8s.io/client-go/testing"
)

var (
	widget1 = schema.GroupResource{Group: "example.com", Resource: "widget"}
	gizmos  = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gizmos"}
	sets    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
)

// widgetSchema returns a definition of widgets with a schema of all that schemas have,
// as JSON has it.
func widgetSchema(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	definition := &unstructured.Unstructured{}
	if err := definition.UnmarshalJSON([]byte(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
		"spec": {"group": "example.com", "names": {"kind": "Widget", "plural": "widgets"}, "versions": [
			{"name": "v1", "served": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
				"spec": {"type": "object", "properties": {
					"hue": {"type": "string", "enum": ["red", "blue"]}, "size": {"type": "integer"}, "on": {"type": "boolean"},
					"port": {"x-kubernetes-int-or-string": true},
					"nothing": {"type": "object"},
					"any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
					"labels": {"type": "object", "additionalProperties": {"type": "string"}},
					"rooms": {"type": "object", "additionalProperties": {"type": "object", "properties": {"lit": {"type": "boolean"}}}},
					"embedded": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
					"bulbs": {"type": "array", "items": {"type": "object", "properties": {"kind": {"type": "string", "enum": ["led"]}, "watts": {"type": "number"}}}}
				}},
				"status": {"type": "object", "properties": {"seen": {"type": "string"}}}
			}}}}
		]}}`)); err != nil {
		t.Fatal(err)
	}
	return definition
}

// inspecting returns the clients of a server that has widgets with their definition,
// and StatefulSets with what Kubernetes publishes.
func inspecting(t *testing.T, objects ...*unstructured.Unstructured) (Clients, *server) {
	t.Helper()
	s := serve(objects...)
	known := mapperOf(widgetKind, sets.GroupVersion().WithKind("StatefulSet"))
	return Clients{Dynamic: s, Mapper: known, OpenAPI: openapitest.NewEmbeddedFileClient()}, s
}

// TestMisdeclaredTaskNamed: its finder would find nothing, which
// would pass as clean.
func TestMisdeclaredTaskNamed(t *testing.T) {
	lampManifest := []byte("apiVersion: example.com/v1\nkind: Lamp\nmetadata: {name: a, namespace: ns}\n")
	clears := func(path string) Task { return ClearField(widgets, path) }
	for name, test := range map[string]struct {
		declared Task
		// want is in the problem, "" if there is none.
		want string
	}{
		"a field that is there":                 {clears("spec.hue"), ""},
		"a field of the metadata":               {clears("metadata.annotations{widgets.example.com/hue}"), ""},
		"a finalizer":                           {WaitForNoneWhere(widgets, "finalizers", func(any) bool { return true }, "metadata.finalizers"), ""},
		"a field of every element":              {clears("spec.bulbs[*].watts"), ""},
		"a field of some elements":              {clears("spec.bulbs[kind=led].watts"), ""},
		"an entry of a map":                     {clears("spec.labels{a.b/c}"), ""},
		"a field of every entry":                {clears("spec.rooms{*}.lit"), ""},
		"a field of one entry, as a key":        {clears("spec.rooms.hall.lit"), ""},
		"what the schema leaves open":           {clears("spec.any.thing[*].more"), ""},
		"metadata of an embedded object":        {clears("spec.embedded.metadata.labels{a}"), ""},
		"a value that is permitted":             {WaitForNone(widgets, "red", "spec.hue=red", "spec.size=3", "spec.on=true", "spec.port=http"), ""},
		"all of the resource":                   {ClearCollection(widgets.GroupResource()), ""},
		"a field of Kubernetes":                 {ClearField(sets, "spec.updateStrategy.rollingUpdate.maxUnavailable"), ""},
		"a condition of Kubernetes":             {WaitForNone(sets, "it", "status.conditions[type=Anything].reason"), ""},
		"an object that Kubernetes leaves open": {ClearField(sets, "spec.template.spec.containers[*].resources.limits{cpu}"), ""},

		"the singular":                       {ClearField(widget1.WithVersion("v1"), "spec.hue"), "the server has no resource widget.example.com; it has widgets.example.com: declare the task for that"},
		"an undefined resource":              {ClearField(gizmos, "spec.hue"), "ClearField/gizmos.example.com/spec.hue: the server has no resource gizmos.example.com; correct the declaration, or install its definition"},
		"an undefined collection":            {ClearCollection(gizmos.GroupResource()), "the server has no resource gizmos.example.com"},
		"a migration of what is not defined": {MigrateStorage(gizmos.GroupResource()), "the server has no resource gizmos.example.com"},
		"an author's own about gizmos":       {Func(Own{Name: "own", Fields: []Field{{Resource: gizmos.GroupResource()}}}), "the server has no resource gizmos.example.com"},
		"a resource of another group":        {ClearField(schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "statefulsets"}, "spec.x"), "no resource statefulsets.batch; correct the declaration, or let kube-apiserver serve it"},
		"a misspelled field":                 {clears("spec.hu"), "the schema of widgets.example.com v1 has no spec.hu; spec has any, bulbs, embedded, hue, labels, nothing, on, port, 2 more; what is stored of spec.hu cannot be seen; correct the path, or let the definition have it"},
		"a field of the wrong part":          {clears("hue"), "has no hue; the object has spec, status"},
		"below what has nothing":             {clears("spec.nothing.at.all"), "has no spec.nothing.at, and nothing below spec.nothing"},
		"below a string":                     {clears("spec.hue.deep"), "has a string in spec.hue, and nothing below it"},
		"a list without brackets":            {clears("spec.bulbs.watts"), "has a list in spec.bulbs; write spec.bulbs[*]"},
		"brackets without a list":            {clears("spec.hue[*].watts"), "has no list in spec.hue"},
		"braces without a map":               {clears("spec.bulbs{*}.watts"), "has no map in spec.bulbs"},
		"an entry of what is no map":         {clears("spec{hu}.x"), "has no entry hu in spec"},
		"an element of no such kind":         {clears("spec.bulbs[kind=neon].watts"), "permits no neon in spec.bulbs.kind; it permits led"},
		"an element by what it has not":      {clears("spec.bulbs[type=led].watts"), "has no spec.bulbs.type; spec.bulbs has kind, watts"},
		"a misspelled field of the metadata": {clears("metadata.annotation{x}"), "has no metadata.annotation; metadata has annotations, creationTimestamp"},
		"a value that is not permitted":      {WaitForNone(widgets, "green", "spec.hue=green"), "permits no green in spec.hue; it permits red, blue"},
		"a word in a number":                 {WaitForNone(widgets, "many", "spec.size=many"), "has the type integer in spec.size, which is never many"},
		"a number in a boolean":              {WaitForNone(widgets, "on", "spec.on=1"), "has the type boolean in spec.on, which is never 1"},
		"a value of a list":                  {WaitForNone(widgets, "bulbs", "spec.bulbs=led"), "has the type array in spec.bulbs, which is never led"},
		"status without its subresource":     {clears("status.seen"), "widgets.example.com v1 has no subresource status, by which the field is removed"},
		"a misspelled field of Kubernetes":   {ClearField(sets, "spec.updateStrategy.rollingUpdates.maxUnavailable"), "has no spec.updateStrategy.rollingUpdates; spec.updateStrategy has rollingUpdate, type"},
		"a list of Kubernetes as an object":  {ClearField(sets, "spec.template.spec.containers.image"), "has a list in spec.template.spec.containers"},
		"an object of no kind":               {Apply("lamps", lampManifest), "Apply/lamps: the server has no kind Lamp in example.com/v1, of which Lamp ns/a is"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := test.declared.Validate(); err != nil && !strings.HasPrefix(test.declared.Name, "Func/") {
				t.Fatal(err)
			}
			clients, _ := inspecting(t, widgetSchema(t))
			problems, err := NewInspection(clients, nil).Problems(t.Context(), []Task{test.declared})
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Join(problems, "\n"); !strings.Contains(said, test.want) || (test.want == "") != (said == "") {
				t.Errorf("it says %q, want %q", said, test.want)
			}
			// Without OpenAPI, as in kube-apiserver, nothing is inspected.
			clients.OpenAPI = nil
			if problems, err := NewInspection(clients, nil).Problems(t.Context(), []Task{test.declared}); len(problems) > 0 || err != nil {
				t.Errorf("without clients it reports %q, %v", problems, err)
			}
		})
	}
}

// TestDefinitionInstalledByFeatureMayBeAbsent, of whichever feature.
func TestDefinitionInstalledByFeatureMayBeAbsent(t *testing.T) {
	definition := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gizmos.example.com}\nspec: {group: example.com, names: {kind: Gizmo}}\n"
	gizmo := Apply("gizmo", []byte("apiVersion: example.com/v1\nkind: Gizmo\nmetadata: {name: a, namespace: ns}\n"))
	declared := []Task{ClearField(gizmos, "spec.hue"), gizmo}
	for name, brings := range map[string]Task{
		"installed":   Apply("definition", []byte(definition)),
		"deleted":     Remove("definition", []byte(definition)),
		"by a finder": Func(Own{Name: "own", Defines: []schema.GroupResource{gizmos.GroupResource()}}),
		"by none":     {},
	} {
		clients, _ := inspecting(t)
		problems, err := NewInspection(clients, []Task{brings}).Problems(t.Context(), declared)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int{"by none": 2, "by a finder": 1}[name]
		if len(problems) != want {
			t.Errorf("%s: got %q, want %d problems", name, problems, want)
		}
	}
}

// TestNamespacedTaskNeedsNamespacedResource.
func TestNamespacedTaskNeedsNamespacedResource(t *testing.T) {
	clients, _ := inspecting(t, widgetSchema(t))
	kinds := mapperOf()
	kinds.add(widgetKind)
	clients.Mapper = kinds
	problems, err := NewInspection(clients, nil).Problems(t.Context(), []Task{ClearField(widgets, "spec.hue").InNamespace("ns")})
	if want := "widgets.example.com is in no namespace, and the task is limited to ns"; err != nil || len(problems) != 1 || !strings.Contains(problems[0], want) {
		t.Errorf("got %q, %v, want %q", problems, err, want)
	}
}

// TestUnreadableSchemaNoProblem checks that what the server does not publish is no
// problem, and a transient failure is an error.
func TestUnreadableSchemaNoProblem(t *testing.T) {
	refused := apierrors.NewForbidden(crds.GroupResource(), "widgets.example.com", errors.New("no"))
	for name, test := range map[string]struct {
		definition, schemas error
		declared            Task
		problem             string
		fails               bool
	}{
		"the definition of a misspelled path":     {refused, refused, ClearField(widgets, "spec.hu"), "", false},
		"the definition of what is not there":     {refused, nil, ClearField(gizmos, "spec.hu"), "whether it has a definition may not be read: permit get on customresourcedefinitions.apiextensions.k8s.io gizmos.example.com", false},
		"the definition, by trouble":              {errors.New("boom"), nil, ClearField(widgets, "spec.hu"), "", true},
		"what Kubernetes publishes, by trouble":   {nil, errors.New("boom"), ClearField(sets, "spec.hu"), "", true},
		"what Kubernetes publishes, since it may": {nil, refused, ClearField(sets, "spec.hu"), "", false},
	} {
		clients, s := inspecting(t)
		s.PrependReactor("get", crds.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return test.definition != nil, nil, test.definition
		})
		if test.schemas != nil {
			clients.OpenAPI = openapitest.FakeClient{ForcedErr: test.schemas}
		}
		problems, err := NewInspection(clients, nil).Problems(t.Context(), []Task{test.declared})
		if said := strings.Join(problems, "\n"); !strings.Contains(said, test.problem) || (test.problem == "") != (said == "") || (err != nil) != test.fails {
			t.Errorf("%s: got %q, %v; want %q, and that it fails: %t", name, said, err, test.problem, test.fails)
		}
	}
}

// TestInspectionQueriesOnce, however many tasks have a resource.
func TestInspectionQueriesOnce(t *testing.T) {
	clients, s := inspecting(t, widgetSchema(t))
	inspection := NewInspection(clients, nil)
	for range 3 {
		if problems, err := inspection.Problems(context.WithoutCancel(t.Context()), []Task{ClearField(widgets, "spec.hue"), ClearField(widgets, "spec.size")}); err != nil || len(problems) > 0 {
			t.Fatalf("got %q, %v", problems, err)
		}
	}
	if n := len(s.Actions()); n != 1 {
		t.Errorf("it sent %v, want one request", s.Actions())
	}
}
