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
	"context"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// registrations are the ways in which a binary fills its feature gate.
type registrations struct {
	// packages fill it when they are initialized.
	packages []string
	// adders have a function AddFeatureGates, which is called with it.
	adders []string
	// overrides change defaults.
	overrides []override
}

// override changes the default of a gate in one binary.
type override struct {
	Gate  string
	Value bool
	// Version is the one whose default is changed, "" for the binary's own.
	Version string
}

// sharedGate is the gate of apiserver's package util/feature that binaries fill and take flags for.
const sharedGate = "DefaultMutableFeatureGate"

// registrations returns those of a binary: of all packages of Kubernetes that its main imports, directly or not.
func (r *release) registrations(ctx context.Context, main string) (registrations, error) {
	var all registrations
	seen := map[string]bool{main: true}
	for queue := []string{main}; len(queue) > 0; queue = queue[1:] {
		files, dir, ok, err := r.source(ctx, queue[0])
		if err != nil || !ok {
			// Other projects do not import the gate.
			if err != nil {
				return all, err
			}
			continue
		}
		p, err := importDir(files, dir)
		if err != nil {
			return all, fmt.Errorf("package %s: %w", queue[0], err)
		}
		for _, imported := range p.Imports {
			if !seen[imported] && strings.HasPrefix(imported, "k8s.io/") {
				seen[imported] = true
				queue = append(queue, imported)
			}
		}
		for _, name := range p.GoFiles {
			if err := all.read(files, path.Join(dir, name), queue[0]); err != nil {
				return all, err
			}
		}
	}
	slices.Sort(all.packages)
	slices.Sort(all.adders)
	all.packages, all.adders = slices.Compact(all.packages), slices.Compact(all.adders)
	return all, nil
}

// importDir returns the files and imports that a package has on linux/amd64.
func importDir(files fs.FS, dir string) (*build.Package, error) {
	at := build.Context{
		GOARCH: "amd64", GOOS: "linux", Compiler: "gc", ReleaseTags: build.Default.ReleaseTags, ToolTags: build.Default.ToolTags,
		JoinPath:      path.Join,
		SplitPathList: func(list string) []string { return strings.Split(list, ":") },
		IsAbsPath:     path.IsAbs,
		IsDir: func(name string) bool {
			info, err := fs.Stat(files, name)
			return err == nil && info.IsDir()
		},
		HasSubdir: func(string, string) (string, bool) { return "", false },
		ReadDir: func(name string) ([]fs.FileInfo, error) {
			entries, err := fs.ReadDir(files, name)
			if err != nil {
				return nil, err
			}
			var all []fs.FileInfo
			for _, e := range entries {
				if e.IsDir() {
					continue
				}
				info, err := e.Info()
				if err != nil {
					return nil, err
				}
				all = append(all, info)
			}
			return all, nil
		},
		OpenFile: func(name string) (io.ReadCloser, error) { return files.Open(name) },
	}
	return at.ImportDir(dir, 0)
}

// read adds the registrations of a file of a package.
func (s *registrations) read(files fs.FS, name, importPath string) error {
	text, err := fs.ReadFile(files, name)
	if err != nil || !strings.Contains(string(text), sharedGate) {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	imports := map[string]string{}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		local := path.Base(imported)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		imports[local] = imported
	}
	var failed error
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		callee, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		name := callee.Sel.Name
		switch {
		case isShared(callee.X) && strings.HasPrefix(name, "Override"):
			o, err := overrideOf(file, name, call.Args)
			if err != nil {
				failed = fmt.Errorf("%s overrides a default: %w; teach hack/history what that means", importPath, err)
			}
			s.overrides = append(s.overrides, o)
		case isShared(callee.X) && slices.Contains([]string{"Add", "AddVersioned", "AddDependencies"}, name),
			len(call.Args) == 1 && isShared(call.Args[0]) && fillsWhenImported(importPath):
			if !fillsWhenImported(importPath) {
				failed = fmt.Errorf("%s fills the gate; teach hack/history whether a program can import it for that alone", importPath)
			}
			s.packages = append(s.packages, importPath)
		case !slices.ContainsFunc(call.Args, isShared) || slices.Contains(readers, name):
		case name == "AddFeatureGates" && len(call.Args) == 1:
			if from, ok := callee.X.(*ast.Ident); ok && imports[from.Name] != "" {
				s.adders = append(s.adders, imports[from.Name])
			} else {
				failed = fmt.Errorf("%s calls an AddFeatureGates that is of no package; teach hack/history to call it", importPath)
			}
		default:
			failed = fmt.Errorf("%s hands the gate to %s; teach hack/history whether that fills it", importPath, name)
		}
		return true
	})
	return failed
}

// overrideOf reads a call that overrides a default. Binaries do so under the condition that the gate does not have the value, which makes no
// difference.
func overrideOf(file *ast.File, name string, args []ast.Expr) (override, error) {
	o := override{}
	if name != "OverrideDefault" && name != "OverrideDefaultAtVersion" || len(args) < 2 {
		return o, fmt.Errorf("%s is not known", name)
	}
	var err error
	if o.Gate, err = gateOf(args[0]); err != nil {
		return o, err
	}
	value, ok := args[1].(*ast.Ident)
	if !ok {
		return o, fmt.Errorf("the value is a %T", args[1])
	}
	if o.Value, err = strconv.ParseBool(value.Name); err != nil || len(args) == 2 {
		return o, err
	}
	variable, ok := args[2].(*ast.Ident)
	if !ok {
		return o, fmt.Errorf("the version is a %T", args[2])
	}
	ast.Inspect(file, func(n ast.Node) bool {
		assigned, ok := n.(*ast.AssignStmt)
		if !ok || len(assigned.Lhs) != 1 || len(assigned.Rhs) != 1 {
			return true
		}
		to, isIdent := assigned.Lhs[0].(*ast.Ident)
		call, isCall := assigned.Rhs[0].(*ast.CallExpr)
		if !isIdent || !isCall || to.Name != variable.Name || len(call.Args) != 1 {
			return true
		}
		if text, ok := call.Args[0].(*ast.BasicLit); ok {
			o.Version, err = strconv.Unquote(text.Value)
		}
		return true
	})
	if err == nil && o.Version == "" {
		err = fmt.Errorf("no text is assigned to its version %s", variable.Name)
	}
	return o, err
}

// gateOf returns the name of a gate's constant, also of another package or converted. Constants are named as
// their gates.
func gateOf(expr ast.Expr) (string, error) {
	switch e := expr.(type) {
	case *ast.Ident:
		return e.Name, nil
	case *ast.SelectorExpr:
		return e.Sel.Name, nil
	case *ast.CallExpr:
		if len(e.Args) == 1 {
			return gateOf(e.Args[0])
		}
	}
	return "", fmt.Errorf("the gate is a %T", expr)
}

// readers are functions that take the shared gate, or hand it on, and do not fill it.
var readers = []string{"ApplyFeatureGates", "ComponentGlobalsOrRegister", "Register"}

// fillsWhenImported is true for packages that have gates and little else.
func fillsWhenImported(importPath string) bool {
	base := path.Base(importPath)
	return base == "features" || base == "register"
}

// isShared is true for the shared gate, with its package or without.
func isShared(expr ast.Expr) bool {
	switch e := expr.(type) {
	case *ast.Ident:
		return e.Name == sharedGate
	case *ast.SelectorExpr:
		return e.Sel.Name == sharedGate
	default:
		return false
	}
}
