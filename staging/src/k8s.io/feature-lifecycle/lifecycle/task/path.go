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

package task

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Path names a field in objects of one resource: keys separated by dots. A key
// may be followed by what it selects of its value:
//
//	[*]            every element of a list
//	[name=value]   the elements of a list whose field name has the value, or
//	               what is no list, if its own field name has the value
//	{*}            every value of a map
//	{key}          one entry of a map, whose key may contain dots and slashes
//
// For example spec.template.spec.containers[*].restartPolicy,
// spec.devices[*].capacity{*}.requestPolicy, status.conditions[type=Unused],
// metadata.labels{topology.kubernetes.io/zone} or spec[hostNetwork=true].hostUsers.
type Path struct {
	text     string
	segments []segment
}

// segment is one key and what it selects.
type segment struct {
	key   string
	which selector
	// name and value are those of [name=value]; name is the key of {key}.
	name, value string
}

type selector int

const (
	itself selector = iota
	eachElement
	someElements
	eachEntry
	oneEntry
)

// ParsePath reads a path. The error names the path and what is wrong with it.
func ParsePath(text string) (Path, error) {
	path := Path{text: text}
	for _, part := range splitPath(text) {
		s, err := parseSegment(part)
		if err != nil {
			return Path{}, fmt.Errorf("field path %q: %w", text, err)
		}
		path.segments = append(path.segments, s)
	}
	if last := path.segments[len(path.segments)-1]; last.which == eachEntry {
		return Path{}, fmt.Errorf("field path %q: the last part must name a field, not all that is in it", text)
	}
	return path, nil
}

// splitPath splits at the dots outside of brackets and braces.
func splitPath(text string) []string {
	var parts []string
	begin, inside := 0, false
	for i, r := range text {
		switch {
		case r == '[' || r == '{':
			inside = true
		case r == ']' || r == '}':
			inside = false
		case r == '.' && !inside:
			parts = append(parts, text[begin:i])
			begin = i + 1
		}
	}
	return append(parts, text[begin:])
}

func parseSegment(part string) (segment, error) {
	problem := fmt.Errorf("%q is neither a key nor a key followed by [*], [name=value], {*} or {key}", part)
	at := strings.IndexAny(part, "[{")
	key, rest := part, ""
	if at >= 0 {
		key, rest = part[:at], part[at:]
	}
	if key == "" || strings.ContainsAny(key, "]}*/~= ") {
		return segment{}, problem
	}
	s := segment{key: key}
	if rest == "" {
		return s, nil
	}
	inner := strings.TrimSuffix(strings.TrimSuffix(rest[1:], "]"), "}")
	if rest != "["+inner+"]" && rest != "{"+inner+"}" || inner == "" || strings.ContainsAny(inner, "[]{}") {
		return segment{}, problem
	}
	name, value, valued := strings.Cut(inner, "=")
	switch {
	case rest == "[*]":
		s.which = eachElement
	case rest == "{*}":
		s.which = eachEntry
	case rest[0] == '{':
		s.which, s.name = oneEntry, inner
	case valued && name != "" && value != "":
		s.which, s.name, s.value = someElements, name, value
	default:
		return segment{}, problem
	}
	return s, nil
}

// String returns the path as it was written.
func (p Path) String() string { return p.text }

// Pointers returns a JSON pointer (RFC 6901) for every place where the object
// has the field, in the object's order. The object is not changed.
func (p Path) Pointers(object map[string]any) []string {
	var pointers []string
	walk(object, p.segments, nil, func(at *place, _ any) bool {
		pointers = append(pointers, at.pointer())
		return true
	})
	return pointers
}

// in returns true if the object has the field somewhere.
func (p Path) in(object map[string]any) bool {
	return !walk(object, p.segments, nil, func(*place, any) bool { return false })
}

// place is where something is in an object: below another place, nil for the object,
// with a key or the number of an element. Places of all objects of a cluster are
// visited, and few are ever written as a pointer.
type place struct {
	below *place
	key   string
}

// pointer writes the place as a JSON pointer.
func (p *place) pointer() string {
	if p == nil {
		return ""
	}
	return p.below.pointer() + "/" + escaper.Replace(p.key)
}

// keys returns those that lead to the place from the object.
func (p *place) keys() []string {
	if p == nil {
		return nil
	}
	return append(p.below.keys(), p.key)
}

// escaper writes a key as a part of a JSON pointer.
var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// walk calls visit for every place that the segments lead to, with its value, until it
// returns false. It returns false, too, then.
func walk(object map[string]any, segments []segment, below *place, visit func(at *place, value any) bool) bool {
	value, ok := object[segments[0].key]
	if !ok {
		return true
	}
	return segments[0].each(value, &place{below, segments[0].key}, func(at *place, selected any) bool {
		if len(segments) == 1 {
			return visit(at, selected)
		}
		child, ok := selected.(map[string]any)
		return !ok || walk(child, segments[1:], at, visit)
	})
}

// each calls visit for what the segment selects of its key's value, until it returns
// false.
func (s segment) each(value any, at *place, visit func(at *place, selected any) bool) bool {
	switch s.which {
	case itself:
		return visit(at, value)
	case eachElement, someElements:
		if s.which == someElements && s.selects(value) && !visit(at, value) {
			return false
		}
		elements, _ := value.([]any)
		for i, element := range elements {
			if (s.which == eachElement || s.selects(element)) && !visit(&place{at, strconv.Itoa(i)}, element) {
				return false
			}
		}
	case eachEntry, oneEntry:
		entries, _ := value.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			if (s.which == eachEntry || key == s.name) && !visit(&place{at, key}, entries[key]) {
				return false
			}
		}
	}
	return true
}

// selects returns true for an element with the name and value of the segment.
func (s segment) selects(element any) bool {
	fields, _ := element.(map[string]any)
	value, ok := fields[s.name]
	return ok && fmt.Sprint(value) == s.value
}

// matcher matches objects that have a field, or a field with a value.
type matcher struct {
	path Path
	// wanted selects the values that match; nil means all.
	wanted func(value any) bool
	// value is the one that matches, "" if wanted is not about one.
	value string
}

// parseMatcher reads <field> or <field>=<value>.
func parseMatcher(text string) (matcher, error) {
	var m matcher
	field := text
	// Brackets may have a value, too.
	if at := strings.LastIndexByte(text, '='); at > strings.LastIndexAny(text, "]}") {
		field, m.value = text[:at], text[at+1:]
		m.wanted = m.isValue
	}
	var err error
	m.path, err = ParsePath(field)
	return m, err
}

// isValue returns true for the one value that matches.
func (m matcher) isValue(value any) bool { return fmt.Sprint(value) == m.value }

// matches returns false for null: the server writes it for an unset field whose type
// does not omit it (PodGroupTemplate.schedulingConstraints).
func (m matcher) matches(object map[string]any) bool {
	return !walk(object, m.path.segments, nil, func(_ *place, value any) bool {
		return value == nil || m.wanted != nil && !m.wanted(value)
	})
}
