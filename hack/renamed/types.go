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
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes-features/hack/module"
)

// modules are those whose types are stored, and of which these consist.
var modules = []string{"k8s.io/api", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator", "k8s.io/apimachinery"}

// api are the types of one version, by import path and name.
type api map[string]map[string]*structType

// structType is a struct with the fields that are encoded.
type structType struct {
	fields []field
}

// field is one field of a struct.
type field struct {
	// name is that in Go, key that in JSON; key is "" for an embedded struct whose fields
	// are those of the object.
	name, key string
	// number is that in protobuf, 0 for none.
	number int
	// typ describes the type.
	typ fieldType
}

// fieldType is the type of a field without pointers.
type fieldType struct {
	// selector is "[*]" for lists, "{*}" for maps, and "" for single values.
	selector string
	// pkg and name are those of the element's type; pkg is "" for basic types.
	pkg, name string
	// wire is the element's encoding in protobuf, such as bytes or varint.
	wire string
}

// load parses the types of a version, for example v0.36.3.
func load(ctx context.Context, version string) (api, error) {
	types := api{}
	for _, name := range modules {
		downloaded, err := module.Download(ctx, name+"@"+version)
		if err != nil {
			return nil, err
		}
		dir, err := downloaded.Dir()
		if err != nil {
			return nil, err
		}
		if err := types.add(name, dir); err != nil {
			return nil, err
		}
	}
	return types, nil
}

// add parses the packages of a module that have API types.
func (a api) add(modulePath, dir string) error {
	return filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "testdata":
			return fs.SkipDir
		case entry.IsDir(), path.Ext(name) != ".go", strings.HasSuffix(name, "_test.go"), strings.HasPrefix(entry.Name(), "zz_generated"), entry.Name() == "generated.pb.go":
			return nil
		}
		relative, err := filepath.Rel(dir, filepath.Dir(name))
		if err != nil {
			return err
		}
		source, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(source, []byte("protobuf:\"")) && !bytes.Contains(source, []byte("struct {")) {
			return err
		}
		return a.parse(path.Join(modulePath, filepath.ToSlash(relative)), name, source)
	})
}

// parse adds the structs of one file.
func (a api) parse(pkg, name string, source []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
	if err != nil {
		return err
	}
	imports := map[string]string{}
	for _, i := range file.Imports {
		of, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return err
		}
		as := path.Base(of)
		if i.Name != nil {
			as = i.Name.Name
		}
		imports[as] = of
	}
	if a[pkg] == nil {
		a[pkg] = map[string]*structType{}
	}
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			if named, ok := spec.(*ast.TypeSpec); ok {
				a[pkg][named.Name.Name] = structOf(pkg, imports, named.Type)
			}
		}
	}
	return nil
}

// structOf reads the encoded fields of a type. One that is no struct has a single field
// without key and number: what it stands for.
func structOf(pkg string, imports map[string]string, of ast.Expr) *structType {
	literal, ok := of.(*ast.StructType)
	if !ok {
		return &structType{fields: []field{{typ: typeOf(pkg, imports, of)}}}
	}
	s := &structType{}
	for _, f := range literal.Fields.List {
		if f.Tag == nil {
			continue
		}
		tag, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			continue
		}
		key, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if key == "-" || key == "" && !strings.Contains(options, "inline") && len(f.Names) > 0 {
			continue
		}
		one := field{key: key, typ: typeOf(pkg, imports, f.Type), name: key}
		if len(f.Names) > 0 {
			one.name = f.Names[0].Name
		}
		if encoding := strings.Split(reflect.StructTag(tag).Get("protobuf"), ","); len(encoding) > 1 {
			one.typ.wire = encoding[0]
			one.number, _ = strconv.Atoi(encoding[1])
		}
		s.fields = append(s.fields, one)
	}
	return s
}

