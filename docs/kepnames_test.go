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
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// kepQuotes are the texts in backquotes of the proposal, without its blocks.
func kepQuotes(t *testing.T) []string {
	t.Helper()
	var quotes []string
	for _, match := range quoted.FindAllStringSubmatch(kepText(t), -1) {
		quotes = append(quotes, match[1])
	}
	if len(quotes) < 100 {
		t.Fatalf("only %d quotes were found; this test does not understand the page any more", len(quotes))
	}
	return quotes
}

// upstreamMetrics are the metrics of Kubernetes that only the proposal names, with
// the file of k8s.io/apiserver that defines them and what it calls them.
var upstreamMetrics = map[string][2]string{
	"apiserver_flowcontrol_rejected_requests_total":  {"pkg/util/flowcontrol/metrics/metrics.go", `"rejected_requests_total"`},
	"apiserver_flowcontrol_current_inqueue_requests": {"pkg/util/flowcontrol/metrics/metrics.go", `"current_inqueue_requests"`},
	"apiserver_longrunning_requests":                 {"pkg/endpoints/metrics/metrics.go", `"longrunning_requests"`},
}

// TestKEPNamesMetrics that are registered, with labels that they have.
func TestKEPNamesMetrics(t *testing.T) {
	defined, others := definedMetrics(t), otherMetrics(t)
	metrics := regexp.MustCompile(`\b((?:feature_lifecycle|workqueue|apiserver|kubernetes_feature)_[a-z_]+)(?:\{([^}]*)\})?`)
	found := 0
	for _, quote := range kepQuotes(t) {
		for _, match := range metrics.FindAllStringSubmatch(quote, -1) {
			found++
			m, ours := defined[match[1]]
			if !ours {
				_, upstreams := upstreamMetrics[match[1]]
				if !upstreams && !slices.Contains(others, match[1]) {
					t.Errorf("there is no metric %s", match[1])
				}
				continue
			}
			for _, label := range matcher.FindAllStringSubmatch(texts.ReplaceAllString(match[2], ""), -1) {
				if !slices.Contains(m.Labels, label[1]) {
					t.Errorf("%s has no label %s", match[1], label[1])
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d metrics were found; this test does not understand the page any more", found)
	}
	dir := moduleDir(t, "k8s.io/apiserver")
	for name, at := range upstreamMetrics {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(at[0])))
		if err != nil || !strings.Contains(string(data), at[1]) {
			t.Errorf("Kubernetes has no metric %s: %v", name, err)
		}
	}
}

// moduleDir is where a module's source is.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("where the module %s is: %v", module, err)
	}
	return strings.TrimSpace(string(output))
}

// otherNames are the values of conditions, the gate of an operator in examples, and
// types of apimachinery.
var otherNames = []string{"True", "False", "Unknown", "Widgets", "ListMeta"}

// TestKEPNamesThings: a name in backquotes is a gate, a condition, reason, event,
// state, an alert, a kind, a test, or an exported name of the code.
func TestKEPNamesThings(t *testing.T) {
	known := map[string]bool{}
	gates, err := catalog.Gates()
	if err != nil {
		t.Fatal(err)
	}
	for name := range gates.GetAll() {
		known[string(name)] = true
	}
	for kind := range legacyscheme.Scheme.AllKnownTypes() {
		known[kind.Kind] = true
	}
	for _, group := range alerts(t).Groups {
		for _, rule := range group.Rules {
			known[rule.Alert] = true
		}
	}
	for _, names := range testsBelow(t, "cmd", "docs", "pkg", "staging", "test") {
		for _, name := range names {
			known[name] = true
		}
	}
	for _, dir := range packages(t) {
		exported(t, dir, known)
	}
	for _, name := range otherNames {
		known[name] = true
	}
	name := regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)
	found := 0
	for _, quote := range kepQuotes(t) {
		if name.MatchString(quote) {
			found++
			if !known[quote] {
				t.Errorf("nothing has the name %s", quote)
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d names were found; this test does not understand the page any more", found)
	}
}

// exported notes the exported names of a package, of fields too, and the values of
// its string constants.
func exported(t *testing.T, dir string, known map[string]bool) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range names {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				known[n.Name.Name] = true
				return false
			case *ast.TypeSpec:
				known[n.Name.Name] = true
			case *ast.Field:
				for _, name := range n.Names {
					known[name.Name] = true
				}
			case *ast.ValueSpec:
				for i, name := range n.Names {
					known[name.Name] = true
					if i < len(n.Values) {
						if literal, ok := n.Values[i].(*ast.BasicLit); ok && literal.Kind == token.STRING {
							text, _ := strconv.Unquote(literal.Value)
							known[text] = true
						}
					}
				}
			}
			return true
		})
	}
}

