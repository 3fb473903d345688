/*
Copyright 2026 The Kubernetes Authors.

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
	"testing"
)

type element struct {
	name string
	on   bool
}

// same is true for lists that are one in memory.
func same(a, b []element) bool { return &a[0] == &b[0] && len(a) == len(b) }

func TestEqualListsAreOne(t *testing.T) {
	lists := NewLists[element]()
	first := lists.Of(append(make([]element, 0, 10), element{"A", true}, element{"B", false}))
	if cap(first) != len(first) {
		t.Error("who appends to a list would change others")
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

// TestFewListsAreKept: those that come and go take no memory.
func TestFewListsAreKept(t *testing.T) {
	lists := NewLists[element]()
	old := lists.Of([]element{{"old", true}})
	for i := range 2 * kept {
		lists.Of([]element{{fmt.Sprint(i), true}})
	}
	if n := lists.known.Len(); n != kept {
		t.Errorf("%d lists are known, want %d", n, kept)
	}
	if got := lists.Of(slices.Clone(old)); same(got, old) {
		t.Error("a list that nobody asked for is known still")
	}
}
