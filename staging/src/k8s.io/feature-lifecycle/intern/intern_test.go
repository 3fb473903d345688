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

package intern

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

type element struct {
	name string
	on   bool
}

// same returns true for lists that share their memory.
func same(a, b []element) bool { return &a[0] == &b[0] && len(a) == len(b) }

func TestEqualListsShareMemory(t *testing.T) {
	lists := NewLists[element]()
	first := lists.Of(append(make([]element, 0, 10), element{"A", true}, element{"B", false}))
	if cap(first) != len(first) {
		t.Error("an append to a list would change others")
	}
	if got := lists.Of(slices.Clone(first)); !same(got, first) {
		t.Error("an equal list is another one")
	}
	for what, list := range map[string][]element{
		"another value": {{"A", false}, {"B", false}},
		"another order": {{"B", false}, {"A", true}},
		"a part":        {{"A", true}},
		"more":          {{"A", true}, {"B", false}, {"C", false}},
	} {
		if got := lists.Of(list); !slices.Equal(got, list) || same(got[:1], first[:1]) {
			t.Errorf("%s: got %v for %v", what, got, list)
		}
		if Hash(list) == Hash(first) {
			t.Errorf("%s has the same hash", what)
		}
	}
	if got := lists.Of(nil); got != nil {
		t.Errorf("no list became %v", got)
	}
}

// TestRarelyUsedListsAreForgotten: lists that come and go take no memory.
func TestRarelyUsedListsAreForgotten(t *testing.T) {
	lists := NewLists[element]()
	old := lists.Of([]element{{"old", true}})
	for i := range 2 * kept {
		lists.Of([]element{{fmt.Sprint(i), true}})
	}
	if n := lists.known.Len(); n != kept {
		t.Errorf("%d lists are known, want %d", n, kept)
	}
	if got := lists.Of(slices.Clone(old)); same(got, old) {
		t.Error("a list that was not used is still known")
	}
	if lists.held != kept {
		t.Errorf("%d elements are held, want %d", lists.held, kept)
	}
}

// long returns a list that no other is equal to.
func long(n, length int) []element {
	list := make([]element, length)
	for i := range list {
		list[i].name = fmt.Sprint(n, ".", i)
	}
	return list
}

// TestElementsOfKnownListsAreBounded: a process that reports as much as possible, and
// something else each time, does not take memory for all of it.
func TestElementsOfKnownListsAreBounded(t *testing.T) {
	const length = 1000
	lists := NewLists[element]()
	often := lists.Of([]element{{"often", true}})
	seldom := lists.Of([]element{{"seldom", true}})
	var last []element
	for i := range 3 * elements / length {
		last = lists.Of(long(i, length))
		if got := lists.Of(slices.Clone(often)); !same(got, often) {
			t.Fatalf("after %d others a list that is used is not known", i)
		}
		if lists.held > elements {
			t.Fatalf("%d elements are held", lists.held)
		}
	}
	if n, want := lists.known.Len(), elements/length; n != want {
		t.Errorf("%d lists are known, want %d", n, want)
	}
	if got := lists.Of(slices.Clone(last)); !same(got, last) {
		t.Error("the last list is not known")
	}
	if got := lists.Of(slices.Clone(seldom)); same(got, seldom) {
		t.Error("a list that was not used is still known")
	}
}

// TestTooLongListIsNotKnown, and evicts no other list.
func TestTooLongListIsNotKnown(t *testing.T) {
	lists := NewLists[element]()
	small, most := lists.Of([]element{{"A", true}}), lists.Of(long(1, largest))
	tooLong := long(2, largest+1)
	if got := lists.Of(tooLong); !same(got, tooLong) {
		t.Error("another list came back")
	}
	if got := lists.Of(slices.Clone(tooLong)); same(got, tooLong) {
		t.Error("the list is known")
	}
	for _, list := range [][]element{small, most} {
		if got := lists.Of(slices.Clone(list)); !same(got, list) {
			t.Errorf("a list of %d elements is not known any more", len(list))
		}
	}
}

// TestListsOfSameHashReplaceEachOther, and replaced lists are not counted.
func TestListsOfSameHashReplaceEachOther(t *testing.T) {
	lists := NewLists[element]()
	list := long(1, 10)
	lists.known.Add(Hash(list), long(2, 3))
	lists.held = 3
	if got := lists.Of(list); !same(got, list) {
		t.Error("another list came back")
	}
	if lists.held != 10 || lists.known.Len() != 1 {
		t.Errorf("%d elements of %d lists are held", lists.held, lists.known.Len())
	}
}

// TestListsAreSafeForConcurrentUse while lists come and go.
func TestListsAreSafeForConcurrentUse(t *testing.T) {
	lists := NewLists[element]()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := range elements / 500 {
				lists.Of(long(i, 1000))
			}
		})
	}
	group.Wait()
	if want := elements / 1000; lists.known.Len() != want || lists.held != elements {
		t.Errorf("%d elements of %d lists are held, want %d of %d", lists.held, lists.known.Len(), elements, want)
	}
}
