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

package lifecycletest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func widget(t *testing.T, text string) Object {
	t.Helper()
	objects, err := Parse([]byte("apiVersion: example.com/v1\nkind: Widget\n" + text))
	if err != nil || len(objects) != 1 {
		t.Fatalf("parsing %q: %v", text, err)
	}
	return Object{Unstructured: objects[0], Resource: widgets.GroupResource()}
}

func TestParse(t *testing.T) {
	objects, err := Parse([]byte("# a comment\n---\napiVersion: v1\nkind: A\nmetadata: {name: a}\ncount: 3\n---\n---\napiVersion: v1\nkind: B\nmetadata: {name: b}\n"))
	if err != nil || len(objects) != 2 || objects[1].GetName() != "b" {
		t.Fatalf("%v, %v", objects, err)
	}
	if objects[0].Object["count"] != int64(3) {
		t.Errorf("a number is %T, want int64 as in answers of the server", objects[0].Object["count"])
	}
	for text, want := range map[string]string{
		"apiVersion: v1\nkind: A\n":                             "metadata.name",
		"kind: A\nmetadata: {name: a}\n":                        "apiVersion",
		"apiVersion: v1\nkind: A\n  bad: [":                     "document 1",
		"apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\n[]": "document 2",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", text, err, want)
		}
	}
}

// used is a case with one task that clears and one that waits, and a view of what
// it made.
func used(t *testing.T, objects ...Object) (*Case, *View) {
	t.Helper()
	c := &Case{
		Feature: lifecycle.Feature{Name: "F", OnDisable: lifecycle.Tasks{
			lifecycle.ClearField(widgets, "spec.field"),
			lifecycle.WaitForNone(widgets, "a thing", "spec.things[*].name"),
		}},
		Fixture: "F.yaml",
		Objects: []*unstructured.Unstructured{objects[0].Unstructured},
		uids:    map[types.UID]bool{"1": true},
	}
	return c, NewView(objects, nil, nil)
}

func TestUsedReportsMissingFixtures(t *testing.T) {
	whole := widget(t, "metadata: {name: a, uid: \"1\"}\nspec: {field: x, things: [{name: y}]}")
	half := widget(t, "metadata: {name: a, uid: \"1\"}\nspec: {field: x}")
	made := widget(t, "metadata: {name: b, uid: \"2\", ownerReferences: [{uid: \"1\"}]}\nspec: {things: [{name: y}]}")
	others := widget(t, "metadata: {name: c, uid: \"3\"}\nspec: {things: [{name: y}]}")
	other := &Case{uids: map[types.UID]bool{"3": true}}

	c, view := used(t, whole)
	if problems := c.Used(t.Context(), view); len(problems) > 0 {
		t.Errorf("a whole fixture: %v", problems)
	}
	c, view = used(t, half, made)
	if problems := c.Used(t.Context(), view); len(problems) > 0 {
		t.Errorf("what controllers made for it does not count: %v", problems)
	}
	c, view = used(t, half, others)
	problems := strings.Join(c.Used(t.Context(), view, c, other), "\n")
	for _, want := range []string{"F: task WaitForNone/widgets.example.com/a-thing finds nothing", "add an object to F.yaml", "spec.things[*].name", "widgets.example.com a"} {
		if !strings.Contains(problems, want) {
			t.Errorf("the message does not say %q: %s", want, problems)
		}
	}
	c.Objects = nil
	c.uids = nil
	other.uids["1"] = true
	if problems := c.Used(t.Context(), view, other); len(problems) != 2 || !strings.Contains(problems[0], "ClearField/widgets.example.com/spec.field finds nothing, and there is no fixture; write objects") || !strings.Contains(problems[0], "F.yaml") {
		t.Errorf("without a fixture: %q", problems)
	}
}

func TestLeft(t *testing.T) {
	c, view := used(t, widget(t, "metadata: {name: a, uid: \"1\"}\nspec: {field: x}"), widget(t, "metadata: {name: b, uid: \"9\"}\nspec: {field: x}"))
	if count, problems := c.Left(t.Context(), view); count != 2 || len(problems) != 1 || !strings.Contains(problems[0], "a, b") {
		t.Errorf("left are %d: %v", count, problems)
	}
}

