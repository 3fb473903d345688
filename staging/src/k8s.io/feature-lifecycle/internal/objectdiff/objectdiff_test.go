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

package objectdiff

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestBeside(t *testing.T) {
	before := object(t, `{"metadata":{"name":"a","resourceVersion":"1","generation":1,"managedFields":[{}]},
		"spec":{"list":[{"x":1},{"x":2,"y":3},{"x":4}],"a/b":{"~":1},"kept":{}},"status":{"observedGeneration":4}}`)
	for name, tc := range map[string]struct {
		pointers []string
		want     string
	}{
		"nothing":            {nil, `{"metadata":{"name":"a"},"spec":{"list":[{"x":1},{"x":2,"y":3},{"x":4}],"a/b":{"~":1}}}`},
		"fields of elements": {[]string{"/spec/list/0/x", "/spec/list/1/x", "/spec/list/2/x"}, `{"metadata":{"name":"a"},"spec":{"list":[{},{"y":3},{}],"a/b":{"~":1}}}`},
		"elements":           {[]string{"/spec/list/0", "/spec/list/2"}, `{"metadata":{"name":"a"},"spec":{"list":[{"x":2,"y":3}],"a/b":{"~":1}}}`},
		"all":                {[]string{"/spec/list/0", "/spec/list/1", "/spec/list/2", "/spec/a~1b/~0"}, `{"metadata":{"name":"a"}}`},
		"what is not there":  {[]string{"/spec/none/x", "/spec/list/9", "/spec/list/x", "/metadata/name/x"}, `{"metadata":{"name":"a"},"spec":{"list":[{"x":1},{"x":2,"y":3},{"x":4}],"a/b":{"~":1}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			copied := object(t, string(mustMarshal(t, before)))
			if diff := cmp.Diff(object(t, tc.want), Beside(before, tc.pointers)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(copied, before); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
		})
	}
	if got := Beside(map[string]any{"spec": map[string]any{}}, nil); got != nil {
		t.Errorf("got %v of an object without anything", got)
	}
}

func mustMarshal(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestPaths(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b string
		want []string
	}{
		"the same":       {`{"a":[1,{"b":null}]}`, `{"a":[1,{"b":null}]}`, nil},
		"a value":        {`{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":3}}`, []string{"/a/c"}},
		"an object":      {`{"a":1}`, `{"a":1,"z/~":{"b":1}}`, []string{"/z~1~0"}},
		"an element":     {`{"a":[{"b":1},{"b":2}]}`, `{"a":[{"b":1},{"b":3}]}`, []string{"/a/1/b"}},
		"a longer list":  {`{"a":[1]}`, `{"a":[1,2]}`, []string{"/a"}},
		"other kinds":    {`{"a":[1]}`, `{"a":{"b":1}}`, []string{"/a"}},
		"the first two":  {`{"a":1,"b":1,"c":1}`, `{}`, []string{"/a", "/b"}},
		"null and none":  {`{"a":null}`, `{}`, []string{"/a"}},
		"nothing at all": {`{}`, `{}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Paths(object(t, tc.a), object(t, tc.b), 2)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
