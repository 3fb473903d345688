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
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// Case is one feature with the objects that use it. It is in one cycle at a time: Kit.Use
// notes in it which objects were created, and forgets those of before. Between two calls
// of Use all else only reads it, and may do so concurrently.
type Case struct {
	Feature lifecycle.Feature
	// Fixture is where the objects come from, for messages.
	Fixture string
	// Objects use the feature, in the order in which they are created. A
	// feature that stores nothing has none.
	Objects []*unstructured.Unstructured
	// uids are those of the objects as they were created.
	uids map[types.UID]bool
}

// Parse reads a fixture: YAML documents, each a complete object. A status is
// written through the subresource when the object is created. The text
// uid-of:<Kind>/<name> is the UID of an object before.
func Parse(fixture []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(fixture), 4096)
	for number := 1; ; number++ {
		var content json.RawMessage
		err := documents.Decode(&content)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		if content = bytes.TrimSpace(content); len(content) == 0 || string(content) == "null" {
			continue
		}
		object := &unstructured.Unstructured{}
		// Numbers become what the server's answers have: int64.
		if err := object.UnmarshalJSON(content); err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		if object.GetName() == "" || object.GetAPIVersion() == "" {
			return nil, fmt.Errorf("document %d: an object needs apiVersion, kind and metadata.name", number)
		}
		objects = append(objects, object)
	}
}

// Own returns the objects of a view that the fixture made: its own ones and those
// that controllers made for them.
func (c *Case) Own(view *View) *View {
	own := map[types.UID]bool{}
	for uid := range c.uids {
		own[uid] = true
	}
	// Owners of owners: until nothing is added.
	for added := true; added; {
		added = false
		for _, object := range view.Objects {
			if own[object.GetUID()] {
				continue
			}
			for _, owner := range object.GetOwnerReferences() {
				if own[owner.UID] {
					own[object.GetUID()], added = true, true
				}
			}
		}
	}
	return view.only(func(object *unstructured.Unstructured) bool { return own[object.GetUID()] })
}

// Count returns how many objects of a view use the feature: those that its fixture
// made, with what controllers made of them, or, where a fixture only has
// controllers make something, what the tasks find.
func (c *Case) Count(ctx context.Context, view *View) int64 {
	count := int64(len(c.Own(view).Objects))
	if count > 0 {
		return count
	}
	for _, t := range c.Feature.OnDisable {
		found, err := t.Find(ctx, view.Clients())
		if err != nil || t.Installs {
			continue // Used says so, and what is to be installed uses nothing.
		}
		for _, resource := range found {
			count += resource.Count
		}
	}
	return count
}

// Used returns what the fixture lacks: every task that a transition to Off has must
// find something of it, or nothing is proved by its end. What no other case made
// counts, too: some features have the system itself make objects, or install them
// when they are turned on (task.Apply), and need no fixture. A task that installs
// something has to find nothing. A field that this version does not have is in no fixture
// (task.ClearRemovedField).
func (c *Case) Used(ctx context.Context, view *View, others ...*Case) []string {
	var problems []string
	own := c.Own(view).with(view.withoutAll(others))
	for _, t := range c.Feature.OnDisable {
		found, err := t.Find(ctx, own.Clients())
		switch {
		case err != nil:
			problems = append(problems, fmt.Sprintf("%s: task %s cannot look for what it removes: %v", c.Feature.Name, t.Name, err))
		case t.Installs || t.Removed != nil || len(found) > 0:
		case len(c.Objects) == 0:
			problems = append(problems, fmt.Sprintf("%s: task %s finds nothing, and there is no fixture; write objects that use the feature, and have %s, to %s", c.Feature.Name, t.Name, cmp.Or(fields(t), "what the task is for"), cmp.Or(c.Fixture, "one")))
		default:
			problems = append(problems, fmt.Sprintf("%s: task %s finds nothing of the fixture; add an object to %s that has %s, or remove the task if the server does not store that (%s)",
				c.Feature.Name, t.Name, c.Fixture, cmp.Or(fields(t), "what the task is for"), own.describe(t)))
		}
	}
	return problems
}

// Left returns what is left of the feature in a view, and what is not as its tasks install
// it. Count is of what is left alone.
func (c *Case) Left(ctx context.Context, view *View) (count int64, problems []string) {
	for _, t := range c.Feature.OnDisable {
		found, err := t.Find(ctx, view.Clients())
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: task %s cannot look for what is left: %v", c.Feature.Name, t.Name, err))
		}
		for _, left := range found {
			if t.Installs {
				problems = append(problems, fmt.Sprintf("%s: %d %s are not as task %s installs them: %s",
					c.Feature.Name, left.Count, left.Resource, t.Name, strings.Join(left.Examples, ", ")))
				continue
			}
			count += left.Count
			problems = append(problems, fmt.Sprintf("%s: %d %s still have what task %s looks after: %s",
				c.Feature.Name, left.Count, left.Resource, t.Name, strings.Join(left.Examples, ", ")))
		}
	}
	return count, problems
}

// fields describes what a task reads, for people.
func fields(t task.Task) string {
	var texts []string
	for _, field := range t.Fields {
		texts = append(texts, strings.TrimSpace(field.Resource.String()+" "+field.Path))
	}
	return strings.Join(texts, " or ")
}
