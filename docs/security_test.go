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
	"go/types"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rbacv1 "k8s.io/api/rbac/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/kubernetes-features/pkg/apis/features/validation"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	featuresrest "k8s.io/kubernetes-features/pkg/registry/features/rest"
)

// TestPermissionsOfTheServerFlow compares security.md with the rules that
// kube-apiserver writes.
func TestPermissionsOfTheServerFlow(t *testing.T) {
	want := map[string]string{}
	for namespace, rules := range featuresrest.FlowRules() {
		for _, rule := range rules {
			for _, resource := range rule.Resources {
				want[namespace+" "+resource] = strings.Join(rule.Verbs, ", ")
			}
		}
	}
	got := map[string]string{}
	row := regexp.MustCompile("(?m)^\\| `(kube-[a-z-]+)` \\| `([a-z/]+)` \\| ([a-z, ]+) \\| [^|]{4,} \\|$")
	for _, match := range row.FindAllStringSubmatch(section(t, page(t, "security.md"), "The server flow"), -1) {
		got[match[1]+" "+match[2]] = match[3]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("security.md differs from the rules (-rules +page):\n%s", diff)
	}
}

func TestRolesAreNamed(t *testing.T) {
	if rules := lifecycle.NamespacedRules(catalog.Features()); len(rules) > 0 {
		t.Errorf("security.md says that no task of Kubernetes needs a role in a namespace, and there are %v", rules)
	}
	text := page(t, "security.md")
	policy := featuresrest.Policy([]rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}}}, nil)
	names := map[string]bool{}
	for _, role := range policy.ClusterRoles {
		names[role.Name] = true
	}
	for _, roles := range policy.Roles {
		for _, role := range roles {
			name := role.Name
			if strings.HasPrefix(name, "system:feature-reporter:") {
				name = "system:feature-reporter:<component>"
			}
			names[name] = true
		}
	}
	for name := range names {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("security.md does not name the role %s", name)
		}
	}
}

// initial is how the code writes the value of a constant or variable at the top of
// a file, or of a field of it ("limits.others").
func initial(t *testing.T, file, name string) string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	name, field, _ := strings.Cut(name, ".")
	for _, declaration := range parsed.Decls {
		block, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range block.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok || len(value.Values) != 1 || value.Names[0].Name != name {
				continue
			}
			literal, ok := value.Values[0].(*ast.CompositeLit)
			if field == "" || !ok {
				return types.ExprString(value.Values[0])
			}
			for _, element := range literal.Elts {
				if pair := element.(*ast.KeyValueExpr); types.ExprString(pair.Key) == field {
					return types.ExprString(pair.Value)
				}
			}
		}
	}
	t.Fatalf("%s has no %s %s; this test does not understand the code any more", file, name, field)
	return ""
}

// TestAnswersOf5xx compares their numbers with those that the test of malformed
// requests holds.
func TestAnswersOf5xx(t *testing.T) {
	const file = "test/e2e_features/api/hostile/server_test.go"
	source := page(t, filepath.Join(root, file))
	failing := regexp.MustCompile(`var failing = map\[int\]int\{(.*)\}\n`).FindStringSubmatch(source)
	if failing == nil {
		t.Fatalf("%s has no failing; this test does not understand the code any more", file)
	}
	want := map[string]string{"500, 504 or none": initial(t, file, "hangUps")}
	for pair := range strings.SplitSeq(failing[1], ", ") {
		code, n, _ := strings.Cut(pair, ": ")
		want[code] = n
	}
	text := section(t, page(t, "security.md"), "Malformed requests")
	got, sum := map[string]string{}, 0
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]*\b5[^|]*) \| ([0-9]+) \| [^|]{4,} \|$`).FindAllStringSubmatch(text, -1) {
		got[row[1]] = row[2]
		n, err := strconv.Atoi(row[2])
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("security.md differs from the test (-test +page):\n%s", diff)
	}
	if total := fmt.Sprintf(" %d are answered with 5xx", sum); !strings.Contains(text, total) {
		t.Errorf("security.md does not say %q", total)
	}
}

// TestLimits compares all limits with the code that holds them.
func TestLimits(t *testing.T) {
	text := section(t, page(t, "security.md"), "Limits")
	thousands := func(n int) string {
		s := strconv.Itoa(n)
		if len(s) > 3 {
			s = s[:len(s)-3] + "," + s[len(s)-3:]
		}
		return s
	}
	number := func(file, name string) int {
		t.Helper()
		n, err := strconv.Atoi(initial(t, file, name))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	// How the page writes a period that the code has.
	period := func(file, name string) string {
		t.Helper()
		source := initial(t, file, name)
		text, ok := map[string]string{"time.Hour": "an hour", "time.Minute": "a minute"}[source]
		if !ok {
			t.Fatalf("%s of %s is %s; say here how security.md writes that", name, file, source)
		}
		return text
	}
	const storage = "pkg/registry/features/featurereport/storage/storage.go"
	want := []string{
		fmt.Sprintf("| reports of one identity without a node, in one namespace | %s |", thousands(number(storage, "defaultLimits.others"))),
		fmt.Sprintf("| reports of one identity with nodes, in one namespace | %s |", thousands(number(storage, "defaultLimits.onNodes"))),
		fmt.Sprintf("| features in a report | %s, their names %d KiB together |", thousands(validation.MaxReportedFeatures), validation.MaxReportedNames>>10),
		fmt.Sprintf("| labels and annotations of a report | %d KiB |", validation.MaxReportMetadata>>10),
		fmt.Sprintf("| the name of a process in its report | %d characters |", utilvalidation.DNS1123LabelMaxLength),
		fmt.Sprintf("| a Feature or a report as a whole | %d MiB |", validation.MaxObjectSize>>20),
		fmt.Sprintf("| times in a Feature's status | in the years 0 to %d |", number("pkg/apis/features/validation/time.go", "lastYear")),
		fmt.Sprintf("| rows of `status.uses` that the server flow writes | %d |", tracker.MaxRows),
		fmt.Sprintf("| owners and finalizers of a report | %d |", validation.MaxReportOwners),
		fmt.Sprintf("| reports of lost processes, and Leases of processes that never reported | kept for %s, then deleted;", period(library+"/lifecycle/tracker/retention.go", "ReportRetention")),
		fmt.Sprintf("| writes of a reporter | one %s,", period(library+"/apis/features/v1alpha1/pacing.go", "ReportPeriod")),
		fmt.Sprintf("| earlier processes of a report that it is remembered of what they asked for | %d |", number(library+"/lifecycle/tracker/predecessors.go", "maxPredecessors")),
		fmt.Sprintf("| writes of a task | through the API %d to %d under way, as many as keep the server just busy, within API priority and fairness; in storage 1 to %d,",
			number(library+"/lifecycle/task/writelimiter.go", "fewWriters"), number(library+"/lifecycle/task/writelimiter.go", "clearWorkers"), number(library+"/lifecycle/task/editlimiter.go", "mostEdits")),
	}
	for _, row := range want {
		if !strings.Contains(text, row) {
			t.Errorf("security.md does not have the row %q", row)
		}
	}
	// Below the heading of the table and its line.
	if got := strings.Count(text, "\n| ") - 2; got != len(want) {
		t.Errorf("security.md has %d limits, this test looks at %d", got, len(want))
	}
}
