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

package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
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

// upstreamFlags are flags of Kubernetes, with the file of a module that adds them.
var upstreamFlags = map[string][2]string{
	"feature-gates":           {"k8s.io/component-base", "compatibility/registry.go"},
	"emulated-version":        {"k8s.io/component-base", "compatibility/registry.go"},
	"runtime-config":          {"k8s.io/apiserver", "pkg/server/options/api_enablement.go"},
	"shutdown-delay-duration": {"k8s.io/apiserver", "pkg/server/options/server_run_options.go"},
	"peer-ca-file":            {"k8s.io/kubernetes", "pkg/controlplane/apiserver/options/options.go"},
	"field-selector":          {"k8s.io/kubectl", "pkg/cmd/get/get.go"},
}

// TestKEPNamesFlags that this project's code has, or Kubernetes'.
func TestKEPNamesFlags(t *testing.T) {
	own := map[string]bool{}
	for _, dir := range []string{"cmd/kube-apiserver/controlplane", "pkg/featurelifecycle/reporting", "pkg/kubectl/feature", library + "/lifecycle/control"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no Go files in %s: %v", dir, err)
		}
		for _, name := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING && !strings.HasSuffix(name, "_test.go") {
					if text, err := strconv.Unquote(literal.Value); err == nil {
						own[text] = true
					}
				}
				return true
			})
		}
	}
	flag := regexp.MustCompile(`--([a-z][a-z-]+)`)
	found := 0
	for _, quote := range kepQuotes(t) {
		for _, match := range flag.FindAllStringSubmatch(quote, -1) {
			found++
			if own[match[1]] {
				continue
			}
			if _, ok := upstreamFlags[match[1]]; !ok {
				t.Errorf("nobody has the flag --%s", match[1])
			}
		}
	}
	dirs := map[string]string{}
	for name, at := range upstreamFlags {
		if dirs[at[0]] == "" {
			dirs[at[0]] = moduleDir(t, at[0])
		}
		data, err := os.ReadFile(filepath.Join(dirs[at[0]], filepath.FromSlash(at[1])))
		if err != nil || !strings.Contains(string(data), `"`+name+`"`) {
			t.Errorf("Kubernetes has no flag --%s in %s: %v", name, at[1], err)
		}
	}
	if found < 20 {
		t.Errorf("only %d flags were found; this test does not understand the page any more", found)
	}
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

// TestKEPHasEveryField of the API.
func TestKEPHasEveryField(t *testing.T) {
	_, text, _ := strings.Cut(kepText(t), "\n### API\n")
	text, _, _ = strings.Cut(text, "\n### ")
	said := map[string]bool{}
	for _, match := range quoted.FindAllStringSubmatch(text, -1) {
		said[match[1]] = true
	}
	for _, part := range []struct {
		prefix string
		of     any
	}{
		{"spec.", v1alpha1.FeatureSpec{}}, {"status.", v1alpha1.FeatureStatus{}}, {"", v1alpha1.FeatureRollout{}}, {"", v1alpha1.FeatureConfiguration{}},
		{"", v1alpha1.FeatureTransition{}}, {"", v1alpha1.FeatureTask{}}, {"", v1alpha1.FeatureUse{}}, {"", v1alpha1.FeatureRolloutStatus{}},
		{"spec.", v1alpha1.FeatureReportSpec{}}, {"", v1alpha1.ReportedFeature{}}, {"", v1alpha1.ReportLiveness{}},
		{"spec.", v1alpha1.FeaturePlanSpec{}}, {"", v1alpha1.FeaturePlanStatus{}}, {"", v1alpha1.FeatureCleanupStatus{}},
	} {
		kind := reflect.TypeOf(part.of)
		for i := range kind.NumField() {
			name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			if !said[part.prefix+name] {
				t.Errorf("the section API does not have %s%s of %s", part.prefix, name, kind.Name())
			}
		}
	}
	// And nothing that there is not.
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

// TestKEPCountsTheCatalogue compares the numbers that the text has with the
// declarations.
func TestKEPCountsTheCatalogue(t *testing.T) {
	gates, err := catalog.Gates()
	if err != nil {
		t.Fatal(err)
	}
	specs := gates.GetAll()
	// Of the release; what this repository adds to its gates does not count.
	added := values(t, filepath.Join("..", "..", "..", "..", "pkg", "features", "kube_features.go"))
	all := slices.DeleteFunc(catalog.All(), func(e catalog.Entry) bool { return added[string(e.Name)] != "" })
	var leave, dynamic, off, walks, ofPods int
	for _, entry := range all {
		if entry.Stateless == "" {
			leave++
		}
		if entry.Control == lifecycle.Dynamic {
			dynamic++
		}
		if len(entry.OnDisable) == 0 || specs[entry.Name].Default {
			continue
		}
		off++
		for _, task := range entry.OnDisable {
			resources := map[string]bool{}
			for _, field := range task.Fields {
				resources[field.Resource.String()] = true
			}
			walks += max(1, len(resources))
			if resources["pods"] {
				ofPods++
			}
		}
	}
	text := strings.Join(strings.Fields(kepText(t)), " ")
	for _, sentence := range []string{
		fmt.Sprintf("%d of the %d alpha and beta gates of 1.36 that are not locked can leave something in etcd", leave, len(all)),
		fmt.Sprintf("%s features of Kubernetes may be `Dynamic`", map[int]string{8: "Eight"}[dynamic]),
		fmt.Sprintf("%d features that are off declare tasks, which look at collections %d times in 30 minutes together, %d times at all pods", off, walks, ofPods),
	} {
		if !strings.Contains(text, sentence) {
			t.Errorf("the text does not say %q", sentence)
		}
	}
	if _, ok := specs[featuregate.Feature("DRADeviceTaintRules")]; !ok {
		t.Error("DRADeviceTaintRules is gone, and the text speaks of it")
	}
}

// TestKEPNamesFaults that the catalogue of disruptions has, and all that come one after
// another. Numbers of objects depend on the suite's form.
func TestKEPNamesFaults(t *testing.T) {
	source := ""
	files, err := filepath.Glob(filepath.Join(root, "test", "e2e_features", "disruption", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		source += page(t, name)
	}
	_, text, _ := strings.Cut(page(t, kepPage), "\n### Troubleshooting\n")
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| [0-9]+ \| [0-9]+ \| [0-9]+ \| (?:[0-9.]+ s|-) \|$`).FindAllStringSubmatch(text, -1) {
		listed[row[1]] = true
		for _, part := range regexp.MustCompile(`[0-9]+ objects`).Split(row[1], -1) {
			if !strings.Contains(source, strings.TrimSpace(part)) {
				t.Errorf("the fault suite does not do %q", row[1])
			}
		}
	}
	faults := regexp.MustCompile(`(?m)^\t\tname:  "([^"]+)",$`).FindAllStringSubmatch(source, -1)
	if len(faults) < 5 {
		t.Fatalf("%d faults were found in the code; this test does not understand it any more", len(faults))
	}
	for _, fault := range faults {
		if !listed[fault[1]] {
			t.Errorf("the table of faults does not have %q", fault[1])
		}
	}
	// What the text quotes, over the ends of lines.
	for _, quote := range regexp.MustCompile(`"([a-z][^"]{12,})" (?:and|in) `).FindAllStringSubmatch(strings.Join(strings.Fields(text), " "), -1) {
		if !strings.Contains(source, `"`+quote[1]+`"`) {
			t.Errorf("the fault suite does not do %q", quote[1])
		}
	}
}

