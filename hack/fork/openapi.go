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
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/format"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	// openAPI has the OpenAPI definitions of all types, here those of the group
	// and in upstream's repository all of the others.
	openAPI = "pkg/generated/openapi/zz_generated.openapi.go"
	// typesPath is the package of the group's types.
	typesPath = libraryPath + "/apis/features/v1alpha1"
	// typesAlias is openapi-gen's name of the import where v1alpha1 is taken.
	typesAlias = "featuresv1alpha1"
)

// definitions are a file that openapi-gen wrote.
type definitions struct {
	source
	// aliases are the names of imports by path, and paths the reverse.
	aliases, paths map[string]string
	// entries are the elements of the map that GetOpenAPIDefinitions returns.
	entries []*ast.KeyValueExpr
	// functions are those that the entries call, by name.
	functions map[string]*ast.FuncDecl
}

func parseDefinitions(name string, data []byte) (*definitions, error) {
	s, err := parse(name, data)
	if err != nil {
		return nil, err
	}
	d := &definitions{source: s, aliases: map[string]string{}, paths: map[string]string{}, functions: map[string]*ast.FuncDecl{}}
	for _, spec := range s.file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if spec.Name == nil {
			return nil, fmt.Errorf("%s: the import %s has no name, as openapi-gen gives one; change hack/fork/openapi.go", name, path)
		}
		d.aliases[path], d.paths[spec.Name.Name] = spec.Name.Name, path
	}
	for _, declared := range s.file.Decls {
		function, ok := declared.(*ast.FuncDecl)
		if !ok {
			continue
		}
		d.functions[function.Name.Name] = function
		if function.Name.Name != "GetOpenAPIDefinitions" {
			continue
		}
		ast.Inspect(function.Body, func(n ast.Node) bool {
			if pair, ok := n.(*ast.KeyValueExpr); ok {
				d.entries = append(d.entries, pair)
			}
			return true
		})
	}
	if len(d.entries) == 0 {
		return nil, fmt.Errorf("%s has no definitions; change hack/fork/openapi.go", name)
	}
	return d, nil
}

// of returns the package of an entry's type, which its key begins with:
// alias.Type{}.OpenAPIModelName().
func (d *definitions) of(entry *ast.KeyValueExpr) string {
	alias, _, _ := strings.Cut(d.text(entry.Key.Pos(), entry.Key.End()), ".")
	return d.paths[alias]
}

// function is the one that an entry calls.
func (d *definitions) function(entry *ast.KeyValueExpr) *ast.FuncDecl {
	if call, ok := entry.Value.(*ast.CallExpr); ok {
		if name, ok := call.Fun.(*ast.Ident); ok {
			return d.functions[name.Name]
		}
	}
	return nil
}

// renamed is the text of a node with the names of imports that another file has.
func (d *definitions) renamed(n ast.Node, other map[string]string) (string, error) {
	var out strings.Builder
	var missing error
	at := n.Pos()
	ast.Inspect(n, func(each ast.Node) bool {
		selector, ok := each.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		alias, ok := selector.X.(*ast.Ident)
		if !ok || d.paths[alias.Name] == "" {
			return true
		}
		name := other[d.paths[alias.Name]]
		if name == "" {
			missing = fmt.Errorf("upstream's definitions do not import %s, which ours need; change hack/fork/openapi.go", d.paths[alias.Name])
		}
		out.WriteString(d.text(at, alias.Pos()) + name)
		at = alias.End()
		return true
	})
	out.WriteString(d.text(at, n.End()))
	return out.String(), missing
}

// editOpenAPI puts the group's definitions where upstream's generator writes
// them, hack/update-codegen.sh openapi: the types ask for it by their tag. All is
// in the order of package paths.
func editOpenAPI(_ context.Context, p *plan, base []byte) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(p.source, filepath.FromSlash(openAPI)))
	if err != nil {
		return nil, err
	}
	ours, err := parseDefinitions("our "+openAPI, data)
	if err != nil {
		return nil, err
	}
	theirs, err := parseDefinitions("upstream's "+openAPI, base)
	if err != nil {
		return nil, err
	}
	if path, taken := theirs.paths[typesAlias]; taken {
		return nil, fmt.Errorf("upstream imports %s as %s; change the name in hack/fork/openapi.go to what openapi-gen takes now", path, typesAlias)
	}
	names := theirs.aliases
	names[typesPath] = typesAlias
	var entries, functions strings.Builder
	for _, entry := range ours.entries {
		if ours.of(entry) != typesPath {
			continue
		}
		function := ours.function(entry)
		if function == nil {
			return nil, fmt.Errorf("our %s has an entry without a function; change hack/fork/openapi.go", openAPI)
		}
		text, err := ours.renamed(entry, names)
		if err != nil {
			return nil, err
		}
		entries.WriteString(text + ",\n")
		if text, err = ours.renamed(function, names); err != nil {
			return nil, err
		}
		functions.WriteString(text + "\n\n")
	}
	return theirs.with(fmt.Sprintf("%s %q\n", typesAlias, typesPath), entries.String(), functions.String())
}

// with is the file with the group's import, entries and functions before those
// of the package that follows.
func (d *definitions) with(spec, entries, functions string) ([]byte, error) {
	i := slices.IndexFunc(d.entries, func(entry *ast.KeyValueExpr) bool { return d.of(entry) > typesPath })
	j := slices.IndexFunc(d.file.Imports, func(spec *ast.ImportSpec) bool { return strings.Trim(spec.Path.Value, `"`) > typesPath })
	if i < 0 || j < 0 || d.function(d.entries[i]) == nil {
		return nil, fmt.Errorf("no place for %s in upstream's %s; change hack/fork/openapi.go", typesPath, openAPI)
	}
	var out bytes.Buffer
	at := 0
	for _, add := range []struct {
		before ast.Node
		text   string
	}{{d.file.Imports[j], spec}, {d.entries[i], entries}, {d.function(d.entries[i]), functions}} {
		to := d.offset(add.before.Pos())
		out.Write(d.data[at:to])
		out.WriteString(add.text)
		at = to
	}
	out.Write(d.data[at:])
	return format.Source(out.Bytes())
}
