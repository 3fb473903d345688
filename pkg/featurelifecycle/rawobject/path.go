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
	"strings"

	"k8s.io/feature-lifecycle/lifecycle/task"
)

// segment is one key of a path and what it selects.
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

// parsePath returns the segments of a path that is written as for task.ParsePath.
func parsePath(path string) ([]segment, error) {
	if _, err := task.ParsePath(path); err != nil {
		return nil, err
	}
	var segments []segment
	inside := false
	for _, part := range strings.FieldsFunc(path, func(r rune) bool {
		inside = (inside || r == '[' || r == '{') && r != ']' && r != '}'
		return r == '.' && !inside
	}) {
		segments = append(segments, parseSegment(part))
	}
	return segments, nil
}

// parseSegment parses a part whose syntax was checked.
func parseSegment(part string) segment {
	at := strings.IndexAny(part, "[{")
	if at < 0 {
		return segment{key: part}
	}
	s, inner := segment{key: part[:at]}, part[at+1:len(part)-1]
	switch selected := part[at:]; {
	case selected == "[*]":
		s.which = eachElement
	case selected == "{*}":
		s.which = eachEntry
	case selected[0] == '{':
		s.which, s.name = oneEntry, inner
	default:
		s.which = someElements
		s.name, s.value, _ = strings.Cut(inner, "=")
	}
	return s
}
