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

package phrase

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 objects are", 1: "1 object is", 2: "2 objects are", 11: "11 objects are"} {
		if got := Count(n, "object is", "objects are"); got != want {
			t.Errorf("Count says %q, want %q", got, want)
		}
	}
}

func TestObjects(t *testing.T) {
	resource := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	for n, want := range map[int64]string{1: "1 object of widgets.example.com refuses", 2: "2 objects of widgets.example.com refuse"} {
		if got := Objects(n, resource, "refuses", "refuse"); got != want {
			t.Errorf("Objects says %q, want %q", got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for text, want := range map[string]string{"": "", "four": "four", "fives": "five…", "abcé": "abc…", "éé": "éé"} {
		if got := Cut(text, 4); got != want {
			t.Errorf("%q is cut to %q, want %q", text, got, want)
		}
	}
}
