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
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/prometheus/feature"
	_ "k8s.io/component-base/metrics/prometheus/workqueue" // metrics of queues
)

// root is the repository.
const root = ".."

// metric is one of this project, as the code or a page has it.
type metric struct {
	Type, Stability string
	Labels          []string
}

// source reads one package for the metrics that it defines.
type source struct {
	set *token.FileSet
	// constants are the package's strings by name.
	constants map[string]string
	// found has the metrics by the name of their variable.
	found map[string]definition
	// registered are the variables that a registry is given.
	registered map[string]bool
}

type definition struct {
	name   string
	metric metric
	at     token.Position
}

// definedMetrics are the metrics that the code defines. It reads the source, as
// Kubernetes' test/instrumentation does: a metric vector shows nothing before it
// has a value. All that are defined have to be registered.
func definedMetrics(t *testing.T) map[string]metric {
	t.Helper()
	defined := map[string]metric{}
	for _, dir := range packages(t) {
		s := &source{set: token.NewFileSet(), constants: map[string]string{}, found: map[string]definition{}, registered: map[string]bool{}}
		s.read(t, dir)
		for variable, d := range s.found {
			if !s.registered[variable] {
				t.Errorf("%s: %s is defined and never registered", d.at, d.name)
			}
			if _, twice := defined[d.name]; twice {
				t.Errorf("%s: %s is defined twice", d.at, d.name)
			}
			defined[d.name] = d.metric
		}
	}
	if len(defined) == 0 {
		t.Fatal("no metric was found; this test does not understand the code any more")
	}
	return defined
}

// packages are the directories that have Go files, without those of modules below
// others: the example operator.
func packages(t *testing.T) []string {
	t.Helper()
	dirs := map[string]bool{}
	for _, top := range []string{"cmd", "pkg", "staging"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && filepath.Ext(path) == ".go" {
				dirs[filepath.Dir(path)] = true
			}
			if err == nil && entry.IsDir() && path != filepath.Join(root, library) {
				if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
					return fs.SkipDir
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return slices.Sorted(maps.Keys(dirs))
}

func (s *source) read(t *testing.T, dir string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	uses := false
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
		for _, i := range file.Imports {
			uses = uses || i.Path.Value == `"k8s.io/component-base/metrics"`
		}
	}
	if !uses {
		return
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool { s.constant(n); return true })
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool { s.note(t, n); return true })
	}
}

// constant notes string constants.
func (s *source) constant(n ast.Node) {
	if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
		for i, name := range spec.Names {
			if literal, ok := spec.Values[i].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				s.constants[name.Name], _ = strconv.Unquote(literal.Value)
			}
		}
	}
}

var constructor = regexp.MustCompile(`^New(Counter|Gauge|Histogram|Summary|TimingHistogram)(Vec|Func)?$`)

// note notes definitions and registrations.
func (s *source) note(t *testing.T, n ast.Node) {
	switch n := n.(type) {
	case *ast.ValueSpec:
		for i, value := range n.Values {
			if call, ok := value.(*ast.CallExpr); ok {
				if d, ok := s.definition(t, call); ok {
					d.at = s.set.Position(call.Pos())
					s.found[n.Names[i].Name] = d
				}
			}
		}
	case *ast.CallExpr:
		if selected, ok := n.Fun.(*ast.SelectorExpr); ok && strings.HasSuffix(selected.Sel.Name, "MustRegister") {
			s.register(n)
		}
	case *ast.FuncDecl:
		if n.Name.Name == "DescribeWithStability" {
			s.register(n)
		}
	}
}

func (s *source) register(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok {
			s.registered[name.Name] = true
		}
		return true
	})
}

