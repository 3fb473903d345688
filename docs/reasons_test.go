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
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// values are the string constants of a file of the library, by their names.
func values(t *testing.T, file string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, library, file), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(parsed, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok {
			for i, name := range spec.Names {
				if i < len(spec.Values) {
					if text, ok := literal(spec.Values[i]); ok {
						found[name.Name] = text
					}
				}
			}
		}
		return true
	})
	return found
}

// literal is the text of a string literal.
func literal(expression ast.Expr) (string, bool) {
	basic, ok := expression.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(basic.Value)
	return text, err == nil
}

// name is that of a constant or variable, of this package or another one, and ""
// for every other expression.
func name(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// inspect shows every node of the server flow's code.
func inspect(t *testing.T, visit func(where string, node ast.Node)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, library, "lifecycle"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			if node != nil {
				position := files.Position(node.Pos())
				visit(filepath.Base(position.Filename)+":"+strconv.Itoa(position.Line), node)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// secondColumn is the second cell of the row of a name, "" without one.
func secondColumn(table, name string) string {
	for _, match := range tableRow.FindAllStringSubmatch(table, -1) {
		if match[1] == name {
			return strings.TrimSpace(match[2])
		}
	}
	return ""
}

// TestReasonsAreExplainedWhereTheyAreSet goes by the code: each condition that it
// sets with a reason is explained in the section of that condition, with the
// status that it sets, and no reason is a mere text that the constants do not have.
func TestReasonsAreExplainedWhereTheyAreSet(t *testing.T) {
	text := page(t, "troubleshooting.md")
	const file = "apis/features/v1alpha1/conditions.go"
	known, seen := values(t, file), 0
	inspect(t, func(where string, node ast.Node) {
		if pair, ok := node.(*ast.KeyValueExpr); ok && name(pair.Key) == "Reason" {
			if reason, ok := literal(pair.Value); ok {
				t.Errorf("%s: the reason %q is no constant; declare it in %s, and explain it in troubleshooting.md", where, reason, file)
			}
		}
		call, ok := node.(*ast.CallExpr)
		if !ok || name(call.Fun) != "condition" || len(call.Args) != 4 {
			return
		}
		if reason, ok := literal(call.Args[2]); ok {
			t.Errorf("%s: the reason %q is no constant; declare it in %s, and explain it in troubleshooting.md", where, reason, file)
		}
		condition, reason := known[name(call.Args[0])], known[name(call.Args[2])]
		if condition == "" || reason == "" {
			// A variable, whose values are constants: TestEveryReasonIsExplained.
			return
		}
		seen++
		explained := secondColumn(section(t, text, condition), reason)
		status := strings.TrimPrefix(name(call.Args[1]), "Condition")
		switch {
		case explained == "":
			t.Errorf("%s: %s is set with reason %s, which troubleshooting.md does not explain under %s", where, condition, reason, condition)
		case slices.Contains([]string{"True", "False", "Unknown"}, status) && !strings.Contains(explained, status):
			t.Errorf("%s: %s with reason %s is %s here, and %s in troubleshooting.md", where, condition, reason, status, explained)
		}
	})
	if seen == 0 {
		t.Error("no condition is set; this test does not understand the code any more")
	}
}

// TestEventTypesMatchDocument goes by the code, too.
func TestEventTypesMatchDocument(t *testing.T) {
	table := section(t, page(t, "troubleshooting.md"), "Events")
	known, seen := values(t, "lifecycle/transition/view.go"), 0
	inspect(t, func(where string, node ast.Node) {
		call, ok := node.(*ast.CallExpr)
		if !ok || name(call.Fun) != "event" || len(call.Args) < 3 {
			return
		}
		seen++
		if reason, ok := literal(call.Args[1]); ok {
			t.Errorf("%s: the event %q is no constant of package transition", where, reason)
		}
		event := known[name(call.Args[1])]
		want, ok := map[string]string{"true": "Warning", "false": "Normal"}[name(call.Args[0])]
		if event != "" && ok && secondColumn(table, event) != want {
			t.Errorf("%s: the event %s is of type %s here, and %q in troubleshooting.md", where, event, want, secondColumn(table, event))
		}
	})
	if seen == 0 {
		t.Error("no event is written; this test does not understand the code any more")
	}
}

// TestEveryRefusalOfAValueIsExplained: why a process does not use a value from the
// API.
func TestEveryRefusalOfAValueIsExplained(t *testing.T) {
	var reasons []string
	for _, names := range constants(t, "featuregate/remote.go", "Outcome") {
		reasons = append(reasons, names...)
	}
	// In effect is no refusal.
	reasons = slices.DeleteFunc(reasons, func(reason string) bool { return reason == "InEffect" })
	slices.Sort(reasons)
	table := section(t, page(t, "central-and-dynamic.md"), "What a component takes")
	_, table, _ = strings.Cut(table, "| reason |")
	if diff := cmp.Diff(reasons, rows(table)); diff != "" {
		t.Errorf("the reasons in central-and-dynamic.md differ from the code (-code +page):\n%s", diff)
	}
}
