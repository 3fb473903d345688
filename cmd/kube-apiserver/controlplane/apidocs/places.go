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

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/featuregate"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// level are gates of which one that is on keeps what is guarded.
type level []featuregate.Feature

// place is one path to a property, from a resource. It exists if every level of
// the path exists.
type place []level

func (p place) visible(enabled func(featuregate.Feature) bool) bool {
	return !slices.ContainsFunc(p, func(l level) bool { return !slices.ContainsFunc(l, enabled) })
}

// property is one of a type.
type property struct{ definition, key string }

// occurrence is a property at a place.
type occurrence struct {
	place place
	// guarded is true if the property itself belongs to gates there, and not only
	// what is above it.
	guarded bool
	values  map[string]level
}

// walker finds the occurrences of all properties of a document.
type walker struct {
	schemas map[string]*spec.Schema
	found   map[property][]occurrence
	// seen are types, and what is above them, where nothing of the catalog is
	// any more: it is enough to have been there once.
	seen map[string]bool
	// recursive are types that contain themselves, as far as that was asked for.
	recursive map[string]bool
	// open are those of them that the path leads through and of which the catalog has
	// fields there, the outermost first.
	open []string
}

// findCuts finds what of a document's schemas belongs to gates. Roots are the
// types of its resources.
func (g *Guards) findCuts(schemas map[string]*spec.Schema, roots map[schema.GroupVersionResource]string) Cuts {
	w := walker{schemas: schemas, found: map[property][]occurrence{}, seen: map[string]bool{}, recursive: map[string]bool{}}
	for resource, definition := range roots {
		w.walk(definition, g.tree(resource), nil)
	}
	var cuts Cuts
	for p, occurrences := range w.found {
		cuts = append(cuts, cutsOf(p, occurrences)...)
	}
	cuts = slices.DeleteFunc(cuts, func(c Cut) bool {
		value := schemas[c.definition].Properties[c.key]
		return c.value != "" && !lists(&value, c.value)
	})
	return sorted(cuts)
}

// walk visits the properties of a type. The catalog's tree n ends wherever types
// contain themselves, so the walk does, too. Where the catalog names fields of more than
// one level of such a type, it names all that validation permits: nothing lies deeper.
func (w *walker) walk(definition string, n *node, above place) {
	if n == nil {
		if levels := slices.DeleteFunc(slices.Clone(w.open), func(open string) bool { return open != definition }); len(levels) > 1 {
			return
		}
		key := definition + " " + strings.Join(w.open, " ")
		for _, l := range above {
			for _, gate := range l {
				key += " " + string(gate)
			}
			key += ";"
		}
		if w.seen[key] {
			return
		}
		w.seen[key] = true
	}
	if w.schemas[definition] == nil {
		return
	}
	if n != nil && w.containsItself(definition) {
		w.open = append(w.open, definition)
		defer func() { w.open = w.open[:len(w.open)-1] }()
	}
	for key, value := range w.schemas[definition].Properties {
		o := occurrence{place: above}
		if own := n.child(key); own != nil {
			o.values, o.guarded = own.values, len(own.gates) > 0
			if o.guarded {
				o.place = append(slices.Clone(above), own.gates)
			}
		}
		p := property{definition, key}
		w.found[p] = append(w.found[p], o)
		if inner, selector := target(&value); inner != "" {
			w.walk(inner, n.child(key+selector), o.place)
		}
	}
}

// containsItself returns true for a type with a property, at any depth, of that type.
func (w *walker) containsItself(definition string) bool {
	if known, ok := w.recursive[definition]; ok {
		return known
	}
	reached, next := map[string]bool{}, []string{definition}
	for len(next) > 0 && !reached[definition] {
		within := w.schemas[next[0]]
		next = next[1:]
		if within == nil {
			continue
		}
		for _, value := range within.Properties {
			if inner, _ := target(&value); inner != "" && !reached[inner] {
				reached[inner] = true
				next = append(next, inner)
			}
		}
	}
	w.recursive[definition] = reached[definition]
	return reached[definition]
}

// target is the type of a property's value, and how a path of the catalog goes
// through lists and maps to it. It is "" for values that are of no named type.
func target(value *spec.Schema) (definition, selector string) {
	for value != nil {
		if name := referenced(value); name != "" {
			return name, selector
		}
		switch {
		case value.Items != nil && value.Items.Schema != nil:
			value, selector = value.Items.Schema, selector+"[*]"
		case value.AdditionalProperties != nil && value.AdditionalProperties.Schema != nil:
			value, selector = value.AdditionalProperties.Schema, selector+"{*}"
		default:
			return "", ""
		}
	}
	return "", ""
}

// referenced is the type that a schema refers to: by itself, or in OpenAPI v3,
// where a reference has nothing beside it, by allOf.
func referenced(value *spec.Schema) string {
	if len(value.AllOf) == 1 {
		value = &value.AllOf[0]
	}
	ref := value.Ref.String()
	return ref[strings.LastIndexByte(ref, '/')+1:]
}

// cutsOf returns the parts of a property that gates can remove: itself, and
// values of it.
func cutsOf(p property, occurrences []occurrence) []Cut {
	var cuts []Cut
	guarded, values := false, map[string]bool{}
	var places []place
	for _, o := range occurrences {
		guarded = guarded || o.guarded
		places = append(places, o.place)
		for value := range o.values {
			values[value] = true
		}
	}
	if guarded {
		cuts = append(cuts, Cut{property: p, places: places})
	}
	for value := range values {
		c := Cut{property: p, value: value}
		for _, o := range occurrences {
			at := o.place
			if gates := o.values[value]; len(gates) > 0 {
				at = append(slices.Clone(at), gates)
			}
			c.places = append(c.places, at)
		}
		cuts = append(cuts, c)
	}
	// A property that is at one place without a gate is never removed.
	return slices.DeleteFunc(cuts, func(c Cut) bool {
		return slices.ContainsFunc(c.places, func(p place) bool { return len(p) == 0 })
	})
}