func TestViewsAreReadOnly(t *testing.T) {
	_, view := used(t, widget(t, "metadata: {name: a, uid: \"1\"}"))
	err := view.Clients().Storage.Delete(context.WithoutCancel(t.Context()), widgets.GroupResource(), task.StoredObject{})
	if err == nil {
		t.Error("a view was written")
	}
	c, o := view.Clients().Dynamic.Resource(widgets), view.Objects[0].Unstructured
	for verb, err := range map[string]error{
		"create":           second(c.Create(t.Context(), o, metav1.CreateOptions{})),
		"update":           second(c.Update(t.Context(), o, metav1.UpdateOptions{})),
		"update status":    second(c.UpdateStatus(t.Context(), o, metav1.UpdateOptions{})),
		"delete":           c.Delete(t.Context(), "a", metav1.DeleteOptions{}),
		"deletecollection": c.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}),
		"watch":            second(c.Watch(t.Context(), metav1.ListOptions{})),
		"patch":            second(c.Patch(t.Context(), "a", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})),
		"apply":            second(c.Apply(t.Context(), "a", o, metav1.ApplyOptions{})),
		"apply status":     second(c.ApplyStatus(t.Context(), "a", o, metav1.ApplyOptions{})),
	} {
		if !errors.Is(err, errReadOnly) {
			t.Errorf("%s: %v, want %v", verb, err, errReadOnly)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestViewPredictsApply, without the defaults that the server sets.
func TestViewPredictsApply(t *testing.T) {
	stored := widget(t, `metadata: {name: a, uid: "1", labels: {of: others}}
spec: {size: 3, ratio: 1, default: true, args: [x, y], ports: [{name: injected}, {name: web, port: 80, protocol: TCP}]}
status: {ready: true}`)
	view := NewView([]Object{stored}, nil, nil)
	client := view.Clients().Dynamic.Resource(widgets).Namespace("")
	for text, same := range map[string]bool{
		"spec: {size: 3}":                                true,
		"spec: {ratio: 1.0}":                             true,
		"spec: {args: [x, y]}":                           true,
		"spec: {ports: [{name: web, port: 80}]}":         true,
		"spec: {none: {}, nothing: []}":                  true,
		"spec: {size: 4}":                                false,
		"spec: {color: red}":                             false,
		"spec: {args: [x]}":                              false,
		"spec: {args: [y, x]}":                           false,
		"spec: {args: []}":                               false,
		"spec: {ports: [{name: web, port: 81}]}":         false,
		"spec: {ports: [{name: web}, {name: injected}]}": false,
		"spec: {size: {}}":                               false,
	} {
		applied := widget(t, "metadata: {name: a}\n"+text).Unstructured
		would, err := client.Apply(t.Context(), "a", applied, metav1.ApplyOptions{FieldManager: "me", DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		diff := cmp.Diff(stored.Object, would.Object)
		if (diff == "") != same {
			t.Errorf("applying %q changes nothing: %t, want %t (-is +would be):\n%s", text, diff == "", same, diff)
		}
		if !has(would.Object, applied.Object) && text != "spec: {size: {}}" {
			t.Errorf("%q was applied, and there is %v", text, would.Object)
		}
	}
	other := widget(t, "metadata: {name: b}\nspec: {size: 1}").Unstructured
	if would, err := client.Apply(t.Context(), "b", other, metav1.ApplyOptions{DryRun: []string{metav1.DryRunAll}}); err != nil || would.GetName() != "b" {
		t.Errorf("applying what is not there: %v, %v", would, err)
	}
	if len(view.Objects) != 1 || cmp.Diff(stored.Object, view.Objects[0].Object) != "" {
		t.Errorf("the view was changed: %v", view.Objects)
	}
}

func TestChanged(t *testing.T) {
	was := widget(t, "metadata: {name: a, resourceVersion: \"1\", generation: 1}\nspec: {field: x, rolling: {max: 1}, list: [{a: 1, b: 2}], keep: 1}").Unstructured
	removed := []task.Field{{Path: "spec.rolling.max"}, {Path: "spec.list[*].b"}}
	for text, changed := range map[string]bool{
		"spec: {field: x, list: [{a: 1}], keep: 1}":                          false,
		"spec: {field: x, rolling: {}, list: [{a: 1}], keep: 1}":             false,
		"spec: {field: x, rolling: {max: 1}, list: [{a: 1, b: 2}], keep: 1}": false,
		"spec: {list: [{a: 1}], keep: 1}":                                    true,
		"spec: {field: x, list: [{}], keep: 1}":                              true,
		"spec: {field: x, list: [{a: 1}], keep: 2}":                          true,
	} {
		is := widget(t, "metadata: {name: a, resourceVersion: \"7\", generation: 2}\n"+text).Unstructured
		if diff := Changed(was, is, removed); (diff != "") != changed {
			t.Errorf("%s: changed is %t, want %t: %s", text, diff != "", changed, diff)
		}
	}
}

func TestNamedInMessages(t *testing.T) {
	a, b := widget(t, "metadata: {name: a, namespace: ns}"), widget(t, "metadata: {name: ab, namespace: ns}")
	r := &release{made: []Object{a, b}}
	var names []string
	for _, object := range r.named("waiting for 2 widgets.example.com using x: ns/ab, ns/z") {
		names = append(names, object.GetName())
	}
	if diff := cmp.Diff([]string{"ab"}, names); diff != "" {
		t.Error(diff)
	}
	if found := r.named("waiting for 1 gadgets.example.com using x: ns/a"); len(found) > 0 {
		t.Errorf("an object of another resource is named: %v", found)
	}
}

func TestOutcomesTellWhereAFeatureStopped(t *testing.T) {
	o := &Outcome{Last: &v1alpha1.Feature{Status: v1alpha1.FeatureStatus{State: v1alpha1.StateTurningOff}}}
	o.unfinished("F")
	if len(o.Problems) != 1 || !strings.Contains(o.Problems[0], "F is TurningOff and not Off") {
		t.Errorf("%v", o.Problems)
	}
	c, view := used(t, widget(t, "metadata: {name: a, uid: \"1\"}"))
	o = &Outcome{}
	o.unnamed(c, view, map[string]bool{})
	if len(o.Problems) != 1 || !strings.Contains(o.Problems[0], "never said") {
		t.Errorf("%v", o.Problems)
	}
	o = &Outcome{}
	o.unnamed(c, view, map[string]bool{"widgets.example.com a": true})
	if len(o.Problems) > 0 {
		t.Errorf("%v", o.Problems)
	}
}

func TestUIDsInFixtures(t *testing.T) {
	object := widget(t, "metadata: {name: a, ownerReferences: [{uid: \"uid-of:Job/j\"}]}").Unstructured
	got := named(object, map[string]types.UID{"uid-of:Job/j": "7"})
	if uid := got.GetOwnerReferences()[0].UID; uid != "7" {
		t.Errorf("the reference is to %s", uid)
	}
	if uid := object.GetOwnerReferences()[0].UID; uid != "uid-of:Job/j" {
		t.Errorf("the fixture was changed: %s", uid)
	}
}

// failing is a mapper that knows no resource, for a reason.
type failing struct {
	meta.ResettableRESTMapper
	err    error
	resets int
}

func (f *failing) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, f.err
}

func (f *failing) Reset() { f.resets++ }

// TestAdmissionSeesEarlierObjectsLate: what is refused for a moment is created, and what is
// refused for long is an error.
func TestAdmissionSeesEarlierObjectsLate(t *testing.T) {
	for sentence, test := range map[string]struct {
		// refusals is how often the server refuses, 0 for always.
		refusals int
		err      error
		says     string
	}{
		"for a moment":  {refusals: 3, err: apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "a", errors.New("node b was not seen"))},
		"for ever":      {err: apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "a", errors.New("no")), says: "it was refused for 10s: widgets \"a\" is forbidden: no"},
		"other reasons": {refusals: 1, err: apierrors.NewBadRequest("no"), says: "no"},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				object := widget(t, "metadata: {name: a}").Unstructured
				client, tries := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), 0
				client.PrependReactor("create", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
					tries++
					return test.refusals == 0 || tries <= test.refusals, nil, test.err
				})
				mapper := meta.NewDefaultRESTMapper(nil)
				mapper.Add(object.GroupVersionKind(), meta.RESTScopeRoot)
				kit := &Kit{Dynamic: client, Mapper: lasting{mapper}}
				err := kit.Use(t.Context(), &Case{Fixture: "widget.yaml", Objects: []*unstructured.Unstructured{object}})
				switch {
				case test.says == "" && (err != nil || tries != test.refusals+1):
					t.Errorf("got %v after %d tries, want it to be created after %d", err, tries, test.refusals+1)
				case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)):
					t.Errorf("got %v, want it to say %q", err, test.says)
				}
			})
		})
	}
}

