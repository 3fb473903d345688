/*
Copyright 2026 The Kubernetes Authors.

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
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// surface is what the packages of a module export, sorted. It reads what the
// compiler wrote of them for other packages, built without the workspace.
func surface(dir, module string) ([]string, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.DepOnly}}\t{{.Name}}\t{{.ImportPath}}\t{{.Export}}", "./...")
	var stderr bytes.Buffer
	list.Dir, list.Stderr = dir, &stderr
	list.Env = append(list.Environ(), "GOWORK=off")
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -export in %s: %w: %s", dir, err, strings.TrimSpace(stderr.String()))
	}
	files, own := map[string]string{}, []string{}
	for line := range strings.Lines(string(output)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 4)
		path := fields[2]
		files[path] = fields[3]
		below := strings.TrimPrefix(path+"/", module+"/")
		if fields[0] == "false" && fields[1] != "main" && !strings.Contains("/"+below, "/internal/") && !strings.HasPrefix(below, "examples/") {
			own = append(own, path)
		}
	}
	if len(own) == 0 {
		return nil, fmt.Errorf("%s has no package that exports anything", dir)
	}
	set := token.NewFileSet()
	compiled := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	var lines []string
	for _, path := range own {
		p := printer{set: set, module: module}
		if p.pkg, err = compiled.Import(path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		p.lines = append(p.lines, p.prefix())
		if strings.HasPrefix(p.relative(p.pkg), "client/") {
			p.lines[0] += ", generated clients"
		} else {
			p.all()
		}
		lines = append(lines, p.lines...)
	}
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

// printer writes the lines of one package.
type printer struct {
	set    *token.FileSet
	module string
	pkg    *types.Package
	lines  []string
}

func (p *printer) prefix() string { return "pkg " + p.relative(p.pkg) }

// relative is a package's path, below the module for those of the module.
func (p *printer) relative(pkg *types.Package) string {
	if pkg.Path() == p.module {
		return "."
	}
	return strings.TrimPrefix(pkg.Path(), p.module+"/")
}

// text is how a line names a type.
func (p *printer) text(t types.Type) string {
	return types.TypeString(unnamed(t), func(pkg *types.Package) string {
		if pkg == p.pkg {
			return ""
		}
		return p.relative(pkg)
	})
}

func (p *printer) add(format string, args ...any) {
	p.lines = append(p.lines, p.prefix()+", "+fmt.Sprintf(format, args...))
}

// generated is true for what a generator writes: it follows the types.
func (p *printer) generated(o types.Object) bool {
	file := filepath.Base(p.set.Position(o.Pos()).Filename)
	return strings.HasPrefix(file, "zz_generated.") || strings.HasPrefix(file, "generated.pb")
}

func (p *printer) all() {
	for _, name := range p.pkg.Scope().Names() {
		object := p.pkg.Scope().Lookup(name)
		if !object.Exported() || p.generated(object) {
			continue
		}
		switch o := object.(type) {
		case *types.Const:
			p.add("const %s %s = %s", name, p.text(o.Type()), o.Val().ExactString())
		case *types.Var:
			p.add("var %s %s", name, p.text(o.Type()))
		case *types.Func:
			p.add("func %s%s", name, p.signature(o.Signature()))
		case *types.TypeName:
			p.typeName(o)
		}
	}
}

func (p *printer) typeName(o *types.TypeName) {
	if alias, ok := o.Type().(*types.Alias); ok {
		p.add("type %s%s = %s", o.Name(), p.parameters(alias.TypeParams()), p.text(alias.Rhs()))
		return
	}
	named := o.Type().(*types.Named)
	head := "type " + o.Name() + p.parameters(named.TypeParams())
	switch t := named.Underlying().(type) {
	case *types.Struct:
		p.add("%s struct", head)
		if types.Comparable(t) {
			p.add("%s struct, comparable", head)
		}
		p.fields(head, t)
	case *types.Interface:
		p.interfaced(head, t)
		return
	default:
		p.add("%s %s", head, p.text(t))
	}
	values := types.NewMethodSet(named)
	for method := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		m := method.Obj().(*types.Func)
		if !m.Exported() || m.Pkg() != p.pkg || p.generated(m) {
			continue
		}
		receiver := "*" + o.Name()
		if values.Lookup(p.pkg, m.Name()) != nil {
			receiver = o.Name()
		}
		p.add("method (%s) %s%s", receiver, m.Name(), p.signature(m.Signature()))
	}
}

// fields are a struct's, and those that it has by embedding what only its package
// can name.
func (p *printer) fields(head string, t *types.Struct) {
	for field := range t.Fields() {
		switch {
		case field.Exported() && field.Embedded():
			p.add("%s struct, embedded %s", head, p.text(field.Type()))
		case field.Exported():
			p.add("%s struct, %s %s", head, field.Name(), p.text(field.Type()))
		case field.Embedded():
			inner := field.Type().Underlying()
			if pointer, ok := inner.(*types.Pointer); ok {
				inner = pointer.Elem().Underlying()
			}
			if inner, ok := inner.(*types.Struct); ok {
				p.fields(head, inner)
			}
		}
	}
}

// interfaced has methods that are not exported, too: with the first of them nobody
// else implements the interface.
func (p *printer) interfaced(head string, t *types.Interface) {
	p.add("%s interface", head)
	for embedded := range t.EmbeddedTypes() {
		p.add("%s interface, embeds %s", head, p.text(embedded))
	}
	for m := range t.ExplicitMethods() {
		p.add("%s interface, %s%s", head, m.Name(), p.signature(m.Signature()))
	}
}

// parameters are those of a generic type or function.
func (p *printer) parameters(list *types.TypeParamList) string {
	var texts []string
	for parameter := range list.TypeParams() {
		texts = append(texts, parameter.Obj().Name()+" "+p.text(parameter.Constraint()))
	}
	if texts == nil {
		return ""
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func (p *printer) signature(s *types.Signature) string {
	plain := types.NewSignatureType(nil, nil, nil, tuple(s.Params()), tuple(s.Results()), s.Variadic())
	return p.parameters(s.TypeParams()) + strings.TrimPrefix(p.text(plain), "func")
}

// unnamed is a type without the names of parameters, which do not matter to those
// who call.
func unnamed(t types.Type) types.Type {
	switch t := t.(type) {
	case *types.Signature:
		return types.NewSignatureType(nil, nil, nil, tuple(t.Params()), tuple(t.Results()), t.Variadic())
	case *types.Pointer:
		return types.NewPointer(unnamed(t.Elem()))
	case *types.Slice:
		return types.NewSlice(unnamed(t.Elem()))
	case *types.Array:
		return types.NewArray(unnamed(t.Elem()), t.Len())
	case *types.Map:
		return types.NewMap(unnamed(t.Key()), unnamed(t.Elem()))
	case *types.Chan:
		return types.NewChan(t.Dir(), unnamed(t.Elem()))
	}
	return t
}

func tuple(t *types.Tuple) *types.Tuple {
	var vars []*types.Var
	for v := range t.Variables() {
		vars = append(vars, types.NewParam(token.NoPos, nil, "", unnamed(v.Type())))
	}
	return types.NewTuple(vars...)
}
