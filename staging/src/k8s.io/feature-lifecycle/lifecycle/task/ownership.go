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
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// fieldOwner is one entry of an object's managed fields.
//
// A server gives a writer ownership of whatever the write changes. For what it treats
// as one value, such as a list without x-kubernetes-list-type, that is the whole, even
// if one field of one element is removed. Managed fields in the same request do not
// help: the change is removed from them, too (Update in structured-merge-diff's
// merge/update.go). So a second write returns what the first one takes. Until then the
// entries of the owners themselves record it, below a field that no object has: the
// name of the taker. These records are not taken, so any later attempt can finish what
// a crash has left.
type fieldOwner struct {
	metav1.ManagedFieldsEntry
	fields *fieldpath.Set
}

// ownersOf decodes managed fields. It returns none if one entry cannot be read: servers
// do the same (decodeLiveOrNew in apimachinery's pkg/util/managedfields/internal).
func ownersOf(entries []metav1.ManagedFieldsEntry) []fieldOwner {
	var owners []fieldOwner
	for _, entry := range entries {
		fields := fieldpath.NewSet()
		if entry.FieldsV1 != nil && fields.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			return nil
		}
		owners = append(owners, fieldOwner{entry, fields})
	}
	return owners
}

// entriesOf encodes managed fields, never as nil: null would not be read as an empty list.
func entriesOf(owners []fieldOwner) ([]metav1.ManagedFieldsEntry, error) {
	entries := []metav1.ManagedFieldsEntry{}
	for _, owner := range owners {
		raw, err := owner.fields.ToJSON()
		if err != nil {
			return nil, fmt.Errorf("encoding the managed fields of %s: %w", owner.Manager, err)
		}
		entry := owner.ManagedFieldsEntry
		entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
		entries = append(entries, entry)
	}
	return entries, nil
}

// same returns true for two entries of one owner (BuildManagerIdentifier in
// apimachinery's pkg/util/managedfields/internal).
func (o fieldOwner) same(other fieldOwner) bool {
	return o.Manager == other.Manager && o.Operation == other.Operation && o.Subresource == other.Subresource &&
		(o.APIVersion == other.APIVersion || o.Operation == metav1.ManagedFieldsOperationApply)
}

// isTaker returns true for the entry that writes of tasks leave. Tasks own what they
// apply, and nothing that they only write.
func isTaker(entry metav1.ManagedFieldsEntry, taker string) bool {
	return entry.Manager == taker && entry.Operation == metav1.ManagedFieldsOperationUpdate
}

// noteTaken notes at each owner what a write below the path would take from it. It returns
// nil if there is nothing. The owners given are not changed.
func noteTaken(owners []fieldOwner, path Path, taker string) (noted []fieldOwner) {
	note := fieldpath.PathElement{FieldName: &taker}
	for i, owner := range owners {
		taken := fieldpath.NewSet()
		owner.fields.Leaves().Iterate(func(leaf fieldpath.Path) {
			if path.relation(leaf) == isAbove {
				taken.Insert(append(fieldpath.Path{note}, leaf...))
			}
		})
		if taken.Empty() {
			continue
		}
		if noted == nil {
			noted = slices.Clone(owners)
		}
		noted[i].fields = owner.fields.Union(taken)
	}
	return noted
}

// giveBack returns to the owners what is recorded with them and still with the taker,
// which ends with nothing. What others have taken since stays with them.
func giveBack(owners []fieldOwner, taker string) []fieldOwner {
	with := fieldpath.NewSet()
	for _, owner := range owners {
		if isTaker(owner.ManagedFieldsEntry, taker) {
			with = with.Union(owner.fields)
		}
	}
	note := fieldpath.PathElement{FieldName: &taker}
	var left []fieldOwner
	for _, owner := range owners {
		if isTaker(owner.ManagedFieldsEntry, taker) {
			continue
		}
		back := owner.fields.WithPrefix(note).Intersection(with)
		owner.fields = owner.fields.RecursiveDifference(fieldpath.NewSet(fieldpath.Path{note})).Union(back)
		if !owner.fields.Empty() {
			left = append(left, owner)
		}
	}
	return left
}

