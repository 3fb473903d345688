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
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/component-base/featuregate"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	upstreamopenapi "k8s.io/kubernetes/pkg/generated/openapi"
)

// upstreamDir returns the directory from which the build reads upstream.
var upstreamDir = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	return strings.TrimSpace(string(out)), err
})

func readUpstream(t testing.TB, into any, path ...string) {
	t.Helper()
	dir, err := upstreamDir()
	if err != nil {
		t.Fatalf("finding upstream's source with go list: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(append([]string{dir, "api", "openapi-spec"}, path...)...))
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// completeV2 returns the document of a server with every version of every API. It
// has the paths that upstream publishes in its source, and the types of this
// build, with enums.
func completeV2(t testing.TB) *spec.Swagger {
	t.Helper()
	document := &spec.Swagger{}
	readUpstream(t, document, "swagger.json")
	definitions := upstreamopenapi.GetOpenAPIDefinitions(func(name string) spec.Ref {
		return spec.MustCreateRef("#/definitions/" + name)
	})
	for name := range document.Definitions {
		if definition, ok := definitions[name]; ok {
			document.Definitions[name] = definition.Schema
			if v2, ok := definition.Schema.Extensions[common.ExtensionV2Schema].(spec.Schema); ok {
				document.Definitions[name] = v2
			}
		}
	}
	return document
}

// completeV3 are the documents by the name of their file.
func completeV3(t *testing.T) map[string]*spec3.OpenAPI {
	t.Helper()
	dir, err := upstreamDir()
	if err != nil {
		t.Fatalf("finding upstream's source with go list: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "api", "openapi-spec", "v3", "*.json"))
	if err != nil || len(files) < 40 {
		t.Fatalf("%d documents of OpenAPI v3 in %s: %v", len(files), dir, err)
	}
	documents := map[string]*spec3.OpenAPI{}
	for _, file := range files {
		document := &spec3.OpenAPI{}
		readUpstream(t, document, "v3", filepath.Base(file))
		documents[filepath.Base(file)] = document
	}
	return documents
}

func knownGates(t *testing.T) featuregate.MutableVersionedFeatureGate {
	t.Helper()
	gates, err := catalog.Gates()
	if err != nil {
		t.Fatal(err)
	}
	return gates
}

func newGuards(t *testing.T) *Guards {
	t.Helper()
	return NewGuards(catalog.All(), knownGates(t).Dependencies())
}

func on(featuregate.Feature) bool  { return true }
func off(featuregate.Feature) bool { return false }

// except is a value for all gates but some.
func except(value bool, gates ...featuregate.Feature) func(featuregate.Feature) bool {
	return func(gate featuregate.Feature) bool { return slices.Contains(gates, gate) != value }
}

func names(cuts Cuts) []string {
	var result []string
	for _, c := range cuts {
		result = append(result, c.String())
	}
	return result
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func asMap(t *testing.T, value any) map[string]any {
	t.Helper()
	result := map[string]any{}
	if err := json.Unmarshal([]byte(asJSON(t, value)), &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// TestDefinitionsKeptWhileGatesAreOn, and documents that are given stay as they are.
func TestDefinitionsKeptWhileGatesAreOn(t *testing.T) {
	guards, document := newGuards(t), completeV2(t)
	before := asJSON(t, document)
	cuts := guards.OfV2(document)
	if now := cuts.While(on); len(now) > 0 {
		t.Errorf("with all gates on these are cut: %v", now)
	}
	if diff := cmp.Diff(before, asJSON(t, cuts.While(on).V2(document))); diff != "" {
		t.Errorf("with all gates on the document differs (-want +got):\n%s", diff)
	}
	if asJSON(t, cuts.While(off).V2(document)) == before {
		t.Error("with all gates off nothing is cut")
	}
	if asJSON(t, document) != before {
		t.Error("cutting changed the document that was given")
	}
}

// TestDefinitionsStayComplete: server-side apply has its models from the same
// definitions.
func TestDefinitionsStayComplete(t *testing.T) {
	definitions := func() map[string]common.OpenAPIDefinition {
		return upstreamopenapi.GetOpenAPIDefinitions(func(name string) spec.Ref { return spec.MustCreateRef("#/components/schemas/" + name) })
	}
	shared := definitions()
	// As kube-openapi's builder3 does, which copies the schema and no more.
	document := &spec3.OpenAPI{}
	readUpstream(t, document, "v3", "apis__apps__v1_openapi.json")
	for name := range document.Components.Schemas {
		if definition, ok := shared[name]; ok {
			document.Components.Schemas[name] = &definition.Schema
		}
	}
	cut := newGuards(t).OfV3(document).While(off).V3(document)
	const kind = "io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy"
	if _, ok := cut.Components.Schemas[kind].Properties["maxUnavailable"]; ok {
		t.Error("the field is in the document while its gate is off")
	}
	for name, definition := range definitions() {
		if want, got := asJSON(t, definition.Schema), asJSON(t, shared[name].Schema); want != got {
			t.Errorf("definition %s changed (-want +got):\n%s", name, cmp.Diff(want, got))
		}
	}
}

// TestOtherDefinitionsKept compares the documents with all gates off with the
// complete ones, without the named properties.
func TestOtherDefinitionsKept(t *testing.T) {
	guards := newGuards(t)
	check := func(t *testing.T, name string, before, after any, schemas func(document map[string]any) map[string]any, cuts Cuts) {
		want := asMap(t, before)
		removeParameters(want, cuts.parameters().UnsortedList())
		cuts = slices.DeleteFunc(slices.Clone(cuts), func(c Cut) bool { return c.about == parameter })
		for _, c := range cuts {
			definition := schemas(want)[c.definition].(map[string]any)
			properties, _ := definition["properties"].(map[string]any)
			if _, ok := properties[c.key]; !ok {
				if slices.Contains(names(cuts), Cut{property: c.property}.String()) {
					continue // a value of what is gone
				}
				t.Errorf("%s: the complete document has no %s", name, c)
			}
			if c.value == "" {
				if delete(properties, c.key); len(properties) == 0 {
					delete(definition, "properties")
				}
			} else if enum, ok := properties[c.key].(map[string]any)["enum"].([]any); ok {
				properties[c.key].(map[string]any)["enum"] = slices.DeleteFunc(enum, func(v any) bool { return v == c.value })
				delete(properties[c.key].(map[string]any), "description")
			}
		}
		got := asMap(t, after)
		valueOf := func(c Cut) map[string]any {
			properties, _ := schemas(got)[c.definition].(map[string]any)["properties"].(map[string]any)
			value, _ := properties[c.key].(map[string]any)
			return value
		}
		for _, c := range cuts {
			if description, ok := valueOf(c)["description"].(string); ok && c.value != "" && strings.Contains(description, "- `\""+c.value+"\"`") {
				t.Errorf("%s: the description of %s lists the value:\n%s", name, c, description)
			}
		}
		for _, c := range cuts {
			if c.value != "" {
				delete(valueOf(c), "description")
			}
		}
		// The one list whose keys have a guarded field.
		for definition, s := range schemas(want) {
			if strings.HasSuffix(definition, ".ResourceClaimStatus") {
				if devices, ok := s.(map[string]any)["properties"].(map[string]any)["devices"].(map[string]any); ok {
					t.Errorf("%s: %s has devices: %v", name, definition, devices)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s differs in more than what is cut (-want +got):\n%s", name, diff)
		}
	}
	document := completeV2(t)
	cuts := guards.OfV2(document).While(off)
	if len(cuts) < 100 {
		t.Errorf("only %d cuts: %v", len(cuts), cuts)
	}
	check(t, "v2", document, cuts.V2(document), func(d map[string]any) map[string]any { return d["definitions"].(map[string]any) }, cuts)
	inV3 := map[string]bool{}
	for name, document := range completeV3(t) {
		cuts := guards.OfV3(document).While(off)
		if len(cuts) == 0 {
			continue
		}
		for _, c := range cuts {
			inV3[c.String()] = true
		}
		check(t, name, document, cuts.V3(document), func(d map[string]any) map[string]any {
			return d["components"].(map[string]any)["schemas"].(map[string]any)
		}, cuts)
	}
	for _, c := range cuts {
		if c.value == "" && !inV3[c.String()] {
			t.Errorf("%s is cut in OpenAPI v2 and in no document of v3", c)
		}
	}
}

// removeParameters removes query parameters, wherever they are.
func removeParameters(from any, names []string) {
	isGone := func(p any) bool {
		fields, _ := p.(map[string]any)
		name, _ := fields["name"].(string)
		ref, _ := fields["$ref"].(string)
		shared, _, _ := strings.Cut(strings.TrimPrefix(ref, "#/parameters/"), "-")
		return slices.Contains(names, name) || slices.Contains(names, shared)
	}
	fields, _ := from.(map[string]any)
	for key, value := range fields {
		switch list := value.(type) {
		case []any:
			if key == "parameters" {
				if fields[key] = slices.DeleteFunc(list, isGone); len(fields[key].([]any)) == 0 {
					delete(fields, key)
				}
			}
		case map[string]any:
			if key == "parameters" {
				maps.DeleteFunc(list, func(_ string, p any) bool { return isGone(p) })
			}
			removeParameters(list, names)
		}
	}
}

// TestValuesOfEnums: which values go, where the field stays.
func TestValuesOfEnums(t *testing.T) {
	cuts := newGuards(t).OfV2(completeV2(t))
	var got []string
	for _, c := range cuts {
		if c.value != "" {
			got = append(got, c.String())
		}
	}
	want := []string{
		"io.k8s.api.apps.v1.StatefulSetUpdateStrategy.type=Recreate",
		"io.k8s.api.core.v1.HTTPGetAction.protocol=HTTP2",
		"io.k8s.api.core.v1.SecurityContext.procMount=Unmasked",
		"io.k8s.api.core.v1.Toleration.operator=Gt",
		"io.k8s.api.core.v1.Toleration.operator=Lt",
		"io.k8s.api.scheduling.v1alpha3.CompositePodGroupSpec.preemptionPolicy=Never",
		"io.k8s.api.scheduling.v1alpha3.PodGroupSpec.preemptionPolicy=Never",
		"io.k8s.api.scheduling.v1beta1.PodGroupSpec.preemptionPolicy=Never",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values that belong to gates (-want +got):\n%s", diff)
	}
}

// BenchmarkCut measures the work of a server at its start, for the larger
// document.
func BenchmarkCut(b *testing.B) {
	gates, err := catalog.Gates()
	if err != nil {
		b.Fatal(err)
	}
	document := completeV2(b)
	for b.Loop() {
		NewGuards(catalog.All(), gates.Dependencies()).OfV2(document).While(off).V2(document)
	}
}
