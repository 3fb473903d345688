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

package feature

import (
	"strings"

	"golang.org/x/net/html"
)

// part adds an attribute, text or an element to an HTML element. Nothing in a part is
// markup: html.Render escapes all text and all values of attributes.
type part func(parent *html.Node)

// group adds parts in their order.
func group(members ...part) part {
	return func(parent *html.Node) {
		for _, add := range members {
			add(parent)
		}
	}
}

// when adds parts if a condition is true.
func when(condition bool, members ...part) part {
	if !condition {
		return group()
	}
	return group(members...)
}

// parts adds a part for each item.
func parts[T any](items []T, show func(T) part) part {
	return func(parent *html.Node) {
		for _, item := range items {
			show(item)(parent)
		}
	}
}

// joined adds a part for each item, with a separator between them.
func joined[T any](items []T, separator part, show func(T) part) part {
	return func(parent *html.Node) {
		for i, item := range items {
			if i > 0 {
				separator(parent)
			}
			show(item)(parent)
		}
	}
}

// element adds an element. Its tag is a constant; that of a script or a style would make
// text code.
func element(tag string, members ...part) part {
	return func(parent *html.Node) {
		n := &html.Node{Type: html.ElementNode, Data: tag}
		group(members...)(n)
		parent.AppendChild(n)
	}
}

// text adds text.
func text(content string) part {
	return func(parent *html.Node) {
		parent.AppendChild(&html.Node{Type: html.TextNode, Data: visibleNUL(content)})
	}
}

// attribute adds an attribute. Its key is a constant, and none whose value browsers run
// or load, such as onclick or href, unless the value is a constant, too.
func attribute(key, value string) part {
	return func(parent *html.Node) {
		parent.Attr = append(parent.Attr, html.Attribute{Key: key, Val: visibleNUL(value)})
	}
}

// class adds the attribute class.
func class(names string) part { return attribute("class", names) }

// visibleNUL replaces NUL, which HTML does not have in any form and parsers drop.
func visibleNUL(content string) string { return strings.ReplaceAll(content, "\x00", "\ufffd") }
