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
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
	"k8s.io/kubernetes-features/hack/apispec"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// moved is a plan of what moves and of what is edited beside, without the API
// specs.
func moved(t *testing.T) *plan {
	t.Helper()
	base, err := findUpstream(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	p := &plan{source: root, base: base, files: map[string]*target{}}
	if err := p.moveAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	for number, edits := range [][]edit{libraryEdits, groupEdits, pluginEdits} {
		for _, e := range edits {
			if err := p.edit(t.Context(), number, e); err != nil {
				t.Fatalf("%s: %v", e.file, err)
			}
		}
	}
	return p
}

func TestWhereFilesGo(t *testing.T) {
	for file, want := range map[string]string{
		"pkg/apis/features/types.go":                                 "pkg/apis/features/types.go",
		"pkg/controlplane/apidocs/doc.go":                            "cmd/kube-apiserver/controlplane/apidocs/doc.go",
		"cmd/kube-apiserver/main.go":                                 "cmd/kube-apiserver/apiserver.go",
		"pkg/features/features.go":                                   "",
		"pkg/features/features_test.go":                              "pkg/features/feature_lifecycle_test.go",
		"test/integration/framework/framework.go":                    "test/features/framework/framework.go",
		"test/lifecycle/gates_test.go":                               "test/features/gates/gates_test.go",
		"staging/src/k8s.io/feature-lifecycle/apis/OWNERS":           "staging/src/k8s.io/feature-lifecycle/apis/OWNERS",
		"test/integration/readers/readers_test.go":                   "",
		"docs/keps/3920-finish-feature-flags/README.md":              "",
		"hack/fork/mapping.go":                                       "",
		"pkg/generated/openapi/cmd/models-schema/main.go":            "",
		"test/integration/lifecycle/lifecycle_test.go":               "test/features/lifecycle/lifecycle_test.go",
		"cmd/kubectl-feature/main.go":                                "cmd/kubectl-feature/main.go",
		"cmd/kubectl/main.go":                                        "",
		"cmd/kubemark/hollow.go":                                     "test/features/kubemark/hollow.go",
		"test/integration/versions/testdata/statefulset-before.yaml": "test/features/versions/testdata/statefulset-before.yaml",
	} {
		to, _, ok, err := destination(file)
		if err != nil {
			t.Error(err)
		}
		if ok != (want != "") || ok && to != want {
			t.Errorf("%s goes to %q (%t), want %q", file, to, ok, want)
		}
	}
	if _, _, _, err := destination("pkg/newcomer/newcomer.go"); err == nil || !strings.Contains(err.Error(), "nobody decided") {
		t.Errorf("a file that is in no table: %v", err)
	}
}

// TestTables: each entry of the tables of what moves, stays and is worded
// otherwise is about a file that is there.
func TestTables(t *testing.T) {
	listed, err := command(t.Context(), root, nil, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Split(strings.TrimRight(string(listed), "\x00"), "\x00")
	entries := slices.Collect(maps.Keys(stays))
	entries = slices.AppendSeq(entries, maps.Keys(wordings))
	for _, part := range parts {
		for _, m := range part.moves {
			entries = append(entries, m.from)
		}
	}
	for _, entry := range entries {
		if !slices.ContainsFunc(files, func(file string) bool { _, in := below(file, entry); return in }) {
			t.Errorf("no file is or is below %s, which a table of hack/fork/mapping.go or wordings.go has", entry)
		}
	}
}

func TestRewriting(t *testing.T) {
	const before = `package x

import (
	"k8s.io/kubernetes-features/pkg/controlplane"
	"k8s.io/kubernetes-features/pkg/controlplane/apidocs"
	"k8s.io/kubernetes-features/pkg/features" // the gates
	"k8s.io/kubernetes-features/test/integration/framework"
	"k8s.io/kubernetes/cmd/kubelet/app"
)

const module = "k8s.io/kubernetes-features/" // and k8s.io/kubernetes-features.
`
	const want = `package x

import (
	"k8s.io/kubernetes/cmd/kube-apiserver/controlplane"
	"k8s.io/kubernetes/cmd/kube-apiserver/controlplane/apidocs"
	"k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/pkg/features" // the gates
	"k8s.io/kubernetes/test/features/framework"
)

const module = "k8s.io/kubernetes/" // and k8s.io/kubernetes.
`
	got, err := rewrite("x.go", []byte(before))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got, err = rewrite("x.sh", []byte("# Copyright 2026 The Kubernetes Authors.\n# Copyright 2014 The Kubernetes Authors.\n"))
	if want := "# Copyright The Kubernetes Authors.\n# Copyright 2014 The Kubernetes Authors.\n"; err != nil || string(got) != want {
		t.Errorf("licences became %q, %v", got, err)
	}
	binary := []byte("k8s.io/kubernetes-features/\x00")
	if got, err := rewrite("x", binary); err != nil || string(got) != string(binary) {
		t.Errorf("a file that is no text became %q, %v", got, err)
	}
}

// TestMains: what is left of upstream's main is its licence and documentation.
func TestMains(t *testing.T) {
	const licence = "/*\nCopyright 2014\n*/\n\n"
	const theirs = licence + `// The daemon.
package main

import (
	"os"
	_ "time/tzdata" // for CronJobs

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
)

func main() {
	command := app.NewCommand()
	code := cli.Run(command)
	os.Exit(code)
}
`
	const ours = "/*\n2026\n*/\n\n// Package main is ours.\npackage main\n\nimport (\n\t_ \"k8s.io/component-base/logs/json/register\"\n\t_ \"time/tzdata\"\n)\n\nfunc main() { ours() }\n"
	got, err := replaceMain("main.go", []byte(theirs), []byte(ours))
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(ours, "package main")
	if diff := cmp.Diff(licence+"// The daemon.\npackage main"+code, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, test := range []struct{ replace, with, want string }{
		{"\t_ \"time/tzdata\" // for CronJobs\n", "", "for their effects"},
		{"cli\"\n", "cli\"\n\t_ \"k8s.io/new\"\n", "upstream imports k8s.io/component-base/logs/json/register, k8s.io/new, time/tzdata for their effects"},
		{"\tos.Exit(code)\n", "\tflush()\n\tos.Exit(code)\n", "does something else"},
		{"\tos.Exit(code)\n}\n", "\tos.Exit(code)\n}\n\nfunc init() { more() }\n", "does something else"},
		{"func main", "func init() {}\n\nfunc main", "does something else"},
		{"package main", "package x y", "no package clause"},
	} {
		if _, err := replaceMain("main.go", []byte(strings.Replace(theirs, test.replace, test.with, 1)), []byte(ours)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("upstream's main with %q for %q: %v, want %q", test.with, test.replace, err, test.want)
		}
	}
	got, err = besidePackage("x.go", []byte("/*\n2026\n*/\n\n// Package features has ours.\npackage features\n\nvar x int\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("/*\n2026\n*/\n\npackage features\n\nvar x int\n", string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestImportsAreThere: every package of the fork that a landed file imports is
// upstream's or has landed, and no part needs a later one.
func TestImportsAreThere(t *testing.T) {
	p := moved(t)
	packages := map[string]int{}
	for _, f := range p.files {
		if dir := path.Dir(f.path); path.Ext(f.path) == ".go" && !strings.HasSuffix(f.path, "_test.go") && !strings.HasPrefix(dir, "staging/") {
			if number, ok := packages[dir]; !ok || f.part < number {
				packages[dir] = f.part
			}
		}
	}
	imports := 0
	for _, f := range p.files {
		if path.Ext(f.path) != ".go" {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.path, f.data, parser.ImportsOnly)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(imported, ours) {
				t.Errorf("%s still imports %s", f.path, imported)
			}
			dir, ok := strings.CutPrefix(imported, theirs+"/")
			if !ok || p.hasPackage(dir) && packages[dir] == 0 {
				continue
			}
			imports++
			number, landed := packages[dir]
			switch {
			case !landed && !p.hasPackage(dir):
				t.Errorf("%s imports %s, which is neither upstream's nor ours", f.path, imported)
			case number > f.part && !strings.HasSuffix(f.path, "_test.go"):
				t.Errorf("%s of part %d imports %s of part %d; the series would not build in between", f.path, f.part+1, imported, number+1)
			}
		}
	}
	if imports < 100 {
		t.Errorf("only %d imports were looked at", imports)
	}
}

// TestNothingIsIgnored: upstream's .gitignore would keep an ignored file out of
// the fork's commit.
func TestNothingIsIgnored(t *testing.T) {
	identity(t)
	p := moved(t)
	ignore, err := p.base.read(".gitignore")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put(t, dir, map[string]string{".gitignore": string(ignore), "_output/x": ""})
	git(t, dir, "init", "-q")
	var names strings.Builder
	for name := range p.files {
		names.WriteString(name + "\n")
	}
	names.WriteString("_output/x\n")
	output, err := command(t.Context(), dir, strings.NewReader(names.String()), nil, "git", "check-ignore", "--stdin")
	if err != nil {
		t.Fatal(err)
	}
	if string(output) != "_output/x\n" {
		t.Errorf("ignored, of which only _output/x should be:\n%s", output)
	}
}

func TestRules(t *testing.T) {
	p := moved(t)
	type branch struct {
		Name         string `json:"name"`
		Dependencies []struct {
			Repository string `json:"repository"`
			Branch     string `json:"branch"`
		} `json:"dependencies"`
	}
	type rules struct {
		Rules []struct {
			Destination string   `json:"destination"`
			Branches    []branch `json:"branches"`
			Library     bool     `json:"library"`
		} `json:"rules"`
	}
	target := p.files["staging/publishing/rules.yaml"]
	var before, after rules
	for data, to := range map[string]*rules{string(target.base): &before, string(target.data): &after} {
		if err := yaml.Unmarshal([]byte(data), to); err != nil {
			t.Fatal(err)
		}
	}
	last := len(after.Rules) - 1
	if diff := cmp.Diff(before.Rules, after.Rules[:last]); diff != "" {
		t.Errorf("other rules changed:\n%s", diff)
	}
	got := after.Rules[last]
	if got.Destination != libraryName || !got.Library || len(got.Branches) != 2 {
		t.Fatalf("the rule is %+v", got)
	}
	var names []string
	for _, dependency := range got.Branches[1].Dependencies {
		names = append(names, dependency.Repository+" "+dependency.Branch)
	}
	const at = " release-1.36"
	want := []string{"api" + at, "apimachinery" + at, "client-go" + at, "component-base" + at, "streaming" + at}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("dependencies (-want +got):\n%s", diff)
	}
	// The bot publishes in order.
	for _, name := range names {
		if !slices.ContainsFunc(before.Rules, func(r struct {
			Destination string   `json:"destination"`
			Branches    []branch `json:"branches"`
			Library     bool     `json:"library"`
		}) bool {
			return r.Destination == strings.TrimSuffix(name, at)
		}) {
			t.Errorf("%s has no rule before", name)
		}
	}
}

// TestRestrictions: the library imports nothing that upstream's check of import
// restrictions would refuse.
func TestRestrictions(t *testing.T) {
	p := moved(t)
	var all []struct {
		BaseImportPath string   `json:"baseImportPath"`
		AllowedImports []string `json:"allowedImports"`
	}
	if err := yaml.Unmarshal(p.files["staging/publishing/import-restrictions.yaml"].data, &all); err != nil {
		t.Fatal(err)
	}
	own := all[len(all)-1]
	if own.BaseImportPath != "./"+libraryDir {
		t.Fatalf("the last restriction is %+v", own)
	}
	output, err := command(t.Context(), filepath.Join(root, libraryDir), nil, []string{"GOWORK=off"}, "go", "list", "-f", `{{join .Imports "\n"}}
{{join .TestImports "\n"}}
{{join .XTestImports "\n"}}`, "./...")
	if err != nil {
		t.Fatal(err)
	}
	for imported := range strings.FieldsSeq(string(output)) {
		if strings.HasPrefix(imported, "k8s.io/") && !slices.ContainsFunc(own.AllowedImports, func(allowed string) bool {
			return imported == allowed || strings.HasPrefix(imported, allowed+"/")
		}) {
			t.Errorf("the library imports %s, which the restrictions do not allow", imported)
		}
	}
}

// TestModules: the go command reads the edited files as they are meant.
func TestModules(t *testing.T) {
	p := moved(t)
	for kind, file := range map[string]string{"mod": "go.mod", "work": "go.work"} {
		dir := t.TempDir()
		put(t, dir, map[string]string{file: string(p.files[file].data)})
		output, err := command(t.Context(), dir, nil, []string{"GOWORK=off"}, "go", kind, "edit", "-json", file)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Require []struct{ Path, Version string }
			Replace []struct{ Old, New struct{ Path string } }
			Use     []struct{ DiskPath string }
		}
		if err := json.Unmarshal(output, &got); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(got)
		want := []string{"{k8s.io/feature-lifecycle v0.0.0}", "{{k8s.io/feature-lifecycle} {./staging/src/k8s.io/feature-lifecycle}}"}
		if kind == "work" {
			want = []string{"{./staging/src/k8s.io/feature-lifecycle}"}
		}
		for _, w := range want {
			if strings.Count(text, w) != 1 {
				t.Errorf("%s has %s %d times", file, w, strings.Count(text, w))
			}
		}
		for _, direct := range []string{"go.etcd.io/etcd/server/v3 v", "github.com/moby/sys/mountinfo v"} {
			if _, line, ok := strings.Cut(string(p.files[file].data), "\t"+direct); kind == "mod" && (!ok || strings.Contains(strings.SplitN(line, "\n", 2)[0], "indirect")) {
				t.Errorf("landed packages import %s…, which is not a direct requirement", direct)
			}
		}
		added := strings.Count(string(p.files[file].data), "\n") - strings.Count(string(p.files[file].base), "\n")
		if added != len(want) {
			t.Errorf("%s has %d lines more, want %d", file, added, len(want))
		}
	}
	library := string(p.files[libraryDir+"/go.mod"].data)
	if !strings.HasPrefix(library, "// This is a generated file. Do not edit directly.\n\nmodule k8s.io/feature-lifecycle\n") {
		t.Errorf("the library's go.mod begins otherwise than those of other staging modules:\n%.100s", library)
	}
	if strings.Contains(library, "v0.36") || !strings.Contains(library, "k8s.io/streaming => ../streaming\n") {
		t.Errorf("the library still requires published staging modules, or does not replace what they need:\n%s", library)
	}
}

// TestUpstreamsListsChanged: an edit that no longer finds its place says so.
func TestUpstreamsListsChanged(t *testing.T) {
	for _, base := range []string{"", "KUBE_NONSERVER_GROUP_VERSIONS=\"\n", strings.Repeat("KUBE_NONSERVER_GROUP_VERSIONS=\"\n", 2)} {
		if _, err := editGroupVersions(t.Context(), nil, []byte(base)); err == nil || !strings.Contains(err.Error(), "not once") {
			t.Errorf("%q: %v", base, err)
		}
	}
}

// TestGate: upstream's lists have the gate once, between its neighbours, with the
// versions that this repository declares.
func TestGate(t *testing.T) {
	p := moved(t)
	declared, err := p.ourGate()
	if err != nil {
		t.Fatal(err)
	}
	want := gate + `: {
		{Version: version.MustParse("` + gateSince + `"), Default: true, PreRelease: featuregate.Beta},
	}`
	if diff := cmp.Diff(strings.Fields(want), strings.Fields(declared.entry)); diff != "" {
		t.Errorf("the gate is another one than in the lists of editGateList and editGateTable (-want +got):\n%s", diff)
	}
	target := p.files["pkg/features/kube_features.go"]
	for text, neighbours := range map[string][2]string{
		"\tFeatureLifecycle featuregate.Feature = \"FeatureLifecycle\"\n": {"\tExternalServiceAccountTokenSigner featuregate.Feature = ", "\tGangScheduling featuregate.Feature = "},
		"\t" + want + ",\n":         {"\tExternalServiceAccountTokenSigner: {\n", "\tGangScheduling: {\n"},
		"\tFeatureLifecycle: {},\n": {"\tExternalServiceAccountTokenSigner: {},\n", "\tGangScheduling: {GenericWorkload},\n"},
	} {
		between(t, target, text, neighbours)
	}
	between(t, p.files[gateLists+"versioned_feature_list.yaml"], "- name: FeatureLifecycle\n", [2]string{"- name: ExternalServiceAccountTokenSigner\n", "- name: GangScheduling\n"})
	between(t, p.files[gateLists+"feature_list.md"], "| FeatureLifecycle |", [2]string{"| ExternalServiceAccountTokenSigner |", "| GangScheduling |"})
}

// between wants a text once, after and before others, and nothing of upstream's
// removed.
func between(t *testing.T, target *target, text string, neighbours [2]string) {
	t.Helper()
	data := string(target.data)
	before, after, ok := strings.Cut(data, text)
	if !ok || strings.Contains(after, text) || !strings.Contains(before, neighbours[0]) || !strings.Contains(after, neighbours[1]) {
		t.Errorf("%s does not have %q once, between %q and %q", target.path, text, neighbours[0], neighbours[1])
	}
	rest := strings.Split(data, "\n")
	for line := range strings.SplitSeq(string(target.base), "\n") {
		at := slices.Index(rest, line)
		if at < 0 {
			t.Fatalf("%s lost upstream's line %q", target.path, line)
		}
		rest = rest[at+1:]
	}
}

// TestSpecs: upstream's documents keep all they have, and gain our group only.
func TestSpecs(t *testing.T) {
	base, err := findUpstream(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlan(t.Context(), root, base)
	if err != nil {
		t.Fatal(err)
	}
	var before, after map[string]map[string]json.RawMessage
	target := p.files["api/"+apispec.Swagger]
	for data, to := range map[string]*map[string]map[string]json.RawMessage{string(target.base): &before, string(target.data): &after} {
		d, err := apispec.Decode([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		delete(d, "swagger")
		delete(d, "security")
		text, err := d.Encode()
		if err == nil {
			err = json.Unmarshal(text, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	added, changed := 0, 0
	for section, values := range after {
		for name, value := range values {
			existing, ok := before[section][name]
			switch {
			case !ok && strings.Contains(strings.ToLower(name), "feature"):
				added++
			case !ok:
				t.Errorf("%s gained %s, which is not of our group", section, name)
			case string(existing) != string(value):
				// Types that every group has list all groups.
				changed++
				if diff := cmp.Diff(string(existing), withoutOurs(t, value)); diff != "" {
					t.Errorf("%s %s differs by more than our group:\n%s", section, name, diff)
				}
				inOrder(t, name, value)
			}
		}
		for name := range before[section] {
			if _, ok := values[name]; !ok {
				t.Errorf("%s lost %s", section, name)
			}
		}
	}
	if added < 20 || changed == 0 {
		t.Errorf("only %d paths and definitions were added, and %d changed", added, changed)
	}
	for _, file := range []string{"api/" + apispec.Aggregated, "api/" + apispec.Groups} {
		data := string(p.files[file].data)
		if !strings.Contains(data, `"name": "features.k8s.io"`) || !strings.Contains(data, `"name": "storagemigration.k8s.io"`) {
			t.Errorf("%s does not have upstream's last group and ours", file)
		}
	}
}

// TestDefinitions: upstream's OpenAPI definitions keep all they have and gain the
// group's, in the order in which the generator writes them.
func TestDefinitions(t *testing.T) {
	p := moved(t)
	target := p.files[openAPI]
	before, err := parseDefinitions("before", target.base)
	if err != nil {
		t.Fatal(err)
	}
	after, err := parseDefinitions("after", target.data)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := parseDefinitions("ours", []byte(read(t, filepath.Join(root, openAPI))))
	if err != nil {
		t.Fatal(err)
	}
	count := func(d *definitions) int {
		n := 0
		for _, entry := range d.entries {
			if d.of(entry) == typesPath {
				n++
			}
		}
		return n
	}
	if count(ours) < 20 || count(before) != 0 || count(after) != count(ours) {
		t.Errorf("of the group are %d here, %d upstream, and %d after landing", count(ours), count(before), count(after))
	}
	if len(after.entries) != len(before.entries)+count(ours) || len(after.functions) != len(before.functions)+count(ours) {
		t.Errorf("%d entries and %d functions became %d and %d", len(before.entries), len(before.functions), len(after.entries), len(after.functions))
	}
	if !slices.IsSortedFunc(after.entries, func(a, b *ast.KeyValueExpr) int { return strings.Compare(after.of(a), after.of(b)) }) {
		t.Error("the entries are not in the order of packages")
	}
	for _, entry := range after.entries {
		if after.function(entry) == nil {
			t.Errorf("no function for %s", after.text(entry.Pos(), entry.End()))
		}
	}
	if text := string(target.data); strings.Contains(text, "ref(v1alpha1.Feature") || !strings.Contains(text, "ref(featuresv1alpha1.FeatureSpec{}") {
		t.Error("the definitions refer to the types by a name that is another package's there")
	}
	for _, taken := range []string{"import (\n\tv1 \"k8s.io/kube-aggregator\"\n\tfeaturesv1alpha1 \"x\"\n)\n", "import \"k8s.io/kube-aggregator\"\n", ""} {
		base := "package openapi\n\n" + taken + "func GetOpenAPIDefinitions() any { return map[string]any{v1.A{}.OpenAPIModelName(): f(ref)} }\n\nfunc f() {}\n"
		if _, err := editOpenAPI(t.Context(), p, []byte(base)); err == nil || !strings.Contains(err.Error(), "hack/fork/openapi.go") {
			t.Errorf("upstream's file as %q: %v", base, err)
		}
	}
}

// TestGroupVersions: of upstream's two lists the group is in the one that no
// generator reads.
func TestGroupVersions(t *testing.T) {
	text := string(moved(t).files["hack/lib/init.sh"].data)
	_, list, ok := strings.Cut(text, "\nKUBE_NONSERVER_GROUP_VERSIONS=\"\n")
	list, _, end := strings.Cut(list, "\"\n")
	if !ok || !end || !strings.Contains(list, "\n features.k8s.io/v1alpha1 \\\n") || strings.Count(text, "features.k8s.io/v1alpha1") != 1 {
		t.Errorf("features.k8s.io/v1alpha1 is not once in upstream's hack/lib/init.sh, in KUBE_NONSERVER_GROUP_VERSIONS:\n%s", list)
	}
}

// TestSums: what upstream has not comes with all its lines, what it has stays at
// its versions, and a library that needs newer ones is refused.
func TestSums(t *testing.T) {
	p := moved(t)
	target := p.files["go.sum"]
	var added []string
	for line := range strings.Lines(string(target.data)) {
		if !strings.Contains(string(target.base), line) {
			module, version := summed(line)
			added = append(added, module+" "+version)
		}
	}
	want := []string{"pgregory.net/rapid v1.3.0", "pgregory.net/rapid v1.3.0/go.mod"}
	if diff := cmp.Diff(want, added); diff != "" {
		t.Errorf("new sums (-want +got):\n%s", diff)
	}
	library := p.files[libraryDir+"/go.mod"]
	before := library.data
	for text, want := range map[string]string{
		"require github.com/spf13/pflag v1.99.0\n":     "requires newer modules than upstream " + p.base.version + ": github.com/spf13/pflag v1.99.0 (upstream's is v1.",
		"require github.com/spf13/pflag v0.0.1\n":      "",
		"require k8s.io/apimachinery v0.99.0\n":        "",
		"require (\n\tgithub.com/spf13/pflag nothing)": "go.mod",
	} {
		library.data = []byte("module x\n\n" + text)
		_, err := editSums(t.Context(), p, target.base)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("a library that says %q: %v, want %q", text, err, want)
		}
	}
	library.data = before
}

// TestDirect: no landed package imports what go.mod says only others do.
func TestDirect(t *testing.T) {
	p := moved(t)
	target := p.files["go.mod"]
	for data, want := range map[string]int{string(target.base): 2, string(target.data): 0} {
		file, err := modfile.Parse("go.mod", []byte(data), nil)
		if err != nil {
			t.Fatal(err)
		}
		direct, err := p.imported(file)
		if err != nil {
			t.Fatal(err)
		}
		var indirect []string
		for _, line := range file.Require {
			if line.Indirect && direct[line.Mod.Path] {
				indirect = append(indirect, line.Mod.Path)
			}
		}
		if len(indirect) != want {
			t.Errorf("landed packages import %v, which are indirect requirements; want %d of them", indirect, want)
		}
	}
}

// kindsOf is where a definition lists the groups that have its type.
const kindsOf = "x-kubernetes-group-version-kind"

// withoutOurs is a definition without our group, as upstream's file has it.
func withoutOurs(t *testing.T, definition json.RawMessage) string {
	t.Helper()
	d, err := apispec.Decode(definition)
	if err != nil {
		t.Fatal(err)
	}
	list, _ := d[kindsOf].([]any)
	d[kindsOf] = slices.DeleteFunc(list, func(kind any) bool { return kind.(map[string]any)["group"] == apispec.Group })
	text, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	// As it was inside of a section of the document.
	return strings.TrimSuffix(strings.ReplaceAll(string(text), "\n", "\n    "), "\n    ")
}

// inOrder wants our group where upstream's generator puts it: it sorts by group.
func inOrder(t *testing.T, name string, definition json.RawMessage) {
	t.Helper()
	var d map[string]json.RawMessage
	if err := json.Unmarshal(definition, &d); err != nil {
		t.Fatal(err)
	}
	var list []struct{ Group, Version, Kind string }
	if err := json.Unmarshal(d[kindsOf], &list); err != nil {
		t.Fatal(err)
	}
	var groups []string
	for _, kind := range list {
		groups = append(groups, kind.Group)
	}
	if !slices.IsSorted(groups) || !slices.Contains(groups, apispec.Group) {
		t.Errorf("the groups of %s are not in order: %v", name, groups)
	}
}

// TestOtherSystems: upstream type-checks all packages for Windows and macOS
// (hack/verify-typecheck.sh). What a landed file imports has a file there, too.
func TestOtherSystems(t *testing.T) {
	p := moved(t)
	for _, system := range []string{"windows", "darwin"} {
		// Packages that have files for Linux only.
		linux := map[string]bool{}
		var files []*target
		for _, f := range p.files {
			if path.Ext(f.path) != ".go" || strings.Contains(f.path, "/testdata/") {
				continue
			}
			context := build.Default
			context.GOOS, context.CgoEnabled = system, false
			context.OpenFile = func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.data)), nil }
			matches, err := context.MatchFile(path.Dir(f.path), path.Base(f.path))
			if err != nil {
				t.Fatal(err)
			}
			if matches {
				files = append(files, f)
			}
			if name := theirs + "/" + path.Dir(f.path); !strings.HasSuffix(f.path, "_test.go") {
				if only, ok := linux[name]; !ok || only {
					linux[name] = !matches && !p.hasPackage(path.Dir(f.path))
				}
			}
		}
		for _, f := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), f.path, f.data, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range parsed.Imports {
				if imported := strings.Trim(spec.Path.Value, `"`); linux[imported] {
					t.Errorf("%s is for %s, too, and imports %s, which is for Linux only", f.path, system, imported)
				}
			}
		}
		if n := len(files); n < 300 || !linux[theirs+"/cmd/local-up/process"] {
			t.Errorf("only %d files are for %s, or the processes of local clusters are not for Linux only", n, system)
		}
	}
}

// TestNames: landed files name no pages, scripts and make targets that a fork does
// not have.
func TestNames(t *testing.T) {
	p := moved(t)
	makefile, err := p.base.read("build/root/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool {
		if p.files[name] != nil || p.files[libraryDir+"/"+name] != nil {
			return true
		}
		_, err := os.Stat(filepath.Join(p.base.dir, filepath.FromSlash(name)))
		return err == nil
	}
	files := regexp.MustCompile(`(^|[^\w/.-])((docs|hack|test|api|cmd)/[\w./-]*\w\.(md|sh|go|mod|yaml))([^\w.]|\.?$|\.\s)`)
	targets := regexp.MustCompile("[\"`]make ([a-z-]+)")
	for _, f := range p.files {
		if f.base != nil || bytes.IndexByte(f.data, 0) >= 0 || strings.Contains(f.path, "/testdata/") {
			continue
		}
		for line := range strings.Lines(string(f.data)) {
			for _, match := range files.FindAllStringSubmatch(line, -1) {
				// Paths are from the root, or from the package.
				if name := match[2]; !has(name) && !has(path.Join(path.Dir(f.path), name)) {
					t.Errorf("%s names %s, which a fork does not have: %s", f.path, name, strings.TrimSpace(line))
				}
			}
			for _, match := range targets.FindAllStringSubmatch(line, -1) {
				if !strings.Contains(string(makefile), "\n"+match[1]+":") {
					t.Errorf("%s names a target that upstream's Makefile does not have: %s", f.path, strings.TrimSpace(line))
				}
			}
		}
	}
}
