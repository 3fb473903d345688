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
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// selector selects series by a label: operator is =, !=, =~ or !~.
type selector struct {
	metric, label, operator, value string
	// condition is what the same braces say of the label condition, "" for nothing.
	condition string
}

var selected = regexp.MustCompile(`([a-zA-Z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)

// selectors are those of an expression.
func selectors(expression string) []selector {
	var found []selector
	for _, match := range metricLabels.FindAllStringSubmatch(expression, -1) {
		var condition string
		first := len(found)
		for _, s := range selected.FindAllStringSubmatch(match[2], -1) {
			found = append(found, selector{metric: match[1], label: s[1], operator: s[2], value: s[3]})
			if s[1] == "condition" {
				condition = s[3]
			}
		}
		for i := first; i < len(found); i++ {
			found[i].condition = condition
		}
	}
	return found
}

// alternatives are the values that a selector is for.
func (s selector) alternatives() []string {
	if strings.HasSuffix(s.operator, "~") {
		return strings.Split(s.value, "|")
	}
	return []string{s.value}
}

func TestSelectors(t *testing.T) {
	got := selectors(`a{condition="Clean", reason=~"X|Y"} unless on (b) c{d!="e"} > d`)
	want := []selector{{"a", "condition", "=", "Clean", "Clean"}, {"a", "reason", "=~", "X|Y", "Clean"}, {"c", "d", "!=", "e", ""}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(selector{})); diff != "" {
		t.Errorf("unexpected selectors (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"X", "Y"}, got[1].alternatives()); diff != "" {
		t.Errorf("unexpected alternatives (-want +got):\n%s", diff)
	}
}

// reasonsOf are the reasons that a condition may have, "" for those of all.
func reasonsOf(t *testing.T, condition string) []string {
	t.Helper()
	var reasons []string
	for comment, names := range constants(t, "apis/features/v1alpha1/conditions.go", "Reason") {
		// The first sentence says which conditions they are of.
		first, _, _ := strings.Cut(comment, ".")
		for _, match := range conditionOfThem.FindAllStringSubmatch(first, -1) {
			if condition == "" || match[1] == condition {
				reasons = append(reasons, names...)
			}
		}
	}
	return reasons
}

// valuesOf are the values that the code gives a label of a metric; ok is false for
// labels whose values the code does not know, such as the names of features.
func valuesOf(t *testing.T, s selector) (values []string, ok bool) {
	t.Helper()
	all := func(file, prefix string) []string {
		var values []string
		for _, names := range constants(t, file, prefix) {
			values = append(values, names...)
		}
		return values
	}
	switch {
	case s.label == "job" || s.label == "feature":
		return nil, false
	case s.metric == "feature_lifecycle_condition" && s.label == "condition":
		return all("apis/features/v1alpha1/conditions.go", "Condition"), true
	case s.metric == "feature_lifecycle_condition" && s.label == "reason":
		return reasonsOf(t, s.condition), true
	case s.metric == "feature_lifecycle_remote_values" && s.label == "reason":
		return all("featuregate/remote.go", "Outcome"), true
	case s.metric == "feature_lifecycle_remote_values_origin":
		return all("agent/load.go", "From"), true
	case s.metric == "feature_lifecycle_report_requests_total":
		return all("agent/metrics.go", "result"), true
	case s.metric == "feature_lifecycle_value_writes_total":
		return all("lifecycle/controller/values.go", "result"), true
	case s.label == "state":
		return all("apis/features/v1alpha1/types.go", "State"), true
	case s.label == "enabled":
		return all("lifecycle/controller/collector.go", "enabled"), true
	case s.label == "name" && strings.HasPrefix(s.metric, "workqueue_"):
		// A queue has the name of its namespace behind the metrics' prefix.
		for _, prefix := range all("lifecycle/controller/metrics.go", "subsystem") {
			values = append(values, prefix+"/.+")
		}
		return values, true
	}
	t.Errorf("this test does not know the values of %s{%s}; add where the code has them", s.metric, s.label)
	return nil, false
}

// TestQueriesSelectLabelsOfCode: a value that no code gives selects nothing, and
// an alert that never fires looks like one that has no reason to.
func TestQueriesSelectLabelsOfCode(t *testing.T) {
	queries := map[string][]string{}
	for title, expressions := range dashboardExpressions(t) {
		queries["panel "+title] = expressions
	}
	for _, group := range alerts(t).Groups {
		for _, rule := range group.Rules {
			queries[rule.Alert] = []string{rule.Expr}
		}
	}
	checked := 0
	for where, expressions := range queries {
		for _, expression := range expressions {
			for _, s := range selectors(expression) {
				values, ok := valuesOf(t, s)
				if !ok {
					continue
				}
				for _, value := range s.alternatives() {
					checked++
					if !slices.Contains(values, value) {
						t.Errorf("%s: %s%s%q of %s is none of %q, which the code has, in %q", where, s.label, s.operator, value, s.metric, values, expression)
					}
				}
			}
		}
	}
	if checked == 0 {
		t.Error("no value was compared; this test does not understand the queries any more")
	}
}
