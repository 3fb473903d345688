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

// Package headings finds the headings of a page in Markdown and their addresses,
// as GitHub shows them.
package headings

import (
	"fmt"
	"regexp"
	"strings"
)

// Heading is a line that begins with number signs.
type Heading struct {
	// Level is 1 for "#".
	Level int
	Text  string
	// Address is the part after "#" in links to it.
	Address string
}

var (
	heading = regexp.MustCompile(`^(#{1,6}) +(.*?)\s*$`)
	// linked is a link, of which a heading's address has the text only.
	linked = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	// dropped are characters that an address does not have.
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// Of returns the headings of a page in their order. Repeated ones are
// numbered.
func Of(page string) []Heading {
	var found []Heading
	seen := map[string]int{}
	fenced := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			fenced = !fenced
		}
		match := heading.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if fenced || match == nil {
			continue
		}
		text := linked.ReplaceAllString(match[2], "$1")
		address := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
		n := seen[address]
		seen[address]++
		if n > 0 {
			address = fmt.Sprintf("%s-%d", address, n)
		}
		found = append(found, Heading{Level: len(match[1]), Text: match[2], Address: address})
	}
	return found
}
