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
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzClearField removes any path from any object with the patch that is sent and with
// what applies it in kube-apiserver. Afterwards the field is removed, everything else
// is unchanged (S7), and there is nothing left to send.
func FuzzClearField(f *testing.F) {
	foundClearField(f)
	for _, seed := range [][2]string{
		{"spec.updateStrategy.rollingUpdate.maxUnavailable", `{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":"10%","partition":0}}}}`},
		{"spec.template.spec.containers[*].restartPolicy", `{"spec":{"template":{"spec":{"containers":[{"name":"a","restartPolicy":"Always"},{"name":"b"},null]}}}}`},
		{"spec.list[a=1]", `{"spec":{"list":[{"a":1},{"a":2},{"a":1},{"a":1.5},[],"x"]}}`},
		{"spec[a=true].b", `{"spec":{"a":true,"b":null}}`},
		{"spec.a{x.io/y~z}", `{"spec":{"a":{"x.io/y~z":1,"x":2,"":3}}}`},
		{"spec.a{*}.b[*].c", `{"spec":{"a":{"~1":{"b":[{"c":1},{"c":2,"d":3}]},"/":{"b":{}}}}}`},
		{"metadata.uid", `{"metadata":{"uid":"x"}}`},
		{"metadata.annotations{a}", `{"metadata":[]}`},
		{"a[b=<nil>]", `{"a":{"b":null}}`},
		{"a[b==]", `{"a":[{"b":"="}]}`},
		{"a[", "{}"}, {"", "{}"}, {"a..b", "{}"}, {"a[*]", `{"a":[1,{"b":2}],"c":[3]}`}, {"a{*}", "{}"},
	} {
		f.Add(seed[0], []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, text string, data []byte) {
		path, err := ParsePath(text)
		parts := naiveParts(text)
		if (err == nil) != (parts != nil) {
			t.Fatalf("ParsePath(%q) says %v, plain reading finds %q", text, err, parts)
		}
		if err != nil {
			if !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
				t.Fatalf("the message does not name the path %q: %v", text, err)
			}
			return
		}
		object := map[string]any{}
		// As the dynamic client decodes what a server encoded: 1.0 is 1 then.
		if err := utiljson.Unmarshal(data, &object); err != nil || object == nil {
			return
		}
		object = encodedAndDecoded(t, object)
		metadata, _ := object["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
			object["metadata"] = metadata
		}
		// Every stored object has them, and the patch names them.
		metadata["uid"], metadata["resourceVersion"] = "u", "7"
		want := (&unstructured.Unstructured{Object: object}).DeepCopy().Object
		naiveRemove(want, parts)
		c := clearField{path: path}
		got := applied(t, c, object)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q from %s (-want +got):\n%s", text, data, diff)
		}
		if places := path.Pointers(object); len(places) > 1 {
			operations := c.removals(&unstructured.Unstructured{Object: object}, len(places)-1)
			if diff := cmp.Diff(want, patched(t, mustEncode(t, operations), object)); len(operations) != 1 || diff != "" {
				t.Fatalf("%q from %s by %d operations (-want +got):\n%s", text, data, len(operations), diff)
			}
		}
		if metadata, _ := got["metadata"].(map[string]any); metadata["uid"] != "u" || metadata["resourceVersion"] != "7" {
			// The path names what every patch begins with.
			return
		}
		if patch, err := c.patch(&unstructured.Unstructured{Object: got}, nil); err != nil || patch != nil {
			t.Fatalf("%q: once it is removed there is %s to send, %v", text, patch, err)
		}
	})
}

