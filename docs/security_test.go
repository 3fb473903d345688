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
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/kubernetes-features/pkg/apis/features/validation"
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
	text := page(t, "security.md")
	policy := featuresrest.Policy([]rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}}})
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

// TestLimits looks at those limits of reports that validation has.
func TestLimits(t *testing.T) {
	text := section(t, page(t, "security.md"), "Limits")
	thousands := func(n int) string {
		s := strconv.Itoa(n)
		if len(s) > 3 {
			s = s[:len(s)-3] + "," + s[len(s)-3:]
		}
		return s
	}
	for _, row := range []string{
		fmt.Sprintf("| features in a report | %s, their names %d KiB together |", thousands(validation.MaxReportedFeatures), validation.MaxReportedNames>>10),
		fmt.Sprintf("| labels and annotations of a report | %d KiB |", validation.MaxReportMetadata>>10),
		fmt.Sprintf("| owners and finalizers of a report | %d |", validation.MaxReportOwners),
	} {
		if !strings.Contains(text, row) {
			t.Errorf("security.md does not have the row %q", row)
		}
	}
}
