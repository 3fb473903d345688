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
	"regexp"
	"strings"
)

var (
	title = regexp.MustCompile(`^#{1,6} +(.*?)\s*$`)
	// linked is a link, of which a heading's address has the text only.
	linked = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	// dropped are characters that an address does not have.
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// addresses returns what links to the headings of a page have after "#", in their
// order, as GitHub makes them. Repeated ones are numbered. Tables of contents are
// mdtoc's (hack/update-toc.sh). It checks no links, and its addresses lack letters
// outside of ASCII, which GitHub keeps.
func addresses(page string) []string {
	var found []string
	seen := map[string]int{}
	fenced := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			fenced = !fenced
		}
		match := title.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if fenced || match == nil {
			continue
		}
		text := linked.ReplaceAllString(match[1], "$1")
		address := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
		n := seen[address]
		seen[address]++
		if n > 0 {
			address = fmt.Sprintf("%s-%d", address, n)
		}
		found = append(found, address)
	}
	return found
}
