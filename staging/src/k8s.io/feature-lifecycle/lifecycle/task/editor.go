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
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Editor removes fields from objects where they are stored, beside the API: two to three
// times as fast as patches, and without admission, whose say over a field ends with the
// field (KEP-3920, section Server flow). Only kube-apiserver has one. It is safe for
// concurrent use.
type Editor interface {
	// Edits gives access to the stored objects of one resource. A *ThroughAPIError means
	// that none of them can be edited where it is stored.
	Edits(ctx context.Context, what FieldEdit) (FieldEdits, error)
	// Search reads the stored objects of a resource once, of one namespace or of all if that
	// is "", and calls found for each search, by its index, that an object matches. It
	// returns the number of objects that it read. A *ThroughAPIError means that the objects
	// have to be read through the API; what was found before does not count then.
	Search(ctx context.Context, resource schema.GroupVersionResource, namespace string, searches []FieldSearch, found func(search int, object FoundObject)) (read int64, err error)
}

// FieldSearch matches objects that have any of some fields.
type FieldSearch struct {
	Fields []SearchedField
	// Uncontrolled leaves out objects that a controller made.
	Uncontrolled bool
}

// SearchedField is one field, in the version of the resource that is searched.
type SearchedField struct {
	Path string
	// Wanted chooses the values that match, as the API shows them; nil means all. It is not
	// called for null.
	Wanted func(value any) bool
	// NotNull leaves out null, which JSON may have. It is set where Wanted is.
	NotNull bool
}

// In returns whether an object, as the API shows it, has the field with a value that
// matches. It is an error if the path cannot be read.
func (f SearchedField) In(object map[string]any) (bool, error) {
	path, err := ParsePath(f.Path)
	if err != nil {
		return false, err
	}
	return !walk(object, path.segments, nil, func(_ *place, value any) bool {
		return value == nil && f.NotNull || f.Wanted != nil && !f.Wanted(value)
	}), nil
}

// FoundObject is a stored object that a search matches.
type FoundObject interface {
	// Namespace, Name and UID are those of the object.
	Namespace() string
	Name() string
	UID() types.UID
}

// FieldEdit is the removal of one field from the objects of a resource.
type FieldEdit struct {
	// Resource is in the version in which Path is written, as for ClearField.
	Resource schema.GroupVersionResource
	Path     string
	// Namespace is the one whose objects are edited, "" for all.
	Namespace string
	// Uncontrolled leaves objects alone that a controller made.
	Uncontrolled bool
	// Manager is the field manager of the flow. An object that an attempt through the API
	// left with notes of it among its managed fields has to be finished through the API.
	Manager string
	// Feature and TransitionID are the origin of the writes, for the audit log.
	Feature, TransitionID string
}

// FieldEdits are the edits of the stored objects of one resource. They are safe for
// concurrent use.
type FieldEdits interface {
	// Page reads some stored objects in the order of their keys, the first behind from, ""
	// for the beginning, and returns the edits of those that have the field. A
	// *ThroughAPIError means that the whole collection has to be cleared through the API.
	Page(ctx context.Context, from string) (EditPage, error)
	// Again returns the edit of the object that is stored under a key now, nil if there is
	// none or it lacks the field.
	Again(ctx context.Context, key string) (*Edit, error)
	// Probe has storage do all of a write, its logs too, but change nothing, and returns
	// how long that took. Writes of other clients wait as long.
	Probe(ctx context.Context) (time.Duration, error)
}

// EditPage are the edits of some stored objects.
type EditPage struct {
	Edits []Edit
	// Objects is the number of objects that were read, and Remaining of those behind them.
	Objects, Remaining int64
	// Next is where the next page begins, "" when there is none.
	Next string
}

// Edit is the removal of a field from one stored object.
type Edit struct {
	Namespace, Name string
	// Key identifies the stored object.
	Key string
	// Write writes the object without the field, if it is still the one that was read;
	// otherwise it returns a conflict (apierrors.IsConflict) and writes nothing. A
	// *ThroughAPIError means that this object has to be written through the API.
	Write func(ctx context.Context) error
}

// ThroughAPIError is returned for what has to be cleared through the API.
type ThroughAPIError struct {
	// Reason is why, in a clause.
	Reason string
}

func (e *ThroughAPIError) Error() string {
	return fmt.Sprintf("only the API can write it: %s", e.Reason)
}

// ThroughAPI returns the task such that kube-apiserver, too, clears the field through the
// API. It is for a field whose removal admission plugins or webhooks have to see, and
// two to three times slower. A task that clears no field is not valid with it.
func (t Task) ThroughAPI() Task {
	if t.invalid != nil {
		return t
	}
	if t.inStorage == nil {
		t.invalid = fmt.Errorf("task %s: ThroughAPI is for tasks that clear a field", t.Name)
		return t
	}
	run, obstacles := t.Run, t.Obstacles
	t.inStorage = func(context.Context, Clients) (bool, error) { return false, nil }
	t.Run = func(ctx context.Context, clients Clients, attempt Attempt) error {
		clients.Editor = nil
		return run(ctx, clients, attempt)
	}
	t.Obstacles = func(ctx context.Context, clients Clients) (Outlook, error) {
		clients.Editor = nil
		return obstacles(ctx, clients)
	}
	return t
}

// Way describes how the task changes objects with these clients, "" where there is only
// one way. It follows the Description in plans. The Editor decides about the collection as a
// whole; single objects that it leaves to the API later are not foreseen.
func (t Task) Way(ctx context.Context, clients Clients) (string, error) {
	if t.inStorage == nil || clients.Storage == nil {
		return "", nil
	}
	stored, err := t.inStorage(ctx, clients)
	var blocked *BlockedError
	switch {
	case err != nil && !errors.As(err, &blocked):
		return "", fmt.Errorf("finding out whether storage can be edited: %w", err)
	case stored:
		return "in storage; admission and webhooks are not called", nil
	default:
		// The API blocks the task, too, in a version that it does not serve.
		return "through the API", nil
	}
}
