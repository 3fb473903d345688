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
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// rules are those of alerts.yaml, as far as tests look at them.
type rules struct {
	Groups []struct {
		Rules []struct {
			Alert       string            `json:"alert"`
			Expr        string            `json:"expr"`
			For         string            `json:"for"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"rules"`
	} `json:"groups"`
}

func alerts(t *testing.T) rules {
	t.Helper()
	var r rules
	if err := yaml.Unmarshal([]byte(page(t, "alerts.yaml")), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Groups) == 0 || len(r.Groups[0].Rules) == 0 {
		t.Fatal("alerts.yaml has no rules")
	}
	return r
}

// dashboardExpressions are the queries of dashboard.json by the title of their panel.
func dashboardExpressions(t *testing.T) map[string][]string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			ID      int    `json:"id"`
			Title   string `json:"title"`
			Type    string `json:"type"`
			GridPos struct{ X, Y, W, H int }
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal([]byte(page(t, "dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	expressions, ids := map[string][]string{}, map[int]bool{}
	for i, p := range dashboard.Panels {
		if ids[p.ID] {
			t.Errorf("the panel %q has the id %d of another", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.GridPos.W <= 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("the panel %q does not fit into 24 columns", p.Title)
		}
		for _, other := range dashboard.Panels[:i] {
			a, b := p.GridPos, other.GridPos
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("the panels %q and %q overlap", other.Title, p.Title)
			}
		}
		for _, target := range p.Targets {
			expressions[p.Title] = append(expressions[p.Title], target.Expr)
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("the panel %q shows nothing", p.Title)
		}
	}
	if len(expressions) == 0 {
		t.Fatal("dashboard.json has no queries")
	}
	return expressions
}

var (
	metricLabels = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)?\{([^}]*)\}`)
	matcher      = regexp.MustCompile(`([a-zA-Z_]+)\s*(?:=~|!~|!=|=)`)
	texts        = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	grouping     = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	durations    = regexp.MustCompile(`\[[^\]]*\]|\b[0-9]+(?:ms|[smhdwy])\b`)
	word         = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*\s*\(?`)
)

// operators are the words of PromQL that are no metrics and no functions.
var operators = []string{"and", "or", "unless", "bool", "offset"}

// metricsIn are the metrics of an expression, with the labels that it selects by.
// promtool is who understands PromQL; this tells names from everything else.
func metricsIn(expression string) (map[string][]string, []string) {
	found := map[string][]string{}
	for _, match := range metricLabels.FindAllStringSubmatch(expression, -1) {
		for _, label := range matcher.FindAllStringSubmatch(texts.ReplaceAllString(match[2], ""), -1) {
			found[match[1]] = append(found[match[1]], label[1])
		}
	}
	var groups []string
	rest := texts.ReplaceAllString(expression, "")
	for _, match := range grouping.FindAllStringSubmatch(rest, -1) {
		for label := range strings.SplitSeq(match[1], ",") {
			groups = append(groups, strings.TrimSpace(label))
		}
	}
	rest = grouping.ReplaceAllString(durations.ReplaceAllString(metricLabels.ReplaceAllString(rest, "$1 "), ""), "")
	for _, name := range word.FindAllString(rest, -1) {
		if !strings.HasSuffix(name, "(") && !slices.Contains(operators, strings.TrimSpace(name)) {
			name = strings.TrimSpace(name)
			found[name] = append(found[name], nil...)
		}
	}
	return found, groups
}

func TestMetricsIn(t *testing.T) {
	found, groups := metricsIn(`(time() - max by (feature, state) (a_b{x="1", y=~"by (z)"})) > 3600 unless on (job) rate(c:d[5m] offset 1d) or absent(e)`)
	if diff := cmp.Diff(map[string][]string{"a_b": {"x", "y"}, "c:d": nil, "e": nil}, found); diff != "" {
		t.Errorf("unexpected metrics (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"feature", "state", "job"}, groups); diff != "" {
		t.Errorf("unexpected groups (-want +got):\n%s", diff)
	}
}

// checkExpression finds metrics that no package has, and labels that a metric does
// not have.
func checkExpression(t *testing.T, where, expression string) {
	t.Helper()
	documented, others := documentedMetrics(t), otherMetrics(t)
	// What Prometheus adds to every series, and to buckets.
	known := []string{"job", "instance"}
	found, groups := metricsIn(expression)
	if len(found) == 0 {
		t.Errorf("%s: %q has no metric", where, expression)
	}
	foreign, perFlow := false, false
	for name, labels := range found {
		m, own := documented[name]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base, ok := strings.CutSuffix(name, suffix); ok && documented[base].Type == "histogram" {
				m, own = documented[base], true
				known = append(known, "le")
			}
		}
		if !own {
			foreign = true
			if !slices.Contains(others, name) {
				t.Errorf("%s: metrics.md does not have the metric %s of %q", where, name, expression)
			}
			continue
		}
		known = append(known, m.Labels...)
		perFlow = perFlow || slices.Contains(m.Labels, "namespace")
		for _, label := range labels {
			if !slices.Contains(m.Labels, label) && label != "job" && label != "instance" {
				t.Errorf("%s: %s does not have the label %s, in %q", where, name, label, expression)
			}
		}
	}
	for _, match := range grouping.FindAllStringSubmatch(texts.ReplaceAllString(expression, ""), -1) {
		// Without them, an operator's series stand for the cluster's.
		kept := strings.Split(strings.ReplaceAll(match[1], " ", ""), ",")
		if !slices.Contains(kept, "job") || perFlow && !slices.Contains(kept, "namespace") {
			t.Errorf("%s: %q does not keep job and namespace, in %q", where, match[0], expression)
		}
	}
	for _, label := range groups {
		if !foreign && !slices.Contains(known, label) {
			t.Errorf("%s: no metric of %q has the label %s", where, expression, label)
		}
	}
}