// definition understands the constructors of component-base/metrics.
func (s *source) definition(t *testing.T, call *ast.CallExpr) (definition, bool) {
	selected, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return definition{}, false
	}
	if pkg, ok := selected.X.(*ast.Ident); !ok || pkg.Name != "metrics" {
		return definition{}, false
	}
	if selected.Sel.Name == "NewDesc" {
		// Collectors of this project show gauges, as their own tests see.
		return definition{name: s.text(t, call.Args[0]), metric: metric{Type: "gauge", Labels: s.texts(t, call.Args[2]), Stability: selection(call.Args[4])}}, true
	}
	match := constructor.FindStringSubmatch(selected.Sel.Name)
	if match == nil {
		return definition{}, false
	}
	d := definition{metric: metric{Type: strings.ToLower(match[1])}}
	parts := map[string]string{}
	for _, element := range call.Args[0].(*ast.UnaryExpr).X.(*ast.CompositeLit).Elts {
		pair := element.(*ast.KeyValueExpr)
		switch key := pair.Key.(*ast.Ident).Name; key {
		case "Namespace", "Subsystem", "Name":
			parts[key] = s.text(t, pair.Value)
		case "StabilityLevel":
			d.metric.Stability = selection(pair.Value)
		}
	}
	d.name = strings.Join(slices.DeleteFunc([]string{parts["Namespace"], parts["Subsystem"], parts["Name"]}, func(p string) bool { return p == "" }), "_")
	if match[2] == "Vec" {
		d.metric.Labels = s.texts(t, call.Args[1])
	}
	return d, true
}

func selection(e ast.Expr) string {
	if selected, ok := e.(*ast.SelectorExpr); ok {
		return selected.Sel.Name
	}
	return fmt.Sprintf("%T", e)
}

// text is the value of an expression of strings and the package's constants.
func (s *source) text(t *testing.T, e ast.Expr) string {
	t.Helper()
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	case *ast.Ident:
		if text, ok := s.constants[e.Name]; ok {
			return text
		}
	case *ast.BinaryExpr:
		return s.text(t, e.X) + s.text(t, e.Y)
	}
	t.Fatalf("%s: the name of a metric or label should be made of strings and constants of its package", s.set.Position(e.Pos()))
	return ""
}

func (s *source) texts(t *testing.T, e ast.Expr) []string {
	t.Helper()
	var result []string
	if list, ok := e.(*ast.CompositeLit); ok {
		for _, element := range list.Elts {
			result = append(result, s.text(t, element))
		}
	}
	slices.Sort(result)
	return result
}

var (
	ownRow   = regexp.MustCompile("(?m)^\\| `(feature_lifecycle_[a-z_]+)` \\| ([a-z]+) \\|([^|]*)\\| ([A-Z]+) \\| .{20,} \\|$")
	otherRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [^|]{20,} \\|$")
	quoted   = regexp.MustCompile("`([^`]+)`")
)

func page(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// pages are those for users and those for contributors.
func pages(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*.md", "contributors/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("no pages %s: %v", pattern, err)
		}
		found = append(found, names...)
	}
	return found
}

// documentedMetrics are the metrics of this project that the page has.
func documentedMetrics(t *testing.T) map[string]metric {
	t.Helper()
	documented := map[string]metric{}
	for _, row := range ownRow.FindAllStringSubmatch(page(t, "metrics.md"), -1) {
		m := metric{Type: row[2], Stability: row[4]}
		for _, label := range quoted.FindAllStringSubmatch(row[3], -1) {
			m.Labels = append(m.Labels, label[1])
		}
		slices.Sort(m.Labels)
		if _, twice := documented[row[1]]; twice {
			t.Errorf("metrics.md has %s twice", row[1])
		}
		documented[row[1]] = m
	}
	return documented
}

func TestMetricsAreDocumented(t *testing.T) {
	if diff := cmp.Diff(definedMetrics(t), documentedMetrics(t)); diff != "" {
		t.Errorf("metrics.md differs from the code (-code +page):\n%s", diff)
	}
}

// otherMetrics are those of Kubernetes that the page names.
func otherMetrics(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, row := range otherRow.FindAllStringSubmatch(page(t, "metrics.md"), -1) {
		if !strings.HasPrefix(row[1], "feature_lifecycle_") {
			names = append(names, row[1])
		}
	}
	return names
}

// TestMetricsOfKubernetesExist makes a queue as the server flow does, and reads
// what the registry shows.
func TestMetricsOfKubernetesExist(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[string](), workqueue.TypedRateLimitingQueueConfig[string]{Name: "feature_lifecycle/kube-system"})
	defer queue.ShutDown()
	queue.AddRateLimited("A")
	feature.RecordFeatureInfo(t.Context(), "A", "ALPHA", true)
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, family := range families {
		shown[family.GetName()] = true
	}
	names := otherMetrics(t)
	if len(names) == 0 {
		t.Fatal("no row was found; this test does not understand the page any more")
	}
	for _, name := range names {
		if !shown[name] {
			t.Errorf("metrics.md has %s, which Kubernetes does not", name)
		}
	}
}
