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
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"slices"
	"strconv"

	"sigs.k8s.io/yaml"

	"k8s.io/kubernetes-features/pkg/featurelifecycle/ahead"
)

const (
	// listFile has all gates but those of client-go, which are no gates of component-base.
	listFile = "test/compatibility_lifecycle/reference/versioned_feature_list.yaml"
	// dependenciesFile has the dependencies of all gates.
	dependenciesFile = "pkg/features/kube_features.go"
	dependenciesVar  = "defaultKubernetesFeatureGateDependencies"
	// clientFile has the gates of client-go.
	clientFile = "features/known_features.go"
	clientVar  = "defaultVersionedKubernetesFeatureGates"
)

// read returns the gates of a version from the sources of two of its modules.
func read(kubernetes, client fs.FS) ([]ahead.Gate, error) {
	gates, err := listed(kubernetes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", listFile, err)
	}
	clients, err := clientGates(client)
	if err != nil {
		return nil, fmt.Errorf("client-go's %s: %w", clientFile, err)
	}
	gates = append(gates, clients...)
	slices.SortFunc(gates, func(a, b ahead.Gate) int { return cmp.Compare(a.Name, b.Name) })
	needs, err := dependencies(kubernetes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dependenciesFile, err)
	}
	for i := range gates {
		g := &gates[i]
		g.Specs, g.Needs = holding(g.Specs), needs[g.Name]
		delete(needs, g.Name)
	}
	for name := range needs {
		return nil, fmt.Errorf("%s: %s has dependencies and is not in the list of gates", dependenciesFile, name)
	}
	return gates, nil
}

// holding drops specs that a later one replaces in every binary of the version.
func holding(specs []ahead.Spec) []ahead.Spec {
	for i := len(specs) - 1; i > 0; i-- {
		if specs[i].MinCompatibilityVersion == "" {
			return specs[i:]
		}
	}
	return specs
}

// listed returns the gates of upstream's list.
func listed(kubernetes fs.FS) ([]ahead.Gate, error) {
	data, err := fs.ReadFile(kubernetes, listFile)
	if err != nil {
		return nil, err
	}
	var list []struct {
		Name  string `json:"name"`
		Specs []struct {
			Version                 string `json:"version"`
			PreRelease              string `json:"preRelease"`
			Default                 bool   `json:"default"`
			LockToDefault           bool   `json:"lockToDefault"`
			MinCompatibilityVersion string `json:"minCompatibilityVersion"`
		} `json:"versionedSpecs"`
	}
	if err := yaml.UnmarshalStrict(data, &list); err != nil {
		return nil, err
	}
	gates := make([]ahead.Gate, len(list))
	for i, item := range list {
		gates[i].Name = item.Name
		for _, s := range item.Specs {
			gates[i].Specs = append(gates[i].Specs, ahead.Spec{
				Version: s.Version, Stage: s.PreRelease, Default: s.Default, Locked: s.LockToDefault, MinCompatibilityVersion: s.MinCompatibilityVersion,
			})
		}
	}
	return gates, nil
}

// clientGates returns the gates of client-go, from its source.
func clientGates(client fs.FS) ([]ahead.Gate, error) {
	table, err := literal(client, clientFile, clientVar)
	if err != nil {
		return nil, err
	}
	var gates []ahead.Gate
	err = eachEntry(table, func(name string, specs []ast.Expr) error {
		g := ahead.Gate{Name: name}
		for _, expr := range specs {
			spec, err := specOf(expr)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			g.Specs = append(g.Specs, spec)
		}
		gates = append(gates, g)
		return nil
	})
	return gates, err
}

// dependencies returns the gates that each gate depends on, from the source.
func dependencies(kubernetes fs.FS) (map[string][]string, error) {
	table, err := literal(kubernetes, dependenciesFile, dependenciesVar)
	if err != nil {
		return nil, err
	}
	needs := map[string][]string{}
	err = eachEntry(table, func(name string, needed []ast.Expr) error {
		for _, expr := range needed {
			other, err := constant(expr)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			needs[name] = append(needs[name], other)
		}
		slices.Sort(needs[name])
		return nil
	})
	return needs, err
}

// literal returns the composite literal of a variable of a file.
func literal(source fs.FS, file, variable string) (*ast.CompositeLit, error) {
	data, err := fs.ReadFile(source, file)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, data, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, decl := range parsed.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok || len(value.Names) != 1 || len(value.Values) != 1 || value.Names[0].Name != variable {
				continue
			}
			if table, ok := value.Values[0].(*ast.CompositeLit); ok {
				return table, nil
			}
		}
	}
	return nil, fmt.Errorf("there is no table %s; teach hack/ahead/read.go where its content is now", variable)
}

// eachEntry visits the entries of a table whose keys are constants and whose values are
// lists.
func eachEntry(table *ast.CompositeLit, visit func(name string, values []ast.Expr) error) error {
	for _, element := range table.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return fmt.Errorf("an entry is a %T, not a key and a value", element)
		}
		name, err := constant(pair.Key)
		if err != nil {
			return err
		}
		values, ok := pair.Value.(*ast.CompositeLit)
		if !ok {
			return fmt.Errorf("%s: the value is a %T, not a list", name, pair.Value)
		}
		if err := visit(name, values.Elts); err != nil {
			return err
		}
	}
	return nil
}

// constant returns the name of a gate's constant, also of another package or converted.
// Constants are named as their gates; the tests compare this with a whole build.
func constant(expr ast.Expr) (string, error) {
	switch e := expr.(type) {
	case *ast.Ident:
		return e.Name, nil
	case *ast.SelectorExpr:
		return e.Sel.Name, nil
	case *ast.CallExpr:
		if len(e.Args) == 1 {
			return constant(e.Args[0])
		}
	}
	return "", fmt.Errorf("a %T is no constant of a gate", expr)
}

// specOf reads the literal of a spec.
func specOf(expr ast.Expr) (ahead.Spec, error) {
	var spec ahead.Spec
	fields, ok := expr.(*ast.CompositeLit)
	if !ok {
		return spec, fmt.Errorf("a spec is a %T, not a literal", expr)
	}
	for _, element := range fields.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return spec, fmt.Errorf("a spec has a %T, not a field with its name", element)
		}
		name, err := constant(pair.Key)
		if err != nil {
			return spec, err
		}
		switch name {
		case "Version":
			spec.Version, err = versionOf(pair.Value)
		case "MinCompatibilityVersion":
			spec.MinCompatibilityVersion, err = versionOf(pair.Value)
		case "PreRelease":
			spec.Stage, err = constant(pair.Value)
		case "Default":
			spec.Default, err = boolOf(pair.Value)
		case "LockToDefault":
			spec.Locked, err = boolOf(pair.Value)
		default:
			err = fmt.Errorf("hack/ahead does not know it")
		}
		if err != nil {
			return spec, fmt.Errorf("field %s: %w", name, err)
		}
	}
	return spec, nil
}

// versionOf reads the call of a function that parses a version.
func versionOf(expr ast.Expr) (string, error) {
	if call, ok := expr.(*ast.CallExpr); ok && len(call.Args) == 1 {
		if text, ok := call.Args[0].(*ast.BasicLit); ok {
			return strconv.Unquote(text.Value)
		}
	}
	return "", fmt.Errorf("a %T is no version", expr)
}

func boolOf(expr ast.Expr) (bool, error) {
	name, err := constant(expr)
	if err != nil {
		return false, err
	}
	return strconv.ParseBool(name)
}
