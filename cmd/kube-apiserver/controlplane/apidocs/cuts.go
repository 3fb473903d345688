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
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/featuregate"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const (
	listMapKeys = "x-kubernetes-list-map-keys"
	unions      = "x-kubernetes-unions"
	unionFields = "fields-to-discriminateBy"
	// enumValues is the text with which kube-openapi's generators begin the list
	// of values in a description (pkg/generators/enum.go).
	enumValues = "Possible enum values:"
)

// subject is the object of a cut.
type subject int

const (
	// object is a property, or a value of one, that stored objects may have.
	object subject = iota
	// request is a property of requests or answers only, parameter a query parameter.
	request
	parameter
)

// Cut is a property of a type, a value of one, or a query parameter, that is taken
// out of a document while gates are off.
type Cut struct {
	property
	about subject
	// value is "" for the property itself.
	value  string
	places []place
}

func compareCuts(a, b Cut) int {
	return cmp.Or(cmp.Compare(a.definition, b.definition), cmp.Compare(a.key, b.key), cmp.Compare(a.value, b.value), cmp.Compare(a.about, b.about))
}

func sorted(cuts Cuts) Cuts {
	slices.SortFunc(cuts, compareCuts)
	return cuts
}

// String names what is cut, as <type>.<property>, <type>.<property>=<value> or
// ?<parameter>.
func (c Cut) String() string {
	if c.about == parameter {
		return "?" + c.key
	}
	if c.value != "" {
		return c.definition + "." + c.key + "=" + c.value
	}
	return c.definition + "." + c.key
}

// Cuts has the parts that gates can remove from one document, sorted. It is
// immutable.
type Cuts []Cut

// Gates are the gates that decide.
func (c Cuts) Gates() []featuregate.Feature {
	gates := sets.New[featuregate.Feature]()
	for _, cut := range c {
		for _, p := range cut.places {
			for _, l := range p {
				gates.Insert(l...)
			}
		}
	}
	return sets.List(gates)
}

// OfObjects returns those of properties that stored objects may have.
func (c Cuts) OfObjects() Cuts {
	return slices.DeleteFunc(slices.Clone(c), func(cut Cut) bool { return cut.about != object })
}

// Equal is true if both take the same out of a document.
func (c Cuts) Equal(other Cuts) bool {
	return slices.EqualFunc(c, other, func(a, b Cut) bool { return compareCuts(a, b) == 0 })
}

// While returns those that are removed with these values of gates, never nil.
func (c Cuts) While(enabled func(featuregate.Feature) bool) Cuts {
	now := Cuts{}
	for _, cut := range c {
		if !slices.ContainsFunc(cut.places, func(p place) bool { return p.visible(enabled) }) {
			now = append(now, cut)
		}
	}
	return now
}

// apply returns the schemas that change, changed. It is called for the cuts of one
// moment.
func (c Cuts) apply(schemas map[string]*spec.Schema) map[string]*spec.Schema {
	changed := map[string]*spec.Schema{}
	edit := func(name string) *spec.Schema {
		if changed[name] == nil {
			clone := *schemas[name]
			clone.Properties = maps.Clone(clone.Properties)
			changed[name] = &clone
		}
		return changed[name]
	}
	removed := map[string]sets.Set[string]{}
	for _, cut := range c {
		if cut.about == parameter {
			continue
		}
		s := edit(cut.definition)
		if cut.value != "" {
			// The property itself may be gone already: its cut sorts first.
			if value, ok := s.Properties[cut.key]; ok {
				s.Properties[cut.key] = withoutValue(value, cut.value)
			}
			continue
		}
		delete(s.Properties, cut.key)
		if removed[cut.definition] == nil {
			removed[cut.definition] = sets.New[string]()
		}
		removed[cut.definition].Insert(cut.key)
	}
	for name, keys := range removed {
		s := edit(name)
		s.Required = slices.DeleteFunc(slices.Clone(s.Required), keys.Has)
		withoutUnionFields(s, keys)
	}
	for name, s := range schemas {
		for key, value := range s.Properties {
			element, _ := target(&value)
			if cut, ok := withoutListKeys(value, removed[element]); ok {
				s := edit(name)
				if _, ok := s.Properties[key]; ok {
					s.Properties[key] = cut
				}
			}
		}
	}
	return changed
}

// lists is true if a property's enum, or that of its elements, has a value.
func lists(s *spec.Schema, value string) bool {
	if s.Items != nil && s.Items.Schema != nil {
		return lists(s.Items.Schema, value)
	}
	return slices.Contains(s.Enum, any(value))
}

// withoutValue takes a value out of the enum, of a property or of its elements,
// and out of the description's list of values.
func withoutValue(s spec.Schema, value string) spec.Schema {
	if s.Items != nil && s.Items.Schema != nil {
		items := *s.Items
		element := withoutValue(*items.Schema, value)
		items.Schema = &element
		s.Items = &items
	}
	s.Enum = slices.DeleteFunc(slices.Clone(s.Enum), func(v any) bool { return v == value })
	before, list, ok := strings.Cut(s.Description, enumValues)
	if !ok {
		return s
	}
	items := strings.Split(list, "\n - ")
	items = slices.DeleteFunc(items, func(item string) bool { return strings.HasPrefix(item, "`\""+value+"\"`") })
	s.Description = before + enumValues + strings.Join(items, "\n - ")
	return s
}

// withoutListKeys takes properties that the elements have no more out of the keys
// of a list of them. The result is false if there is nothing to take.
func withoutListKeys(s spec.Schema, gone sets.Set[string]) (spec.Schema, bool) {
	keys, ok := s.Extensions[listMapKeys].([]any)
	isGone := func(key any) bool {
		name, ok := key.(string)
		return ok && gone.Has(name)
	}
	if !ok || len(gone) == 0 || !slices.ContainsFunc(keys, isGone) {
		return s, false
	}
	s.Extensions = maps.Clone(s.Extensions)
	s.Extensions[listMapKeys] = slices.DeleteFunc(slices.Clone(keys), isGone)
	return s, true
}

// withoutUnionFields takes properties that are gone out of the unions of their
// type, and unions without properties away.
func withoutUnionFields(s *spec.Schema, gone sets.Set[string]) {
	all, ok := s.Extensions[unions].([]any)
	if !ok {
		return
	}
	var kept []any
	for _, one := range all {
		union, isMap := one.(map[string]any)
		fields, hasFields := union[unionFields].(map[string]any)
		if !isMap || !hasFields {
			kept = append(kept, one)
			continue
		}
		union, fields = maps.Clone(union), maps.Clone(fields)
		maps.DeleteFunc(fields, func(key string, _ any) bool { return gone.Has(key) })
		union[unionFields] = fields
		if len(fields) > 0 {
			kept = append(kept, union)
		}
	}
	s.Extensions = maps.Clone(s.Extensions)
	if s.Extensions[unions] = kept; len(kept) == 0 {
		delete(s.Extensions, unions)
	}
}