// withoutField returns the owners before a write without what was removed with the
// field, as the owners after it show. All else that they lost is still theirs.
func withoutField(before, after []fieldOwner, path Path) []fieldOwner {
	var wanted []fieldOwner
	for _, owner := range before {
		lost := owner.fields
		if i := slices.IndexFunc(after, owner.same); i >= 0 {
			lost = owner.fields.Difference(after[i].fields)
		}
		gone := fieldpath.NewSet()
		lost.Iterate(func(at fieldpath.Path) {
			if path.relation(at) == isBelow {
				gone.Insert(at)
			}
		})
		owner.fields = owner.fields.Difference(gone)
		if !owner.fields.Empty() {
			wanted = append(wanted, owner)
		}
	}
	return wanted
}

// sameOwners returns true if the same own the same, in any order, whenever that began.
func sameOwners(a, b []fieldOwner) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(owner fieldOwner) bool {
		i := slices.IndexFunc(b, owner.same)
		return i < 0 || !owner.fields.Equals(b[i].fields)
	})
}

// hasTaken returns true for an object of which the taker owns something, or has it
// recorded.
func hasTaken(object *unstructured.Unstructured, taker string) bool {
	return slices.ContainsFunc(rawEntries(object), func(entry map[string]any) bool {
		if entry["manager"] == taker && entry["operation"] == string(metav1.ManagedFieldsOperationUpdate) {
			return true
		}
		fields, _ := entry["fieldsV1"].(map[string]any)
		_, noted := fields["f:"+taker]
		return noted
	})
}

// mayLose returns true if a write below the path in this API version may take something
// from an owner that it does not remove. It is cheap, since most objects need no more.
func mayLose(object *unstructured.Unstructured, path Path, apiVersion string) bool {
	return slices.ContainsFunc(rawEntries(object), func(entry map[string]any) bool {
		fields, _ := entry["fieldsV1"].(map[string]any)
		// In another version it may be another field that changes.
		return entry["apiVersion"] != apiVersion || ownsWhole(fields, path.segments)
	})
}

// ownsWhole returns true if something on the way to the field is owned, and nothing in
// it.
func ownsWhole(fields map[string]any, segments []segment) bool {
	if len(fields) == 0 {
		return true
	}
	children, ok := fields["f:"+segments[0].key].(map[string]any)
	switch {
	case !ok || len(segments) == 1 && segments[0].which == itself:
		return false
	case segments[0].which == itself:
		return ownsWhole(children, segments[1:])
	case len(children) == 0:
		return true
	case len(segments) == 1:
		return false
	}
	for key, child := range children {
		below, _ := child.(map[string]any)
		// The dot is that the list or map itself is owned.
		if key != "." && ownsWhole(below, segments[1:]) {
			return true
		}
	}
	// What is no list is selected as it is.
	return segments[0].which == someElements && ownsWhole(children, segments[1:])
}

// rawEntries returns the managed fields of an object as they were decoded.
func rawEntries(object *unstructured.Unstructured) []map[string]any {
	metadata, _ := object.Object["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	var entries []map[string]any
	for _, item := range list {
		if entry, ok := item.(map[string]any); ok {
			entries = append(entries, entry)
		}
	}
	return entries
}

// relation is where something in managed fields is, compared with a field.
type relation int

const (
	isElsewhere relation = iota
	// isAbove contains the field.
	isAbove
	// isBelow is the field itself, or in it.
	isBelow
)

// relation compares a place in managed fields with the path. Elements of lists are taken
// for any that the path may select.
func (p Path) relation(at fieldpath.Path) relation { return relationOf(p.segments, at) }

func relationOf(segments []segment, at fieldpath.Path) relation {
	switch {
	case len(segments) == 0:
		return isBelow
	case len(at) == 0:
		return isAbove
	case at[0].FieldName == nil || *at[0].FieldName != segments[0].key:
		return isElsewhere
	case segments[0].which == itself:
		return relationOf(segments[1:], at[1:])
	case len(at) == 1:
		return isAbove
	}
	named := at[1].FieldName != nil
	switch segments[0].which {
	case someElements:
		if named {
			return relationOf(segments[1:], at[1:])
		}
		return relationOf(segments[1:], at[2:])
	case eachElement:
		if named {
			return isElsewhere
		}
	case oneEntry:
		if !named || *at[1].FieldName != segments[0].name {
			return isElsewhere
		}
	case eachEntry:
		if !named {
			return isElsewhere
		}
	}
	return relationOf(segments[1:], at[2:])
}
