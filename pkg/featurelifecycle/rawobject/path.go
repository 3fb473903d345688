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

	"google.golang.org/protobuf/encoding/protowire"

	"k8s.io/feature-lifecycle/lifecycle/task"
)

// segment is one key of a path and what it selects.
type segment struct {
	key   string
	which selector
	// name and value are those of [name=value]; name is the key of {key}.
	name, value string
	// number is the protobuf number of a key that the type does not have, 0 for others.
	number protowire.Number
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
	keys, selectors := task.RemovedField{Path: path}.Keys()
	for i, key := range keys {
		segments = append(segments, newSegment(key, selectors[i]))
	}
	return segments, nil
}

// newSegment reads a selector whose syntax was checked.
func newSegment(key, selected string) segment {
	if selected == "" {
		return segment{key: key}
	}
	s, inner := segment{key: key}, selected[1:len(selected)-1]
	switch {
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
