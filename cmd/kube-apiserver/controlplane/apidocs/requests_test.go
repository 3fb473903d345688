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

package apidocs

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	genericfeatures "k8s.io/apiserver/pkg/features"
	"k8s.io/component-base/featuregate"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/features"
)

// TestRequestFields: the complete documents have each of them, and have none while
// the gates are off.
func TestRequestFields(t *testing.T) {
	want := []string{"?ignoreStoreReadErrorWithClusterBreakingPotential", "?shardSelector", "?stream", metaV1 + "ListMeta.shardInfo"}
	const unsafeDeletion = metaV1 + "DeleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential"
	gates := []featuregate.Feature{genericfeatures.ShardedListAndWatch, genericfeatures.AllowUnsafeMalformedObjectDeletion, features.PodLogsQuerySplitStreams}
	documentV2, documentsV3 := completeV2(t), completeV3(t)
	guards, inV3 := newGuards(t), map[string]bool{}
	check := func(name string, cuts Cuts, document func(Cuts) any) (found []string) {
		for _, c := range cuts.While(except(true, gates...)) {
			if c.about != object {
				found = append(found, c.String())
			}
		}
		for _, c := range cuts.While(except(false, gates...)) {
			if c.about != object {
				t.Errorf("%s: %s goes while its gate is on", name, c)
			}
		}
		after := asJSON(t, document(cuts.While(except(true, gates...))))
		for _, left := range []string{
			`"shardInfo":`, `"name":"shardSelector"`, "#/parameters/shardSelector", `"shardSelector-`,
			`"name":"ignoreStoreReadError`, "#/parameters/ignoreStoreReadError", `"ignoreStoreReadErrorWithClusterBreakingPotential-`,
		} {
			if strings.Contains(after, left) {
				t.Errorf("%s still has %s", name, left)
			}
		}
		if !strings.Contains(after, "remainingItemCount") && strings.Contains(name, "v2") {
			t.Errorf("%s has lost other fields of lists", name)
		}
		return found
	}
	got := check("v2", guards.OfV2(documentV2), func(c Cuts) any { return c.V2(documentV2) })
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("v2 (-want +got):\n%s", diff)
	}
	for name, document := range documentsV3 {
		for _, found := range check(name, guards.OfV3(document), func(c Cuts) any { return c.V3(document) }) {
			inV3[found] = true
		}
	}
	for _, field := range append(want, unsafeDeletion) {
		if !inV3[field] {
			t.Errorf("no document of v3 loses %s", field)
		}
	}
}

// TestParametersAnywhere covers parameters of paths, of operations, and shared
// ones.
func TestParametersAnywhere(t *testing.T) {
	const parameters = `[{"name": "shardSelector", "in": "query"}, {"name": "shardSelector", "in": "header"}, {"name": "limit", "in": "query"}, {"$ref": "PREFIX/a"}, {"$ref": "PREFIX/b"}]`
	const left = `[{"name": "shardSelector", "in": "header"}, {"name": "limit", "in": "query"}, {"$ref": "PREFIX/b"}]`
	const shared = `{"a": {"name": "shardSelector", "in": "query"}, "b": {"name": "limit", "in": "query"}}`
	const sharedLeft = `{"b": {"name": "limit", "in": "query"}}`
	text := func(form, prefix, parameters, shared string) string {
		path := `{"parameters": ` + parameters
		for _, verb := range strings.Fields("get put post delete options head patch") {
			path += `, "` + verb + `": {"responses": {}, "parameters": ` + parameters + `}`
		}
		text := strings.NewReplacer("PATHS", `{"/apis/example.com/v1/widgets": `+path+`}}`, "SHARED", shared).Replace(form)
		return strings.ReplaceAll(text, "PREFIX", prefix)
	}
	t.Run("v2", func(t *testing.T) {
		const form, prefix = `{"swagger": "2.0", "info": {"title": "t", "version": "v"}, "definitions": {}, "parameters": SHARED, "paths": PATHS}`, "#/parameters"
		document, want := &spec.Swagger{}, &spec.Swagger{}
		read(t, document, text(form, prefix, parameters, shared))
		read(t, want, text(form, prefix, left, sharedLeft))
		before, cuts := asJSON(t, document), newGuards(t).OfV2(document)
		if diff := cmp.Diff(asMap(t, want), asMap(t, cuts.While(off).V2(document))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(before, asJSON(t, cuts.While(on).V2(document))); diff != "" {
			t.Errorf("while the gate is on (-want +got):\n%s", diff)
		}
		if asJSON(t, document) != before {
			t.Error("the document that was given changed")
		}
	})
	t.Run("v3", func(t *testing.T) {
		const form, prefix = `{"openapi": "3.0.0", "info": {"title": "t", "version": "v"}, "components": {"parameters": SHARED}, "paths": PATHS}`, "#/components/parameters"
		document, want := &spec3.OpenAPI{}, &spec3.OpenAPI{}
		read(t, document, text(form, prefix, parameters, shared))
		read(t, want, text(form, prefix, left, sharedLeft))
		before, cuts := asJSON(t, document), newGuards(t).OfV3(document)
		if diff := cmp.Diff(asMap(t, want), asMap(t, cuts.While(off).V3(document))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(before, asJSON(t, cuts.While(on).V3(document))); diff != "" {
			t.Errorf("while the gate is on (-want +got):\n%s", diff)
		}
		if asJSON(t, document) != before {
			t.Error("the document that was given changed")
		}
	})
}

func read(t *testing.T, into any, text string) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}
