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
	"slices"
	"strings"

	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

// Guards know which field of which resource belongs to which gates. They are
// immutable once they are made.
type Guards struct {
	resources map[schema.GroupResource][]guarded
	// needs are the gates that have to be on for each gate, directly or not.
	needs map[featuregate.Feature]sets.Set[featuregate.Feature]
}

// guarded is a field of a resource that belongs to a gate.
type guarded struct {
	task.Field
	gate featuregate.Feature
}

// NewGuards reads the catalog. Dependencies are the gates that each gate needs,
// as featuregate.FeatureGate has them.
func NewGuards(entries []catalog.Entry, dependencies map[featuregate.Feature][]featuregate.Feature) *Guards {
	g := &Guards{map[schema.GroupResource][]guarded{}, closure(dependencies)}
	lookedAfter := map[task.Field]bool{}
	add := func(gate featuregate.Feature, field task.Field) {
		if isField(field) {
			g.resources[field.Resource] = append(g.resources[field.Resource], guarded{field, gate})
		}
	}
	for _, e := range entries {
		for _, t := range e.OnDisable {
			for _, field := range t.Fields {
				lookedAfter[field] = true
				add(e.Name, field)
			}
		}
	}
	for _, e := range entries {
		for _, r := range e.Retained {
			// A field that another gate handles belongs to that one: this gate
			// only writes it, or is off whenever the other is.
			if r.With == "" && !lookedAfter[r.Field] {
				add(e.Name, r.Field)
			}
		}
	}
	return g
}

// closure adds to the gates that each needs those that these need.
func closure(dependencies map[featuregate.Feature][]featuregate.Feature) map[featuregate.Feature]sets.Set[featuregate.Feature] {
	needs := map[featuregate.Feature]sets.Set[featuregate.Feature]{}
	for gate := range dependencies {
		needs[gate] = sets.New[featuregate.Feature]()
		open := slices.Clone(dependencies[gate])
		for len(open) > 0 {
			next := open[0]
			open = open[1:]
			if !needs[gate].Has(next) {
				needs[gate].Insert(next)
				open = append(open, dependencies[next]...)
			}
		}
	}
	return needs
}

// deciding returns the gates that no other of them needs: one that another
// needs may be on while the field cannot be used.
func (g *Guards) deciding(gates []featuregate.Feature) level {
	var result level
	for _, gate := range gates {
		needed := slices.ContainsFunc(gates, func(other featuregate.Feature) bool { return g.needs[other].Has(gate) })
		if !needed && !slices.Contains(result, gate) {
			result = append(result, gate)
		}
	}
	slices.Sort(result)
	return result
}

// node maps a schema's properties to a resource's guarded fields.
type node struct {
	// children are by the property's name and what of its value they are about:
	// nothing for the value itself, [*] behind a list, {*} behind a map.
	children map[string]*node
	// gates has those of the property itself, values those of single values of
	// it.
	gates  level
	values map[string]level
}

// child is nil if there is none; n may be nil.
func (n *node) child(key string) *node {
	if n == nil {
		return nil
	}
	return n.children[key]
}

// tree arranges the guarded fields of a resource as a version of it has them. It
// is nil if there are none.
func (g *Guards) tree(resource schema.GroupVersionResource) *node {
	fields := g.resources[resource.GroupResource()]
	if len(fields) == 0 {
		return nil
	}
	root := &node{}
	for _, field := range fields {
		n := root
		// All elements of a list are the list.
		path := strings.TrimSuffix(pathInVersion(field.Path, resource), "[*]")
		for _, key := range strings.Split(path, ".") {
			if n.children == nil {
				n.children = map[string]*node{}
			}
			if n.children[key] == nil {
				n.children[key] = &node{}
			}
			n = n.children[key]
		}
		if field.Value == "" {
			n.gates = g.deciding(append(n.gates, field.gate))
			continue
		}
		if n.values == nil {
			n.values = map[string]level{}
		}
		n.values[field.Value] = g.deciding(append(n.values[field.Value], field.gate))
	}
	return root
}

// pathInVersion returns the path in a version of a field that the catalog names by
// its path in the stored or preferred version. TestMarkers finds missing ones.
func pathInVersion(path string, resource schema.GroupVersionResource) string {
	if resource.GroupVersion() != resourcev1beta1.SchemeGroupVersion {
		return path
	}
	// Before v1beta2 a device had its fields in basic, and a request had them
	// itself (k8s.io/api/resource/v1beta1).
	if resource.Resource == "resourceslices" {
		return strings.Replace(path, "spec.devices[*].", "spec.devices[*].basic.", 1)
	}
	return strings.Replace(path, ".exactly.", ".", 1)
}

// isField returns true for fields that are a property of a document, or a value
// of one. It returns false for collections, entries of maps, some elements of
// lists, and values that a function chooses.
func isField(field task.Field) bool {
	whole := strings.NewReplacer("[*]", "", "{*}", "").Replace(field.Path)
	return whole != "" && whole != "metadata.name" && !field.Chosen && !strings.ContainsAny(whole, "[{")
}
