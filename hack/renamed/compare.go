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

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// change is something that the newer version does not read as the older one stored it.
type change struct {
	// version and kind are those of the objects, for example resource/v1 and ResourceSlice.
	version, kind string
	// path is the field's, written as for task.ClearField; "" for a whole kind.
	path string
	// number is that in protobuf of the message that has it.
	number int
	// what happened to it.
	what string
	// kept is true for a field that the newer version has under the same key, with another
	// number or type.
	kept bool
	// taker is the key of the field that has the number now, "" if there is none.
	taker string
}

// name identifies the field.
func (c change) name() string { return fmt.Sprintf("%s %s %s", c.version, c.kind, c.path) }

func (c change) String() string {
	if c.path == "" {
		return fmt.Sprintf("%s %s: %s", c.version, c.kind, c.what)
	}
	what := c.what
	if c.taker != "" {
		what += ", and its number is that of " + c.taker
	}
	return fmt.Sprintf("%s (%d): %s", c.name(), c.number, what)
}

// compare lists the changes of all kinds, in order.
func compare(older, newer api) []change {
	var changes []change
	for _, kind := range older.kinds() {
		version := versionOf(kind.pkg)
		if newer[kind.pkg][kind.name] == nil {
			changes = append(changes, change{version: version, kind: kind.name, what: "gone" + elsewhere(newer, kind)})
			continue
		}
		c := comparison{older: older, newer: newer, kind: change{version: version, kind: kind.name}}
		c.fields(kind, kind, "", nil)
		changes = append(changes, c.changes...)
	}
	return changes
}

// elsewhere names the other versions that have a kind.
func elsewhere(in api, kind fieldType) string {
	group := kind.pkg[:strings.LastIndex(kind.pkg, "/")+1]
	var versions []string
	for _, pkg := range slices.Sorted(maps.Keys(in)) {
		if version, ok := strings.CutPrefix(pkg, group); ok && in[pkg][kind.name] != nil {
			versions = append(versions, version)
		}
	}
	if len(versions) == 0 {
		return ", in all versions"
	}
	return ", there is " + strings.Join(versions, ", ")
}

// comparison compares one kind.
type comparison struct {
	older, newer api
	kind         change
	changes      []change
}

// fields compares the fields of two structs at a path. Within are the older types around
// them: a type that contains itself is compared once.
func (c *comparison) fields(older, newer fieldType, path string, within []fieldType) {
	self := fieldType{pkg: older.pkg, name: older.name}
	if older.pkg == "" || slices.Contains(within, self) {
		return
	}
	within = append(slices.Clip(within), self)
	after := c.newer.fields(newer)
	for _, was := range c.older.fields(older) {
		at := strings.TrimPrefix(path+"."+was.key, ".")
		i := slices.IndexFunc(after, func(f field) bool { return f.key == was.key })
		if i < 0 {
			c.add(change{path: at, number: was.number, what: "gone", taker: takes(after, was.number)})
			continue
		}
		switch is := after[i]; {
		case is.number != was.number:
			c.add(change{path: at, number: was.number, what: fmt.Sprintf("has number %d", is.number), kept: true, taker: takes(after, was.number)})
		case is.typ.selector != was.typ.selector || is.typ.wire != was.typ.wire || c.message(is.typ, c.newer) != c.message(was.typ, c.older):
			c.add(change{path: at, number: was.number, what: "has another type", kept: true})
		default:
			c.fields(was.typ, is.typ, at+was.typ.selector, within)
		}
	}
}

// message returns true for a type that is encoded as a message of its fields.
func (c *comparison) message(of fieldType, in api) bool { return len(in.fields(of)) > 0 }

// takes returns the key of the field that has a number now, "" if there is none.
func takes(fields []field, number int) string {
	i := slices.IndexFunc(fields, func(f field) bool { return f.number == number })
	if number == 0 || i < 0 {
		return ""
	}
	return fields[i].key
}

// add notes a change of the kind's field.
func (c *comparison) add(one change) {
	one.version, one.kind = c.kind.version, c.kind.kind
	c.changes = append(c.changes, one)
}