// TestKEPNamesFields that the kinds of the group have.
func TestKEPNamesFields(t *testing.T) {
	fields := regexp.MustCompile(`^(spec|status)\.([a-zA-Z]+)`)
	for _, quote := range kepQuotes(t) {
		if match := fields.FindStringSubmatch(quote); match != nil && !hasField(match[1], match[2]) {
			t.Errorf("nothing has the field %s.%s", match[1], match[2])
		}
	}
}

// hasField is true for a field of the spec or status of a kind of the group.
func hasField(part, name string) bool {
	parts := map[string][]any{
		"spec":   {v1alpha1.FeatureSpec{}, v1alpha1.FeatureReportSpec{}, v1alpha1.FeaturePlanSpec{}},
		"status": {v1alpha1.FeatureStatus{}, v1alpha1.FeaturePlanStatus{}, v1alpha1.FeatureCleanupStatus{}},
	}
	for _, of := range parts[part] {
		for i := range reflect.TypeOf(of).NumField() {
			if tag, _, _ := strings.Cut(reflect.TypeOf(of).Field(i).Tag.Get("json"), ","); tag == name {
				return true
			}
		}
	}
	return false
}

// TestKEPListsLimitations: what the text says is lacking is lacking still. Whoever mends
// it takes it out of the text, and here.
func TestKEPListsLimitations(t *testing.T) {
	text := strings.Join(strings.Fields(kepText(t)), " ")
	for _, weak := range []struct {
		says, in, code string
		// lacks is true when the code is weak for what is not in it.
		lacks bool
	}{
		{says: "finds rules only where their API is served", in: "pkg/featurelifecycle/catalog", code: `lifecycle\.WaitForNone\(deviceTaintRules, `},
		{says: "there is no schema for what else the flow does", in: "pkg/registry/features/rest", code: `Resources: \[\]string\{"\*"`, lacks: true},
		{says: "there is no schema for what else the flow does", in: "cmd/kube-apiserver/controlplane", code: `flowcontrolv1\.UserSubject`, lacks: true},
		{says: "by the in-tree migrator | not so far |", in: "pkg/featurelifecycle/catalog", code: `lifecycle\.MigrateStorage`, lacks: true},
		{says: "that a feature brings | not so far |", in: "pkg/featurelifecycle/catalog", code: `lifecycle\.(Apply|Remove)\(`, lacks: true},
		{says: "The catalog clears no field of a pod template", in: "pkg/featurelifecycle/catalog", code: `lifecycle\.ClearPodTemplates`, lacks: true},
	} {
		if !strings.Contains(text, weak.says) {
			t.Errorf("the text does not say %q", weak.says)
		}
		if found := inSource(t, weak.in, regexp.MustCompile(weak.code)); found == weak.lacks {
			t.Errorf("%s: whether it has %q is %t; the text says %q", weak.in, weak.code, found, weak.says)
		}
	}
}

// inSource is true when a Go file of a folder that is no test has the text.
func inSource(t *testing.T, dir string, text *regexp.Regexp) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no Go files in %s: %v", dir, err)
	}
	return slices.ContainsFunc(files, func(name string) bool {
		return !strings.HasSuffix(name, "_test.go") && text.MatchString(page(t, name))
	})
}
