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

package apispec

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEncodingIsUpstreams: a file of upstream's that is read and written is the
// same, so that a merged file differs in nothing but what was merged.
func TestEncodingIsUpstreams(t *testing.T) {
	output, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	api := filepath.Join(strings.TrimSpace(string(output)), "api")
	var files []string
	for _, pattern := range []string{"openapi-spec/*.json", "openapi-spec/v3/*.json", "discovery/*.json"} {
		matches, err := filepath.Glob(filepath.Join(api, pattern))
		if err != nil || len(matches) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(matches), err)
		}
		files = append(files, matches...)
	}
	for _, file := range files {
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Decode(before)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if after, err := d.Encode(); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s is another one after reading and writing it (%v)", file, err)
		}
	}
}

func document(t *testing.T, text string) Document {
	t.Helper()
	d, err := Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const swagger = `{
	"paths": {
		"/apis/apps/": {"get": {"schema": {"$ref": "#/definitions/Deployment"}}},
		"/apis/features.k8s.io/": {"get": {"schema": {"$ref": "#/definitions/Feature"}, "parameters": [{"$ref": "#/parameters/pretty"}]}}
	},
	"definitions": {
		"Deployment": {"items": {"$ref": "#/definitions/Loop"}},
		"Feature": {"items": [{"$ref": "#/definitions/Meta"}]},
		"Meta": {"properties": {"$ref": {"type": "string"}, "self": {"$ref": "#/definitions/Meta"}}},
		"Loop": {"$ref": "#/definitions/Deployment"}
	},
	"parameters": {"pretty": {"in": "query"}, "limit": {"in": "query"}},
	"info": {"version": "v1.36.3"}
}`

func TestCutSwagger(t *testing.T) {
	d := document(t, swagger)
	d.Unversioned()
	if err := d.CutSwagger(); err != nil {
		t.Fatal(err)
	}
	want := document(t, `{
		"paths": {"/apis/features.k8s.io/": {"get": {"schema": {"$ref": "#/definitions/Feature"}, "parameters": [{"$ref": "#/parameters/pretty"}]}}},
		"definitions": {
			"Feature": {"items": [{"$ref": "#/definitions/Meta"}]},
			"Meta": {"properties": {"$ref": {"type": "string"}, "self": {"$ref": "#/definitions/Meta"}}}
		},
		"parameters": {"pretty": {"in": "query"}},
		"info": {"version": "unversioned"}
	}`)
	if diff := cmp.Diff(asMap(t, want), asMap(t, d)); diff != "" {
		t.Errorf("cut to the group (-want +got):\n%s", diff)
	}
}

// asMap is a document as it is read again, so that typed maps do not matter.
func asMap(t *testing.T, d Document) map[string]any {
	t.Helper()
	data, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return document(t, string(data))
}

func TestUncuttableSpecsFail(t *testing.T) {
	for name, text := range map[string]string{
		"no path of the group":           `{"paths": {"/apis/apps/": {}}}`,
		"a path that only begins so":     `{"paths": {"/apis/features.k8s.io.example.com/": {}}}`,
		"a reference to what is missing": `{"paths": {"/apis/features.k8s.io/": {"$ref": "#/definitions/Feature"}}, "definitions": {}}`,
		"a reference to another section": `{"paths": {"/apis/features.k8s.io/": {"$ref": "#/responses/OK"}}, "responses": {"OK": {}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := document(t, text).CutSwagger(); err == nil {
				t.Error("no error")
			}
		})
	}
	for _, text := range []string{`{}`, `{"items": []}`, `{"items": [{"metadata": {"name": "apps"}}]}`} {
		if err := document(t, text).CutList("items"); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

func TestLists(t *testing.T) {
	const apps, group = `{"metadata": {"name": "apps"}}`, `{"metadata": {"name": "features.k8s.io"}, "versions": []}`
	ours := document(t, `{"items": [`+apps+`, `+group+`]}`)
	if err := ours.CutList("items"); err != nil {
		t.Fatal(err)
	}
	theirs := document(t, `{"items": [`+apps+`]}`)
	if err := theirs.AppendList("items", ours); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(document(t, `{"items": [`+apps+`, `+group+`]}`), theirs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := theirs.AppendList("groups", ours); err == nil {
		t.Error("a list that is not there: no error")
	}
}

const (
	everyGroup = `{"type": "object", "x-kubernetes-group-version-kind": [{"group": "apps", "kind": "DeleteOptions"}]}`
	andOurs    = `{"type": "object", "x-kubernetes-group-version-kind": [{"group": "apps", "kind": "DeleteOptions"}, {"group": "features.k8s.io", "kind": "DeleteOptions"}]}`
)

func TestMergeSwagger(t *testing.T) {
	theirs := document(t, `{"paths": {"/a": 1}, "definitions": {"DeleteOptions": `+everyGroup+`, "Meta": {}}, "parameters": {"limit": {}}}`)
	ours := document(t, `{"paths": {"/f": 2}, "definitions": {"DeleteOptions": `+andOurs+`, "Meta": {}, "Feature": {}}, "parameters": {"limit": {}}}`)
	if err := theirs.MergeSwagger(ours); err != nil {
		t.Fatal(err)
	}
	want := document(t, `{"paths": {"/a": 1, "/f": 2}, "definitions": {"DeleteOptions": `+andOurs+`, "Meta": {}, "Feature": {}}, "parameters": {"limit": {}}}`)
	if diff := cmp.Diff(want, theirs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	ours["definitions"].(map[string]any)["Meta"] = map[string]any{"type": "string"}
	if err := theirs.MergeSwagger(ours); err == nil || !strings.Contains(err.Error(), `"Meta"`) {
		t.Errorf("a type that is another one upstream: %v", err)
	}
}