// typeOf reads a type.
func typeOf(pkg string, imports map[string]string, of ast.Expr) fieldType {
	switch t := of.(type) {
	case *ast.StarExpr:
		return typeOf(pkg, imports, t.X)
	case *ast.ArrayType:
		if element, ok := t.Elt.(*ast.Ident); ok && element.Name == "byte" {
			return fieldType{name: "[]byte"}
		}
		element := typeOf(pkg, imports, t.Elt)
		element.selector = "[*]"
		return element
	case *ast.MapType:
		element := typeOf(pkg, imports, t.Value)
		element.selector = "{*}"
		return element
	case *ast.SelectorExpr:
		if in, ok := t.X.(*ast.Ident); ok {
			return fieldType{pkg: imports[in.Name], name: t.Sel.Name}
		}
	case *ast.Ident:
		if ast.IsExported(t.Name) {
			return fieldType{pkg: pkg, name: t.Name}
		}
		return fieldType{name: t.Name}
	}
	return fieldType{name: "?"}
}

// kinds are the stored ones: structs with the metadata of an object, by import path and
// name.
func (a api) kinds() []fieldType {
	var kinds []fieldType
	for _, pkg := range slices.Sorted(maps.Keys(a)) {
		for _, name := range slices.Sorted(maps.Keys(a[pkg])) {
			isKind := slices.ContainsFunc(a[pkg][name].fields, func(f field) bool { return f.key == "metadata" && f.typ.name == "ObjectMeta" }) &&
				slices.ContainsFunc(a[pkg][name].fields, func(f field) bool { return f.key == "" && f.typ.name == "TypeMeta" })
			if isKind {
				kinds = append(kinds, fieldType{pkg: pkg, name: name})
			}
		}
	}
	return kinds
}

// fields returns those of a type as they are encoded: of what it stands for, and of
// embedded structs, too.
func (a api) fields(of fieldType) []field {
	s := a[of.pkg][of.name]
	if s == nil {
		return nil
	}
	var all []field
	for _, f := range s.fields {
		if f.key == "" && f.typ.name != "TypeMeta" {
			// An embedded struct is a message of its own in protobuf if it has a number.
			all = append(all, a.fields(f.typ)...)
			continue
		}
		if f.key != "" {
			all = append(all, f)
		}
	}
	return all
}

// has returns true if objects of a resource have a field, written as for task.ClearField,
// in some version.
func (a api) has(resource schema.GroupResource, fieldPath string) bool {
	return slices.ContainsFunc(a.kinds(), func(kind fieldType) bool {
		return resourceOf(versionOf(kind.pkg), kind.name).GroupResource() == resource && a.hasPath(kind, selectors.ReplaceAllString(fieldPath, ""))
	})
}

// hasKind returns true if there is a kind in an API version, such as batch/v1.
func (a api) hasKind(apiVersion, kind string) bool {
	return slices.ContainsFunc(a.kinds(), func(k fieldType) bool {
		return k.name == kind && resourceOf(versionOf(k.pkg), k.name).GroupVersion().String() == apiVersion
	})
}

// selectors are what keys of a path select.
var selectors = regexp.MustCompile(`\[[^]]*]|\{[^}]*}`)

func (a api) hasPath(of fieldType, fieldPath string) bool {
	key, rest, more := strings.Cut(fieldPath, ".")
	for _, f := range a.fields(of) {
		if f.key == key {
			return !more || a.hasPath(f.typ, rest)
		}
	}
	return false
}

// versionOf returns the last folders of a package, such as resource/v1 of
// k8s.io/api/resource/v1.
func versionOf(pkg string) string { return path.Join(path.Base(path.Dir(pkg)), path.Base(pkg)) }

// resourceOf returns the resource of a kind in such a version.
func resourceOf(version, kind string) schema.GroupVersionResource {
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: groupOf(path.Dir(version)), Version: path.Base(version), Kind: kind})
	return plural
}

// groupOf returns the API group of a folder.
func groupOf(folder string) string {
	switch folder {
	case "core":
		return ""
	case "apps", "autoscaling", "batch", "extensions", "policy":
		return folder
	case "apiserverinternal":
		return "internal.apiserver.k8s.io"
	case "flowcontrol", "rbac":
		return map[string]string{"flowcontrol": "flowcontrol.apiserver.k8s.io", "rbac": "rbac.authorization.k8s.io"}[folder]
	default:
		return folder + ".k8s.io"
	}
}