// lasting is a mapper that has nothing to forget.
type lasting struct{ meta.RESTMapper }

func (lasting) Reset() {}

// TestWhyAnObjectCannotBeMade: only a server that does not serve it is to be started with
// other flags.
func TestWhyAnObjectCannotBeMade(t *testing.T) {
	unknown := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Widget"}}
	refused := errors.New("connection refused")
	for sentence, test := range map[string]struct {
		err error
		// ends is the time that the caller waits; 0 means without limit.
		ends time.Duration
		// wraps is in the error, and says is what the server said last, if that is another.
		wraps, says error
		// advice is to start the server otherwise; once says that it is asked once.
		advice, once bool
	}{
		"the server does not serve it": {err: unknown, wraps: unknown, advice: true},
		"the caller's wait ends first": {err: unknown, ends: time.Second, wraps: context.DeadlineExceeded, says: unknown},
		"the server cannot be reached": {err: refused, wraps: refused, once: true},
		"it cannot, after the wait":    {err: refused, ends: -time.Second, wraps: context.DeadlineExceeded, says: refused, once: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if test.ends != 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.ends)
					defer cancel()
				}
				mapper := &failing{err: test.err}
				kit := &Kit{Mapper: mapper}
				err := kit.Use(ctx, &Case{Fixture: "widget.yaml", Objects: []*unstructured.Unstructured{widget(t, "metadata: {name: a}").Unstructured}})
				if err == nil || !strings.Contains(err.Error(), "widget.yaml: creating Widget a") || !strings.Contains(err.Error(), test.wraps.Error()) {
					t.Fatalf("got %v, want it to name the fixture and say %v", err, test.wraps)
				}
				if test.ends != 0 && (!errors.Is(err, test.wraps) || !strings.Contains(err.Error(), test.says.Error())) {
					t.Errorf("got %v, want it to wrap %v and say %v", err, test.wraps, test.says)
				}
				if got := strings.Contains(err.Error(), "--runtime-config"); got != test.advice {
					t.Errorf("got %v, want the advice to start the server otherwise: %t", err, test.advice)
				}
				if test.once != (mapper.resets == 0) {
					t.Errorf("the server was asked %d times more", mapper.resets)
				}
			})
		})
	}
}