func encodedAndDecoded(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	result := map[string]any{}
	if err := utiljson.Unmarshal(data, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// applied returns an object after the patch of a task.
func applied(t *testing.T, c clearField, object map[string]any) map[string]any {
	t.Helper()
	patch, err := c.patch(&unstructured.Unstructured{Object: object}, nil)
	if err != nil {
		t.Fatalf("%q: %v", c.path, err)
	}
	return patched(t, patch, object)
}

// patched returns an object after a JSON patch, nil for none, as kube-apiserver applies
// it.
func patched(t *testing.T, patch []byte, object map[string]any) map[string]any {
	t.Helper()
	data := mustEncode(t, object)
	if patch != nil {
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			t.Fatalf("the patch %s cannot be read: %v", patch, err)
		}
		if len(operations) > maxOperations {
			t.Fatalf("the patch has %d operations", len(operations))
		}
		if data, err = operations.Apply(data); err != nil {
			t.Fatalf("the patch %s cannot be applied: %v", patch, err)
		}
	}
	result := map[string]any{}
	if err := utiljson.Unmarshal(data, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

func mustEncode(t *testing.T, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// naivePart is a key and what follows it: two brackets or braces and what is in them.
var naivePart = regexp.MustCompile(`^([^\[{\]}*/~= .]+)(?:(\[)([^\[\]{}]+)\]|(\{)([^\[\]{}]+)\})?(\.|$)`)

// naiveParts reads a path in another way: each part is a key, "[" or "{" or "", and
// what is in it. It is nil for what is none.
func naiveParts(text string) [][3]string {
	var parts [][3]string
	for dot := "."; dot == "."; {
		m := naivePart.FindStringSubmatch(text)
		if m == nil {
			return nil
		}
		name, value, valued := strings.Cut(m[3], "=")
		if m[2] == "[" && m[3] != "*" && (!valued || name == "" || value == "") {
			return nil
		}
		parts = append(parts, [3]string{m[1], m[2] + m[4], m[3] + m[5]})
		text, dot = text[len(m[0]):], m[6]
	}
	if last := parts[len(parts)-1]; last[1] == "{" && last[2] == "*" {
		return nil
	}
	return parts
}

// naiveRemove removes what the parts lead to, one object after the other.
func naiveRemove(object map[string]any, parts [][3]string) {
	key, kind, in := parts[0][0], parts[0][1], parts[0][2]
	last := len(parts) == 1
	value, ok := object[key]
	if !ok {
		return
	}
	deeper := func(value any) {
		if child, ok := value.(map[string]any); ok && !last {
			naiveRemove(child, parts[1:])
		}
	}
	selected := func(value any) bool {
		name, want, _ := strings.Cut(in, "=")
		fields, ok := value.(map[string]any)
		if !ok {
			return false
		}
		found, ok := fields[name]
		return ok && fmt.Sprintf("%v", found) == want
	}
	entries, isMap := value.(map[string]any)
	elements, isList := value.([]any)
	switch {
	case kind == "" && last, kind == "[" && last && isMap && selected(value):
		delete(object, key)
	case kind == "", kind == "[" && in != "*" && isMap && selected(value):
		deeper(value)
	case kind == "[" && isList:
		kept := []any{}
		for _, element := range elements {
			switch {
			case in == "*" || selected(element):
				if deeper(element); !last {
					kept = append(kept, element)
				}
			default:
				kept = append(kept, element)
			}
		}
		object[key] = kept
	case kind == "{" && isMap && in == "*":
		for _, entry := range entries {
			deeper(entry)
		}
	case kind == "{" && isMap && last:
		delete(entries, in)
	case kind == "{" && isMap:
		deeper(entries[in])
	}
}

// naiveFind returns what the parts lead to, one object after the other.
func naiveFind(object map[string]any, parts [][3]string) (found []any) {
	value, ok := object[parts[0][0]]
	if !ok {
		return nil
	}
	elements, _ := value.([]any)
	entries, isMap := value.(map[string]any)
	var selected []any
	switch kind, in := parts[0][1], parts[0][2]; {
	case kind == "":
		selected = []any{value}
	case kind == "[" && isMap:
		// A list of one, as a field that is no list any more.
		elements = []any{value}
		fallthrough
	case kind == "[":
		name, want, _ := strings.Cut(in, "=")
		for _, element := range elements {
			fields, _ := element.(map[string]any)
			if field, ok := fields[name]; in == "*" && !isMap || in != "*" && ok && fmt.Sprint(field) == want {
				selected = append(selected, element)
			}
		}
	case in == "*":
		selected = slices.Collect(maps.Values(entries))
	default:
		if entry, ok := entries[in]; ok {
			selected = []any{entry}
		}
	}
	if len(parts) == 1 {
		return selected
	}
	for _, one := range selected {
		if child, ok := one.(map[string]any); ok {
			found = append(found, naiveFind(child, parts[1:])...)
		}
	}
	return found
}

// FuzzMatcher parses what WaitForNone waits for, and finds it in another way, too. What
// it does not understand is an error.
func FuzzMatcher(f *testing.F) {
	foundMatcher(f)
	for _, seed := range []string{"spec.a", "spec.a=b", "spec.a=", "spec[a=b]=c", "spec.list[*].x=y=z", "spec.list[x=y=z]", "spec{a}=b", "spec{*}.x", "=", "a=b}", "a{b=c}"} {
		f.Add(seed, []byte(`{"spec":{"a":"b","list":[{"x":"y=z"}]}}`))
	}
	f.Fuzz(func(t *testing.T, text string, data []byte) {
		m, err := parseMatcher(text)
		field, value, valued := text, "", false
		if at := strings.LastIndexByte(text, '='); at > strings.LastIndexAny(text, "]}") {
			field, value, valued = text[:at], text[at+1:], true
		}
		parts := naiveParts(field)
		if (err == nil) != (parts != nil) {
			t.Fatalf("%q: the error is %v, and the parts are %q", text, err, parts)
		}
		if err != nil {
			if !strings.Contains(err.Error(), strconv.Quote(field)) {
				t.Fatalf("%q: the error %q does not name it", text, err)
			}
			return
		}
		object := map[string]any{}
		if utiljson.Unmarshal(data, &object) != nil {
			return
		}
		found := slices.ContainsFunc(naiveFind(object, parts), func(one any) bool {
			return one != nil && (!valued || fmt.Sprint(one) == value)
		})
		if m.matches(object) != found {
			t.Fatalf("%q matches %s: %t, want %t", text, data, !found, found)
		}
	})
}

// FuzzCheckpoint begins an attempt with whatever the status has for a checkpoint: it
// is one that such an attempt wrote, or is not used.
func FuzzCheckpoint(f *testing.F) {
	foundCheckpoint(f)
	for _, seed := range []string{"", "250 eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ", "250", "250 ", " x", "-5 x", "9223372036854775808 x", "+1 x", "0x10 y", "1  y"} {
		f.Add(seed, int64(3))
	}
	f.Fuzz(func(t *testing.T, text string, total int64) {
		tracked := newProgressTracker(Attempt{Last: Progress{Checkpoint: text, Total: total}}, apiTokens)
		if tracked.from == "" {
			if tracked.progress != (Progress{}) {
				t.Fatalf("%q: the attempt restarts and has done %+v", text, tracked.progress)
			}
			return
		}
		if tracked.progress.Done < 0 {
			t.Fatalf("%q: %d objects are done", text, tracked.progress.Done)
		}
		again := newProgressTracker(Attempt{Last: Progress{Checkpoint: apiTokens.checkpoint(tracked.progress.Done, tracked.from), Total: total}}, apiTokens)
		if again.from != tracked.from || again.progress.Done != tracked.progress.Done {
			t.Fatalf("%q: written and read again it is %d %q", text, again.progress.Done, again.from)
		}
	})
}

// FuzzMigrationName makes names and labels of whatever a feature and a transition
// are called.
func FuzzMigrationName(f *testing.F) {
	foundMigrationName(f)
	for _, feature := range []string{"MaxUnavailableStatefulSet", "a-", "a.", strings.Repeat("a", 253), "", "ä", "a b", "a,b", "!a"} {
		f.Add(feature, "0b5d", "apps", "statefulsets")
	}
	f.Fuzz(func(t *testing.T, feature, transition, group, resource string) {
		m := migrateStorage{resource: schema.GroupResource{Group: group, Resource: resource}}
		if problems := validation.IsDNS1123Subdomain(m.name("ns", Attempt{Feature: feature, TransitionID: transition})); problems != nil {
			t.Fatalf("the name of a migration: %v", problems)
		}
		value := labelOf(feature)
		if problems := validation.IsValidLabelValue(value); problems != nil || value == "" {
			t.Fatalf("feature %q has the label %q: %v", feature, value, problems)
		}
		selector, err := labels.Parse(labels.SelectorFromSet(labels.Set{migrationLabel: value}).String())
		if err != nil || !selector.Matches(labels.Set{migrationLabel: value}) {
			t.Fatalf("feature %q cannot be selected by its label %q: %v", feature, value, err)
		}
		if other := labelOf(feature + "x"); other == value {
			t.Fatalf("features %q and %q have the same label %q", feature, feature+"x", value)
		}
	})
}