var label = regexp.MustCompile(`\$labels\.([a-z_]+)`)

func TestAlerts(t *testing.T) {
	documented := page(t, "metrics.md")
	tested := page(t, filepath.Join("testdata", "alerts.yaml"))
	for _, group := range alerts(t).Groups {
		for _, rule := range group.Rules {
			checkExpression(t, rule.Alert, rule.Expr)
			row := fmt.Sprintf("| `%s` | %s | ", rule.Alert, rule.Labels["severity"])
			if !strings.Contains(documented, row) {
				t.Errorf("metrics.md has no row %q", row)
			}
			if !strings.Contains(tested, "alertname: "+rule.Alert+"\n    exp_alerts:\n") {
				t.Errorf("testdata/alerts.yaml does not let %s fire", rule.Alert)
			}
			checkEdge(t, rule.Alert, rule.For)
			if rule.For == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("%s needs for, summary and description", rule.Alert)
			}
			_, groups := metricsIn(rule.Expr)
			for _, text := range rule.Annotations {
				for _, match := range label.FindAllStringSubmatch(text, -1) {
					if !slices.Contains(groups, match[1]) && match[1] != "instance" {
						t.Errorf("%s: the expression does not keep the label %s", rule.Alert, match[1])
					}
				}
			}
		}
	}
	for _, match := range regexp.MustCompile("(?m)^\\| `(Feature[A-Za-z]+)` \\|").FindAllStringSubmatch(documented, -1) {
		if !strings.Contains(page(t, "alerts.yaml"), "alert: "+match[1]+"\n") {
			t.Errorf("metrics.md has the alert %s, alerts.yaml does not", match[1])
		}
	}
}

// checkEdge wants an alert to be looked at a minute before it fires in the tests of
// the rules, where "for" has not passed: a shorter one would go unnoticed else, and
// a longer one where it fires.
func checkEdge(t *testing.T, alert, period string) {
	t.Helper()
	var tested struct {
		Tests []struct {
			Cases []struct {
				Time   string `json:"eval_time"`
				Alert  string `json:"alertname"`
				Alerts []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	if err := yaml.Unmarshal([]byte(page(t, filepath.Join("testdata", "alerts.yaml"))), &tested); err != nil {
		t.Fatal(err)
	}
	for _, test := range tested.Tests {
		quiet := map[time.Duration]bool{}
		for _, c := range test.Cases {
			at, err := time.ParseDuration(c.Time)
			switch {
			case err != nil:
				t.Fatal(err)
			case c.Alert != alert:
			case len(c.Alerts) == 0:
				quiet[at] = true
			case quiet[at-time.Minute]:
				return
			}
		}
	}
	t.Errorf("testdata/alerts.yaml does not look at %s a minute before it fires, so that no test notices another \"for\" than %s", alert, period)
}

func TestDashboard(t *testing.T) {
	for title, expressions := range dashboardExpressions(t) {
		for _, expression := range expressions {
			checkExpression(t, "panel "+title, expression)
		}
	}
}

// promtool finds Debian's promtool, which hack/install-packages.sh puts into _output/tools.
func promtool(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "_output", "tools", "promtool"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		return path
	}
	path, err = exec.LookPath("promtool")
	switch {
	case err == nil:
		return path
	case os.Getenv("KUBE_FEATURES_REQUIRE_ALL") == "true":
		t.Fatalf("nothing may be left out, and there is no promtool: %v; hack/install-promtool.sh installs it", err)
	default:
		t.Skip("there is no promtool; hack/install-promtool.sh takes it from Debian's package prometheus")
	}
	return ""
}

func runPromtool(t *testing.T, args ...string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), promtool(t), args...).CombinedOutput()
	if exit := (&exec.ExitError{}); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

func TestPromtoolChecksAlerts(t *testing.T) {
	runPromtool(t, "check", "rules", "alerts.yaml")
}

// TestPromtoolRunsAlerts lets every alert fire, and not fire.
func TestPromtoolRunsAlerts(t *testing.T) {
	runPromtool(t, "test", "rules", filepath.Join("testdata", "alerts.yaml"))
}

// TestPromtoolChecksTheDashboard makes a rule of each query, since promtool has no
// other way to check one. Variables are replaced as Grafana would.
func TestPromtoolChecksTheDashboard(t *testing.T) {
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var queries []rule
	for _, expressions := range dashboardExpressions(t) {
		for _, expression := range expressions {
			queries = append(queries, rule{fmt.Sprintf("query:%d", len(queries)), strings.ReplaceAll(expression, "$feature", ".*")})
		}
	}
	data, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": queries}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	runPromtool(t, "check", "rules", file)
}
