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
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const library = "staging/src/k8s.io/feature-lifecycle"

// constants reads the string constants of a file, by the comment of their block.
func constants(t *testing.T, file, prefix string) map[string][]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, library, file), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string][]string{}
	for _, declaration := range parsed.Decls {
		block, ok := declaration.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		for _, spec := range block.Specs {
			value := spec.(*ast.ValueSpec)
			for i, name := range value.Names {
				if !strings.HasPrefix(name.Name, prefix) {
					continue
				}
				text, err := strconv.Unquote(value.Values[i].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				blocks[block.Doc.Text()] = append(blocks[block.Doc.Text()], text)
			}
		}
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no constants %s…; this test does not understand the code any more", file, prefix)
	}
	return blocks
}

var (
	// tableRow has a name in its first cell and something in all others.
	tableRow        = regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| ([^|]+)\\| ([^|]{4,})(?:\\| [^|]{4,})?\\|$")
	conditionOfThem = regexp.MustCompile(`Condition([A-Z][A-Za-z]+)`)
)

// section is the part of a page below a heading.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("the page has no heading %q", heading)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	return rest
}

func rows(text string) []string {
	var names []string
	for _, match := range tableRow.FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	return names
}

// TestEveryReasonIsExplained compares the reasons of each condition with its table.
func TestEveryReasonIsExplained(t *testing.T) {
	text := page(t, "troubleshooting.md")
	const file = "apis/features/v1alpha1/conditions.go"
	explained := map[string]bool{}
	for comment, reasons := range constants(t, file, "Reason") {
		// The first sentence says which conditions they are of.
		first, _, _ := strings.Cut(comment, ".")
		var of []string
		for _, match := range conditionOfThem.FindAllStringSubmatch(first, -1) {
			of = append(of, match[1])
			explained[match[1]] = true
		}
		heading := strings.Join(of, " and ")
		if heading == "Consistent" {
			// A feature that no server knows is configured by none (package transition).
			reasons = append(reasons, "NotKnown")
		}
		slices.Sort(reasons)
		if diff := cmp.Diff(reasons, rows(section(t, text, heading))); diff != "" {
			t.Errorf("%s in troubleshooting.md differs from the code (-code +page):\n%s", heading, diff)
		}
	}
	for _, conditions := range constants(t, file, "Condition") {
		for _, condition := range conditions {
			if !explained[condition] {
				t.Errorf("no reasons are declared for the condition %s", condition)
			}
		}
	}
}

func TestEveryEventIsExplained(t *testing.T) {
	var events []string
	for _, names := range constants(t, "lifecycle/transition/view.go", "Event") {
		events = append(events, names...)
	}
	slices.Sort(events)
	if diff := cmp.Diff(events, rows(section(t, page(t, "troubleshooting.md"), "Events"))); diff != "" {
		t.Errorf("the events in troubleshooting.md differ from the code (-code +page):\n%s", diff)
	}
}
