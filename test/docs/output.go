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

package docs

import (
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// anything stands for any text within its line; on a line of its own, for any
// number of lines.
const anything = "…"

// Differs returns how what was printed differs from what a page shows, "" if it does
// not. How many blanks there are, and blanks at the ends of lines, is of no
// consequence: columns are as wide as their longest value.
func Differs(want, got string) string {
	wantLines, gotLines := lines(want), lines(got)
	var pattern strings.Builder
	pattern.WriteString("^")
	for _, line := range wantLines {
		if line == anything {
			pattern.WriteString(`(?:[^\n]*\n)*`)
			continue
		}
		for i, part := range strings.Split(line, anything) {
			if i > 0 {
				pattern.WriteString(`[^\n]*`)
			}
			pattern.WriteString(regexp.QuoteMeta(part))
		}
		pattern.WriteString(`\n`)
	}
	pattern.WriteString("$")
	text := strings.Join(gotLines, "\n")
	if len(gotLines) > 0 {
		text += "\n"
	}
	if regexp.MustCompile(pattern.String()).MatchString(text) {
		return ""
	}
	return cmp.Diff(wantLines, gotLines)
}

// lines are those of a text, without superfluous blanks and empty lines at the
// end.
func lines(text string) []string {
	var result []string
	for line := range strings.Lines(text) {
		result = append(result, strings.Join(strings.Fields(line), " "))
	}
	for len(result) > 0 && result[len(result)-1] == "" {
		result = result[:len(result)-1]
	}
	return result
}

// telling are lines that say why a command failed: of go test, of a test's own, of
// the tools of this repository.
var telling = regexp.MustCompile(`^\s*--- FAIL|^panic: |HAS ENDED|[Ee]rror|_test\.go:\d+: \D|\w+\.go:\d+: [a-z]|died|ended by itself`)

// Causes are the lines of what commands printed that say why they failed, the last
// ones if there are many: the output of a test with a cluster has hundreds, and
// those of logs come last. The same line counts once.
func Causes(output string) []string {
	const most, longest = 12, 400
	var causes []string
	for _, line := range lines(output) {
		if strings.HasPrefix(line, `{"level":`) || !telling.MatchString(line) {
			continue
		}
		if line = strings.ToValidUTF8(line[:min(len(line), longest)], ""); !slices.Contains(causes, line) {
			causes = append(causes, line)
		}
	}
	return causes[max(0, len(causes)-most):]
}
