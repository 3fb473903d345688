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

package gatefiles

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// node is a value in a document, with its path. The zero value is one that is not there.
type node struct {
	*yaml.Node
	path string
}

// resolved follows aliases.
func (n node) resolved() node {
	for n.Node != nil && n.Kind == yaml.AliasNode {
		n.Node = n.Alias
	}
	return n
}

func (n node) exists() bool { return n.Node != nil }

func (n node) isMap() bool  { return n.Node != nil && n.Kind == yaml.MappingNode }
func (n node) isList() bool { return n.Node != nil && n.Kind == yaml.SequenceNode }
func (n node) isText() bool { return n.Node != nil && n.Kind == yaml.ScalarNode && n.Tag != "!!null" }

// text returns a scalar as it is written, "" for all else.
func (n node) text() string {
	if !n.isText() {
		return ""
	}
	return n.Value
}

// fields returns the keys and values of a map. Those of a merge (<<) come first, since the map's own win.
func (n node) fields() iter.Seq2[node, node] {
	return func(yield func(key, value node) bool) { n.eachField(yield) }
}

func (n node) eachField(yield func(key, value node) bool) bool {
	n = n.resolved()
	if !n.isMap() {
		return true
	}
	for merges := range 2 {
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if merge := key.Tag == "!!merge"; merge != (merges == 0) {
				continue
			}
			value := node{Node: n.Content[i+1], path: n.path + "." + key.Value}
			if n.path == "" {
				value.path = key.Value
			}
			if key.Tag != "!!merge" {
				if !yield(node{Node: key, path: value.path}, value.resolved()) {
					return false
				}
				continue
			}
			value.path = n.path
			merged := []node{value.resolved()}
			if merged[0].isList() {
				// The first of several maps wins.
				merged = merged[0].items()
				slices.Reverse(merged)
			}
			for _, m := range merged {
				m.path = n.path
				if !m.eachField(yield) {
					return false
				}
			}
		}
	}
	return true
}

// at returns the value behind some keys.
func (n node) at(keys ...string) node {
	for _, key := range keys {
		var found node
		for k, value := range n.fields() {
			if k.Value == key {
				found = value
			}
		}
		n = found
	}
	return n
}

// items returns the values of a list.
func (n node) items() []node {
	n = n.resolved()
	if !n.isList() {
		return nil
	}
	items := make([]node, len(n.Content))
	for i, item := range n.Content {
		items[i] = node{Node: item, path: fmt.Sprintf("%s[%d]", n.path, i)}.resolved()
	}
	return items
}

// document is one of a file.
type document struct {
	*file
	// name is that of the file, or of a file that another one has as a text.
	name   string
	format string
	// apiVersion and kind are "" for documents that have none.
	apiVersion, kind string
	// lines are those of the text that was parsed.
	lines []string
	// place returns the line and column in the file.
	place    func(line, column int) (int, int)
	embedded bool
}

// source returns the place of a node.
func (d *document) source(n node) Source {
	if n.Node == nil {
		return Source{File: d.file.name, Format: d.format}
	}
	return d.sourceAt(n.Line, n.Column, n.path)
}

func (d *document) sourceAt(line, column int, path string) Source {
	s := Source{File: d.file.name, Path: path, Format: d.format}
	s.Line, s.Column = d.place(line, column)
	return s
}

// problem reports what is wrong with a node.
func (d *document) problem(n node, next, format string, args ...any) {
	d.reader.problem(d.source(n), fmt.Sprintf(format, args...), next)
}

// cursor finds parts of a scalar in the text, one after the other.
type cursor struct {
	document     *document
	node         node
	line, column int
	lines        int
}

func (d *document) cursor(n node) *cursor {
	// Folded text may have one more line between any two.
	return &cursor{document: d, node: n, line: n.Line, column: n.Column, lines: 2*strings.Count(n.Value, "\n") + 16}
}

// find returns the place of the next such text, or of the scalar where the text is written in another way.
func (c *cursor) find(text string) Source {
	line, column := c.line, c.column
	for range c.lines {
		if line < 1 || line > len(c.document.lines) {
			break
		}
		runes := []rune(c.document.lines[line-1])
		if column-1 <= len(runes) {
			if before, _, ok := strings.Cut(string(runes[column-1:]), text); ok {
				column += len([]rune(before))
				c.line, c.column = line, column+len([]rune(text))
				return c.document.sourceAt(line, column, c.node.path)
			}
		}
		line, column = line+1, 1
	}
	return c.document.source(c.node)
}

// embed reads a text in the document that is a document itself. The name is that of the file that it becomes.
func (d *document) embed(n node, name string) {
	if !n.isText() || d.embedded {
		return
	}
	place := func(int, int) (int, int) { return d.place(n.Line, n.Column) }
	if n.Style&yaml.LiteralStyle != 0 {
		inner := strings.Split(n.Value, "\n")
		place = func(line, column int) (int, int) {
			outer := n.Line + line
			if outer <= len(d.lines) && line <= len(inner) {
				column += indent(d.lines[outer-1]) - indent(inner[line-1])
			}
			return d.place(outer, column)
		}
	}
	d.documents([]byte(n.Value), name, place, true)
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// process returns the process of a component that a node describes.
func (d *document) process(component string, n node) *Process {
	p := &Process{Source: d.source(n), Component: component}
	d.reader.result.Processes = append(d.reader.result.Processes, p)
	return p
}

// shared returns the process of a component that several documents of the file describe.
func (d *document) shared(component string, n node) *Process {
	if p, ok := d.processes[component]; ok {
		return p
	}
	p := d.process(component, n)
	d.processes[component] = p
	return p
}
