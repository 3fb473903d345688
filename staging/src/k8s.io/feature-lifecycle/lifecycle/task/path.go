/*
Copyright 2026 The Kubernetes Authors.

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
	"strconv"
	"strings"
)

// Path names a field in objects of one resource: keys separated by dots, a key
// followed by [*] stands for every element of a list. For example
// spec.template.spec.containers[*].restartPolicy.
type Path struct {
	text     string
	segments []segment
}

type segment struct {
	key  string
	each bool
}

// ParsePath reads a path. The error names the path and what is wrong with it.
func ParsePath(text string) (Path, error) {
	path := Path{text: text}
	for part := range strings.SplitSeq(text, ".") {
		key, each := strings.CutSuffix(part, "[*]")
		if key == "" || strings.ContainsAny(key, "[]*/~ ") {
			return Path{}, fmt.Errorf("field path %q: %q is neither a key nor a key followed by [*]", text, part)
		}
		path.segments = append(path.segments, segment{key, each})
	}
	if last := path.segments[len(path.segments)-1]; last.each {
		return Path{}, fmt.Errorf("field path %q: the last part must name a field, not list elements", text)
	}
	return path, nil
}

// String returns the path as it was written.
func (p Path) String() string { return p.text }

// Pointers returns a JSON pointer (RFC 6901) for every place where the object
// has the field, in the object's order. The object is not changed.
func (p Path) Pointers(object map[string]any) []string {
	var pointers []string
	walk(object, p.segments, "", func(pointer string, _ any) { pointers = append(pointers, pointer) })
	return pointers
}

// walk calls visit for every place that the segments lead to, with its JSON
// pointer and value.
func walk(object map[string]any, segments []segment, prefix string, visit func(pointer string, value any)) {
	value, ok := object[segments[0].key]
	if !ok {
		return
	}
	prefix += "/" + segments[0].key
	rest := segments[1:]
	if len(rest) == 0 {
		visit(prefix, value)
		return
	}
	if !segments[0].each {
		if child, ok := value.(map[string]any); ok {
			walk(child, rest, prefix, visit)
		}
		return
	}
	elements, _ := value.([]any)
	for i, element := range elements {
		if child, ok := element.(map[string]any); ok {
			walk(child, rest, prefix+"/"+strconv.Itoa(i), visit)
		}
	}
}

// matcher matches objects that have a field, or a field with a value.
type matcher struct {
	path Path
	// value is what the field has to be as text; any is true when it does not
	// matter.
	value string
	any   bool
}

// parseMatcher reads <field> or <field>=<value>.
func parseMatcher(text string) (matcher, error) {
	field, value, valued := strings.Cut(text, "=")
	path, err := ParsePath(field)
	return matcher{path: path, value: value, any: !valued}, err
}

func (m matcher) matches(object map[string]any) bool {
	found := false
	walk(object, m.path.segments, "", func(_ string, value any) {
		found = found || m.any || fmt.Sprint(value) == m.value
	})
	return found
}
