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
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/featuregate"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

// naive knows every place of every property of a document by its path, and goes
// through all of them for each question.
type naive struct {
	// paths are the places of each property: resource and path.
	paths map[property][]string
	// guards are the gates by resource and path.
	guards map[string][]featuregate.Feature
	needs  func(gate, other featuregate.Feature) bool
}

func newNaive(document *spec.Swagger, entries []catalog.Entry, needs func(gate, other featuregate.Feature) bool) naive {
	n := naive{map[property][]string{}, map[string][]featuregate.Feature{}, needs}
	for path, item := range document.Paths.Paths {
		resource, ok := resourceOf(path)
		if !ok || item.Get == nil {
			continue
		}
		root := item.Get.Responses.StatusCodeResponses[200].Schema.Ref.String()
		n.visit(document, strings.TrimPrefix(root, "#/definitions/"), resource.String(), nil)
		for _, e := range entries {
			for _, stored := range e.Stores() {
				old := slices.ContainsFunc(e.Retained, func(r catalog.Remainder) bool {
					return r.Field == stored && (r.With != "" || stored.Path == "status.declaredFeatures")
				})
				if stored.Resource == resource.GroupResource() && stored.Path != "" && stored.Value == "" && !stored.Chosen && !old {
					at := resource.String() + "." + inVersion(stored.Path, resource)
					n.guards[at] = append(n.guards[at], e.Name)
				}
			}
		}
	}
	return n
}

// inVersion is pathInVersion once more.
func inVersion(path string, resource schema.GroupVersionResource) string {
	if resource.Group == "resource.k8s.io" && resource.Version == "v1beta1" {
		if resource.Resource == "resourceslices" {
			path = strings.Replace(path, "devices[*]", "devices[*].basic", 1)
		}
		path = strings.Replace(path, "exactly.", "", 1)
	}
	return strings.TrimSuffix(path, "[*]")
}

func (n naive) visit(document *spec.Swagger, definition, at string, above []string) {
	if slices.Contains(above, definition) {
		return
	}
	for key, value := range document.Definitions[definition].Properties {
		place := at + "." + key
		n.paths[property{definition, key}] = append(n.paths[property{definition, key}], place)
		for {
			if ref := value.Ref.String(); ref != "" {
				n.visit(document, strings.TrimPrefix(ref, "#/definitions/"), place, append(slices.Clone(above), definition))
				break
			}
			if value.Items != nil {
				value, place = *value.Items.Schema, place+"[*]"
			} else if value.AdditionalProperties != nil && value.AdditionalProperties.Schema != nil {
				value, place = *value.AdditionalProperties.Schema, place+"{*}"
			} else {
				break
			}
		}
	}
}

// gone are the properties that no place is left of, if a gate guards them anywhere.
func (n naive) gone(on map[featuregate.Feature]bool) []string {
	var result []string
	for p, places := range n.paths {
		guarded := slices.ContainsFunc(places, func(place string) bool { return len(n.guards[place]) > 0 })
		if guarded && !slices.ContainsFunc(places, func(place string) bool { return n.visible(place, on) }) {
			result = append(result, p.definition+"."+p.key)
		}
	}
	slices.Sort(result)
	return result
}

func (n naive) visible(place string, on map[featuregate.Feature]bool) bool {
	for guard, gates := range n.guards {
		inside, ok := strings.CutPrefix(place, guard)
		if !ok || inside != "" && !strings.ContainsAny(inside[:1], ".[{") {
			continue
		}
		// One that is on and that no other of them needs.
		if !slices.ContainsFunc(gates, func(gate featuregate.Feature) bool {
			return on[gate] && !slices.ContainsFunc(gates, func(other featuregate.Feature) bool { return n.needs(other, gate) })
		}) {
			return false
		}
	}
	return true
}

// TestCutsAreThoseOfANaiveTwin, with any gates on.
func TestCutsAreThoseOfANaiveTwin(t *testing.T) {
	document, dependencies := completeV2(t), knownGates(t).Dependencies()
	var needs func(gate, other featuregate.Feature) bool
	needs = func(gate, other featuregate.Feature) bool {
		return slices.ContainsFunc(dependencies[gate], func(f featuregate.Feature) bool { return f == other || needs(f, other) })
	}
	cuts := newGuards(t).OfV2(document).OfObjects()
	twin := newNaive(document, catalog.All(), needs)
	// Only these matter, and the search for them in all paths takes long.
	maps.DeleteFunc(twin.paths, func(_ property, places []string) bool {
		return !slices.ContainsFunc(places, func(place string) bool { return len(twin.guards[place]) > 0 })
	})
	gates := cuts.Gates()
	for seed := range uint64(200) {
		random, on := rand.New(rand.NewPCG(seed, 0)), map[featuregate.Feature]bool{}
		for _, gate := range gates {
			on[gate] = random.IntN(2) == 0
		}
		got := []string{}
		for _, name := range names(cuts.While(func(gate featuregate.Feature) bool { return on[gate] })) {
			if !strings.Contains(name, "=") {
				got = append(got, name)
			}
		}
		if diff := cmp.Diff(twin.gone(on), got); diff != "" {
			t.Fatalf("seed %d, with %v (-naive +got):\n%s", seed, on, diff)
		}
	}
}