// TestKEPSaysWhatIsWeak: what the text says is lacking is lacking still. Whoever mends
// it takes it out of the text, and here.
func TestKEPSaysWhatIsWeak(t *testing.T) {
	text := strings.Join(strings.Fields(kepText(t)), " ")
	for _, weak := range []struct {
		says, in, code string
		// lacks is true when the code is weak for what is not in it.
		lacks bool
	}{
		{says: "looks for rules in the API version `v1beta2` only", in: "pkg/featurelifecycle/catalog", code: `deviceTaintRules\s+= resourcev1beta2\.SchemeGroupVersion`},
		{says: "there is no schema for what else the flow does", in: "pkg/registry/features/rest", code: `Resources: \[\]string\{"\*"`, lacks: true},
		{says: "there is no schema for what else the flow does", in: "cmd/kube-apiserver/controlplane", code: `flowcontrolv1\.UserSubject`, lacks: true},
		{says: "by the in-tree migrator | not so far |", in: "pkg/featurelifecycle/catalog", code: `lifecycle\.MigrateStorage`, lacks: true},
		{says: "that a feature brings | not so far |", in: "pkg/featurelifecycle/catalog", code: `lifecycle\.(Apply|Remove)\(`, lacks: true},
		{says: "The catalogue clears no field of a pod template", in: "pkg/featurelifecycle/catalog", code: `lifecycle\.ClearPodTemplates`, lacks: true},
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

// TestKEPCoverageTable has a row for each package with code of its own, and no
// other.
func TestKEPCoverageTable(t *testing.T) {
	_, table, _ := strings.Cut(page(t, kepPage), "\n##### Unit tests\n")
	table, _, _ = strings.Cut(table, "\n##### ")
	listed := map[string]bool{}
	for _, match := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [0-9]+ \\| [0-9.]+% \\|$").FindAllStringSubmatch(table, -1) {
		listed[match[1]] = true
	}
	for _, dir := range packages(t) {
		relative, err := filepath.Rel(root, dir)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.ToSlash(relative)
		if own, ok := strings.CutPrefix(name, "staging/src/"); ok {
			name = own
		} else {
			name = "k8s.io/kubernetes-features/" + name
		}
		if statements(t, dir) && !listed[name] {
			t.Errorf("the table has no row for %s; \"make coverage\" prints one", name)
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("the table has a row for %s, which there is not", name)
	}
}

// statements is true for a package in which hand-written functions do something.
func statements(t *testing.T, dir string) (found bool) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		if entry.IsDir() {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, path), nil, parser.ParseComments)
		if err != nil || ast.IsGenerated(parsed) {
			return err
		}
		for _, declaration := range parsed.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Body != nil && len(function.Body.List) > 0 {
				found = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
