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

package rawobject

import (
	"encoding/json"
	"testing"
)

// TestRemoveFromJSON: all bytes stay that are not removed.
func TestRemoveFromJSON(t *testing.T) {
	for name, tc := range map[string]struct {
		before, path, want string
		removed            int
	}{
		"the first key":                {`{"a":1,"b":2,"c":3}`, "a", `{"b":2,"c":3}`, 1},
		"a key in the middle":          {`{"a":1,"b":2,"c":3}`, "b", `{"a":1,"c":3}`, 1},
		"the last key":                 {`{"a":1,"b":2,"c":3}`, "c", `{"a":1,"b":2}`, 1},
		"the only key":                 {`{"s":{"a":1}}`, "s.a", `{"s":{}}`, 1},
		"null":                         {`{"a":null,"b":2}`, "a", `{"b":2}`, 1},
		"a key that is not there":      {`{"a":1}`, "b", `{"a":1}`, 0},
		"a key of another letter case": {`{"A":1}`, "a", `{"A":1}`, 0},
		"a key that occurs twice":      {`{"a":1,"b":2,"a":3}`, "a", `{"b":2}`, 2},
		"a key with escapes":           {`{"\u0061":1,"b":2}`, "a", `{"b":2}`, 1},
		"numbers, order and unknown keys": {
			"{\"z\":1.50,\"s\":{\"n\":1E400,\"a\":[1,{}],\"m\":-0.0},\"big\":123456789012345678901234567890}\n", "s.a",
			"{\"z\":1.50,\"s\":{\"n\":1E400,\"m\":-0.0},\"big\":123456789012345678901234567890}\n", 1,
		},
		"spaces":                      {"{ \"s\" : {\n  \"a\" : 1 ,\n  \"b\" : 2\n} }", "s.a", "{ \"s\" : {\n  \"b\" : 2\n} }", 1},
		"spaces before the last key":  {"{ \"s\" : {\n  \"a\" : 1 ,\n  \"b\" : 2\n} }", "s.b", "{ \"s\" : {\n  \"a\" : 1\n} }", 1},
		"spaces around the only key":  {"{ \"s\" : {\n  \"a\" : 1\n} }", "s.a", "{ \"s\" : {\n} }", 1},
		"in each element":             {`{"l":[{"a":1},{"b":2},3,null,{"b":1,"a":4}]}`, "l[*].a", `{"l":[{},{"b":2},3,null,{"b":1}]}`, 2},
		"each element":                {`{"l":[1,{"a":2},null],"m":0}`, "l[*]", `{"l":[],"m":0}`, 3},
		"elements with a value":       {`{"l":[{"n":"x"},{"n":"y"},{"n":"x","m":1},{}]}`, "l[n=x]", `{"l":[{"n":"y"},{}]}`, 2},
		"elements with a number":      {`{"l":[{"n":1},{"n":1.0},{"n":"1"},{"n":2}]}`, "l[n=1]", `{"l":[{"n":2}]}`, 3},
		"elements with true":          {`{"l":[{"n":true},{"n":false}]}`, "l[n=true]", `{"l":[{"n":false}]}`, 1},
		"in elements with a value":    {`{"l":[{"n":"x","a":1},{"n":"y","a":1}]}`, "l[n=y].a", `{"l":[{"n":"x","a":1},{"n":"y"}]}`, 1},
		"a struct with a value":       {`{"s":{"n":"x","a":1},"t":1}`, "s[n=x]", `{"t":1}`, 1},
		"in a struct with a value":    {`{"s":{"n":"x","a":1}}`, "s[n=x].a", `{"s":{"n":"x"}}`, 1},
		"a struct with another value": {`{"s":{"n":"x","a":1}}`, "s[n=y].a", `{"s":{"n":"x","a":1}}`, 0},
		"in each entry":               {`{"m":{"x":{"a":1},"y":{"b":1},"z":1}}`, "m{*}.a", `{"m":{"x":{},"y":{"b":1},"z":1}}`, 1},
		"an entry":                    {`{"m":{"a.b/c":"1","d":"2"}}`, "m{a.b/c}", `{"m":{"d":"2"}}`, 1},
		"in an entry":                 {`{"m":{"x":{"a":1},"y":{"a":1}}}`, "m{y}.a", `{"m":{"x":{"a":1},"y":{}}}`, 1},
		"a list where a struct is":    {`{"s":[{"a":1}]}`, "s.a", `{"s":[{"a":1}]}`, 0},
		"a struct where a list is":    {`{"s":{"a":1}}`, "s[*].a", `{"s":{"a":1}}`, 0},
		"a list where a map is":       {`{"s":[{"a":1}]}`, "s{*}.a", `{"s":[{"a":1}]}`, 0},
		"other letters":               {`{"ü":1,"a":"ü\"}"}`, "ü", `{"a":"ü\"}"}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			field := newField(t, nil, tc.path)
			o := parsed(t, []byte(tc.before))
			if has, err := field.Holds(o); err != nil || has != (tc.removed > 0) {
				t.Errorf("holds it: %t, %v", has, err)
			}
			edited, removed, err := field.Remove(o)
			if err != nil || removed != tc.removed || string(edited.Bytes()) != tc.want {
				t.Errorf("got %q, %d, %v, want %q, %d", edited.Bytes(), removed, err, tc.want, tc.removed)
			}
		})
	}
}

// textSeeds are JSON and what is nearly JSON.
var textSeeds = []string{
	`{}`, `{"a":[1,-2.5e+7,true,false,null,"\u00e4\"\\\/\b\f\n\r\t",{}],"b":{"c":[]}}`, ` { } ` + "\n", `{"a":01}`, `{"a":1.}`, `{"a":-}`, `{"a":1e}`,
	`{"a":tru}`, `{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a" 1}`, `{"a":1,}`, `{,}`, `{"a":[1,]}`, `{"a":[}`, `{"a":1}}`, `{a:1}`, "{\"a\":\"\n\"}", `{"a":"`, `{"a`, `{`, `{"a":`, `{"a":"\`,
}

// FuzzText: what is taken for JSON is what encoding/json takes for it.
func FuzzText(f *testing.F) {
	for _, seed := range textSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		at := skipSpace(text, 0)
		want := at < len(text) && text[at] == '{' && json.Valid(text)
		if got := checkText(text) == nil; got != want {
			t.Errorf("%q is a JSON object: got %t, want %t", text, got, want)
		}
	})
}
