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
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

const (
	// gate is the one gate that this repository adds.
	gate = "FeatureLifecycle"
	// gateFile declares it here.
	gateFile = "pkg/features/kube_features.go"
	// gateLists are made by hack/update-featuregates.sh upstream.
	gateLists = "test/compatibility_lifecycle/reference/"
)

// declaration is the declaration of a gate: its constant with the comment, and
// its entry with the versions.
type declaration struct{ constant, entry string }

// source is a Go file with its text.
type source struct {
	data []byte
	set  *token.FileSet
	file *ast.File
}

func parse(name string, data []byte) (source, error) {
	s := source{data: data, set: token.NewFileSet()}
	var err error
	s.file, err = parser.ParseFile(s.set, name, data, parser.ParseComments)
	return s, err
}

func (s source) offset(at token.Pos) int { return s.set.Position(at).Offset }

func (s source) text(from, to token.Pos) string { return string(s.data[s.offset(from):s.offset(to)]) }

// constants calls f for each constant of one name until it returns false.
func (s source) constants(f func(name string, spec *ast.ValueSpec) bool) {
	for _, d := range s.file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, each := range group.Specs {
			if spec, ok := each.(*ast.ValueSpec); ok && len(spec.Names) == 1 && !f(spec.Names[0].Name, spec) {
				return
			}
		}
	}
}

// ourGate reads how this repository declares the gate.
func (p *plan) ourGate() (declaration, error) {
	data, err := os.ReadFile(filepath.Join(p.source, filepath.FromSlash(gateFile)))
	if err != nil {
		return declaration{}, err
	}
	s, err := parse(gateFile, data)
	if err != nil {
		return declaration{}, err
	}
	var d declaration
	s.constants(func(name string, spec *ast.ValueSpec) bool {
		if name == gate && spec.Doc != nil {
			d.constant = s.text(spec.Doc.Pos(), spec.End())
		}
		return true
	})
	ast.Inspect(s.file, func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok && isNamed(pair.Key, gate) {
			d.entry = s.text(pair.Pos(), pair.End())
		}
		return true
	})
	if d.constant == "" || d.entry == "" {
		return d, fmt.Errorf("%s does not declare %s as it used to; change hack/fork/gates.go", gateFile, gate)
	}
	return d, nil
}

func isNamed(e ast.Expr, name string) bool {
	identifier, ok := e.(*ast.Ident)
	return ok && identifier.Name == name
}

// editGates adds the gate to upstream's three sorted lists of them: constants,
// versions and dependencies. Upstream's tests of the package want it there, and
// not registered from elsewhere.
func editGates(_ context.Context, p *plan, base []byte) ([]byte, error) {
	ours, err := p.ourGate()
	if err != nil {
		return nil, err
	}
	s, err := parse("kube_features.go", base)
	if err != nil {
		return nil, err
	}
	places := map[string]int{}
	s.constants(func(name string, spec *ast.ValueSpec) bool {
		if name > gate && spec.Doc != nil {
			places["constants"] = s.offset(spec.Doc.Pos())
		}
		return places["constants"] == 0
	})
	const versions, dependencies = "defaultVersionedKubernetesFeatureGates", "defaultKubernetesFeatureGateDependencies"
	for _, list := range []string{versions, dependencies} {
		places[list] = s.placeIn(list)
	}
	for list, at := range places {
		if at == 0 {
			return nil, fmt.Errorf("no place for %s in upstream's list of %s; change hack/fork/gates.go", gate, list)
		}
	}
	if len(places) != 3 || places["constants"] > places[versions] || places[versions] > places[dependencies] {
		return nil, fmt.Errorf("upstream's lists of gates are in another order; change hack/fork/gates.go")
	}
	var out bytes.Buffer
	out.Write(base[:places["constants"]])
	out.WriteString(ours.constant + "\n\n\t")
	out.Write(base[places["constants"]:places[versions]])
	out.WriteString(ours.entry + ",\n\n\t")
	out.Write(base[places[versions]:places[dependencies]])
	out.WriteString(gate + ": {},\n\n\t")
	out.Write(base[places[dependencies]:])
	return format.Source(out.Bytes())
}

// placeIn is the offset of the first entry of a map that sorts after the gate, 0
// if there is none.
func (s source) placeIn(variable string) int {
	at := 0
	ast.Inspect(s.file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || spec.Names[0].Name != variable || len(spec.Values) != 1 {
			return true
		}
		list, ok := spec.Values[0].(*ast.CompositeLit)
		if !ok {
			return false
		}
		for _, each := range list.Elts {
			pair, ok := each.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name > gate {
				at = s.offset(pair.Pos())
				return false
			}
		}
		return false
	})
	return at
}

// editGateList adds the gate to the sorted YAML of all gates.
func editGateList(_ context.Context, _ *plan, base []byte) ([]byte, error) {
	const begin = "- name: "
	return beforeNext(base, begin, begin+gate+`
  versionedSpecs:
  - default: false
    lockToDefault: false
    preRelease: Alpha
    version: "`+gateAlpha+`"
  - default: true
    lockToDefault: false
    preRelease: Beta
    version: "`+gateBeta+`"
`)
}

// gateAlpha is the version of the gate as alpha and off, gateBeta that from which on
// it is beta and on.
const gateAlpha, gateBeta = "1.32", "1.33"

// editGateTable adds the gate to the table made from that.
func editGateTable(_ context.Context, _ *plan, base []byte) ([]byte, error) {
	const links = "[code](https://cs.k8s.io/?q=%%5Cb%[1]s%%5Cb&i=nope&files=&excludeFiles=CHANGELOG&repos=kubernetes/kubernetes) " +
		"[KEPs](https://cs.k8s.io/?q=%%5Cb%[1]s%%5Cb&i=nope&files=&excludeFiles=CHANGELOG&repos=kubernetes/enhancements)"
	row := fmt.Sprintf("| %[1]s | :ballot_box_with_check:&nbsp;%[3]s+ |  | %[2]s | %[3]s– |  |  |  | "+links+" |\n", gate, gateAlpha, gateBeta)
	// The table's head sorts before the gates that begin as it does.
	const end = "|---"
	head, body, ok := bytes.Cut(base, []byte(end))
	if !ok {
		return nil, fmt.Errorf("upstream's file has no table; change hack/fork/gates.go")
	}
	body, err := beforeNext(body, "| ", row)
	return append(append(head, end...), body...), err
}

// beforeNext puts text before the first line that begins so and continues with
// a name after the gate's.
func beforeNext(base []byte, begin, text string) ([]byte, error) {
	at := 0
	for line := range strings.Lines(string(base)) {
		if name, ok := strings.CutPrefix(line, begin); ok && name > gate {
			return append(append(bytes.Clone(base[:at]), text...), base[at:]...), nil
		}
		at += len(line)
	}
	return nil, fmt.Errorf("no gate after %s in upstream's file; change hack/fork/gates.go", gate)
}
