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
	"encoding/json"
	"go/ast"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/kubernetes-features/hack/apispec"
)

// TestUpstreamsListsChanged: an edit that no longer finds its place says so.
func TestUpstreamsListsChanged(t *testing.T) {
	for _, base := range []string{"", "KUBE_NONSERVER_GROUP_VERSIONS=\"\n", strings.Repeat("KUBE_NONSERVER_GROUP_VERSIONS=\"\n", 2)} {
		if _, err := editGroupVersions(t.Context(), nil, []byte(base)); err == nil || !strings.Contains(err.Error(), "not once") {
			t.Errorf("%q: %v", base, err)
		}
	}
}

// TestGate: upstream's lists have the gate once, between its neighbors, with the
// versions that this repository declares.
func TestGate(t *testing.T) {
	p := withoutSpecs(t)
	declared, err := p.ourGate()
	if err != nil {
		t.Fatal(err)
	}
	want := gate + `: {
		{Version: version.MustParse("` + gateAlpha + `"), Default: false, PreRelease: featuregate.Alpha},
		{Version: version.MustParse("` + gateBeta + `"), Default: true, PreRelease: featuregate.Beta},
	}`
	if diff := cmp.Diff(strings.Fields(want), strings.Fields(declared.entry)); diff != "" {
		t.Errorf("the gate is another one than in the lists of editGateList and editGateTable (-want +got):\n%s", diff)
	}
	target := p.files["pkg/features/kube_features.go"]
	for text, neighbors := range map[string][2]string{
		"\tFeatureLifecycle featuregate.Feature = \"FeatureLifecycle\"\n": {"\tExternalServiceAccountTokenSigner featuregate.Feature = ", "\tGenericWorkload featuregate.Feature = "},
		"\t" + want + ",\n":         {"\tExternalServiceAccountTokenSigner: {\n", "\tGenericWorkload: {\n"},
		"\tFeatureLifecycle: {},\n": {"\tExternalServiceAccountTokenSigner: {},\n", "\tGenericWorkload: {},\n"},
	} {
		between(t, target, text, neighbors)
	}
	between(t, p.files[gateLists+"versioned_feature_list.yaml"], "- name: FeatureLifecycle\n", [2]string{"- name: ExternalServiceAccountTokenSigner\n", "- name: GenericWorkload\n"})
	between(t, p.files[gateLists+"feature_list.md"], "| FeatureLifecycle |", [2]string{"| ExternalServiceAccountTokenSigner |", "| GenericWorkload |"})
}

// between wants a text once, after and before others, and nothing of upstream's
// removed.
func between(t *testing.T, target *target, text string, neighbors [2]string) {
	t.Helper()
	data := string(target.data)
	before, after, ok := strings.Cut(data, text)
	if !ok || strings.Contains(after, text) || !strings.Contains(before, neighbors[0]) || !strings.Contains(after, neighbors[1]) {
		t.Errorf("%s does not have %q once, between %q and %q", target.path, text, neighbors[0], neighbors[1])
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
	p := whole(t)
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
	p := withoutSpecs(t)
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

// TestGroupVersions: the group is in that of upstream's two lists that no
// generator reads.
func TestGroupVersions(t *testing.T) {
	text := string(withoutSpecs(t).files["hack/lib/init.sh"].data)
	_, list, ok := strings.Cut(text, "\nKUBE_NONSERVER_GROUP_VERSIONS=\"\n")
	list, _, end := strings.Cut(list, "\"\n")
	if !ok || !end || !strings.Contains(list, "\n features.k8s.io/v1alpha1 \\\n") || strings.Count(text, "features.k8s.io/v1alpha1") != 1 {
		t.Errorf("features.k8s.io/v1alpha1 is not once in upstream's hack/lib/init.sh, in KUBE_NONSERVER_GROUP_VERSIONS:\n%s", list)
	}
}

// kindsOf returns the place where a definition lists the groups that have its
// type.
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
