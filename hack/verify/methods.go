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
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
)

// maxMethods keeps the types of the controller to one purpose each.
const maxMethods = 25

// controllerFolder has the types whose methods are counted.
const controllerFolder = "staging/src/" + library + "/lifecycle/controller"

// methods finds types of the controller with too many methods, in all files together.
// Methods of an embedded type count for that type alone.
func methods(files []file) []string {
	counts := map[string]int{}
	for _, f := range files {
		if !f.isGo() || f.isTest() || path.Dir(f.path) != controllerFolder {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.path, f.data, parser.SkipObjectResolution)
		if err != nil {
			// The check of sizes reports it.
			continue
		}
		for _, declaration := range parsed.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv != nil {
				counts[receiver(function.Recv.List[0].Type)]++
			}
		}
	}
	var findings []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > maxMethods {
			findings = append(findings, fmt.Sprintf("%s: %s has %d methods, more than %d; divide it", controllerFolder, name, counts[name], maxMethods))
		}
	}
	return findings
}

// receiver returns the name of the type of a method.
func receiver(of ast.Expr) string {
	switch t := of.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	default:
		return ""
	}
}
