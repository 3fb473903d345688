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
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable returns text from the cluster for one line of a terminal. Writers of
// Features and Events anywhere write to the screens of users, so no control
// character may get there. These are characters that begin escape sequences, of C1
// also (ECMA-48, 5.3), and line ends, which would forge lines. They are made visible
// as kubectl does it (k8s.io/cli-runtime/pkg/printers/terminal.go). So are
// characters that change the direction of writing.
func printable(text string) string {
	if !strings.ContainsFunc(text, conceals) && utf8.ValidString(text) {
		return text
	}
	var visible strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			// A terminal without UTF-8 would take 0x9b for the beginning of a sequence.
			fmt.Fprintf(&visible, `\x%02x`, text[0])
		case r == '\n' || r == '\t':
			visible.WriteByte(' ')
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&visible, "^%c", r^0x40)
		case conceals(r):
			fmt.Fprintf(&visible, `\u%04x`, r)
		default:
			visible.WriteRune(r)
		}
		text = text[size:]
	}
	return visible.String()
}

// conceals returns true for characters that are invisible or misleading.
func conceals(r rune) bool { return !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) }

// printableLines is printable for text of several lines. Each but the first begins
// with a prefix, so that it cannot be taken for a line of the command.
func printableLines(text, prefix string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if lines[i] = printable(strings.TrimRight(line, "\r")); i > 0 && line != "" {
			lines[i] = prefix + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

// printableAll is printable for each of several texts, the cells of a row.
func printableAll(texts []string) []string {
	all := make([]string, 0, len(texts))
	for _, text := range texts {
		all = append(all, printable(text))
	}
	return all
}

// fieldsOf returns what writes lines of a name and a text to a tab writer.
func fieldsOf(to io.Writer) func(name, text string) {
	return func(name, text string) { fmt.Fprintf(to, "%s:\t%s\n", name, printable(text)) }
}
