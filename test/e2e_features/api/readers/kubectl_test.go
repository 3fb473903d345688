//go:build linux

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

package readers

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// table reads what kubectl printed: the columns, and the cells of each row by the
// name in the first column.
func table(output string) (columns []string, rows map[string][]string) {
	rows = map[string][]string{}
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	columns = strings.Fields(lines[0])
	// Cells may be empty, so they are cut where the columns begin.
	for _, line := range lines[1:] {
		var cells []string
		for i, column := range columns {
			begin, end := begins(lines[0], column), len(line)
			if i+1 < len(columns) {
				end = min(end, begins(lines[0], columns[i+1]))
			}
			cells = append(cells, strings.TrimSpace(line[min(begin, end):end]))
		}
		rows[cells[0]] = cells
	}
	return columns, rows
}

// begins is where a column begins in the line of all.
func begins(header, column string) int {
	if at := regexp.MustCompile(`\b` + column + `\b`).FindStringIndex(header); at != nil {
		return at[0]
	}
	return len(header)
}

var (
	// columns of design section 9: name, stage, state, configured, source, users on
	// and off, what its progress, age.
	columns     = []string{"NAME", "STAGE", "STATE", "CONFIGURED", "SOURCE", "ON", "OFF", "PROGRESS", "AGE"}
	wideColumns = append(slices.Clone(columns), "CONTROL", "DEFAULT", "VERSION", "CLEAN")
	// reportColumns are those of FeatureReports.
	reportColumns     = []string{"NAME", "COMPONENT", "VERSION", "NODE", "LIVENESS", "FEATURES", "AGE"}
	wideReportColumns = append(slices.Clone(reportColumns), "EMULATION", "USERNAME", "LEASE")
)

// plainKubectl reads features with plain kubectl: as an authenticated user
// without other permissions and, for objects that only administrators may read,
// as an administrator.
func plainKubectl(t *testing.T, c *framework.Cluster) {
	// It is asked for as soon as a server runs.
	const asked = "APIServerIdentity"
	c.WaitForFeature(asked, "a user", func(f *v1alpha1.Feature) bool {
		return slices.ContainsFunc(f.Status.Uses, func(use v1alpha1.FeatureUse) bool { return use.Count == 1 })
	})
	stranger, admin := c.Kubectl("stranger", "system:authenticated"), c.Kubectl("")
	in := "--namespace=" + metav1.NamespaceSystem
	want := []string{name, "Beta", "On", "On", "CommandLine", "0", "0", ""}

	for _, ask := range []string{"features", "feature", "feat", "features.features.k8s.io"} {
		got, rows := table(stranger.Output(t, "get", ask, in))
		if diff := cmp.Diff(columns, got); diff != "" {
			t.Fatalf("columns of get %s (-want +got)\n%s", ask, diff)
		}
		if diff := cmp.Diff(want, rows[name][:len(want)]); diff != "" {
			t.Errorf("get %s (-want +got)\n%s", ask, diff)
		}
		if row := rows[asked]; row[5] != "1" || row[6] != "0" {
			t.Errorf("get %s: %s is used by one server and has the row %q", ask, asked, row)
		}
		if len(rows) < 200 {
			t.Errorf("get %s has %d rows, want all gates", ask, len(rows))
		}
	}
	got, rows := table(stranger.Output(t, "get", "features", in, "--output=wide"))
	if diff := cmp.Diff(wideColumns, got); diff != "" {
		t.Fatalf("columns of get features --output=wide (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Local", "On", framework.Minor(c.Version()), "Unknown"}, rows[name][len(columns):]); diff != "" {
		t.Errorf("get features --output=wide (-want +got)\n%s", diff)
	}
	t.Run("category", func(t *testing.T) {
		output, complaint := stranger.Run(t, "get", "features-all", in)
		// With their values beside them, names have their kinds.
		if _, rows := table(output); rows["feature.features.k8s.io/"+name] == nil || !strings.Contains(complaint, "featurereports.features.k8s.io is forbidden") {
			t.Errorf("a stranger reads with get features-all, %s:\n%s", complaint, output)
		}
		if output = admin.Output(t, "get", "features-all", in, "--output=name"); !strings.Contains(output, "feature.features.k8s.io/"+name+"\n") || !strings.Contains(output, "featurereport.features.k8s.io/kube-apiserver.") {
			t.Errorf("get features-all:\n%s", output)
		}
	})
	t.Run("selectors", func(t *testing.T) {
		for state, is := range map[string]bool{"On": true, "Off": false, "TurningOff": false} {
			_, rows := table(stranger.Output(t, "get", "features", in, "--field-selector=status.state="+state))
			if (rows[name] != nil) != is {
				t.Errorf("--field-selector=status.state=%s has %s: %t", state, name, !is)
			}
			for _, row := range rows {
				if row[2] != state {
					t.Errorf("--field-selector=status.state=%s has the row %q", state, row)
				}
			}
		}
		if _, complaint := stranger.Run(t, "get", "features", in, "--field-selector=status.version=1.36"); !strings.Contains(complaint, "use one of [metadata.name metadata.namespace status.state status.stage status.control]") {
			t.Errorf("a selector that is not supported: %q", complaint)
		}
	})
	t.Run("describe", func(t *testing.T) { describe(t, stranger.Output(t, "describe", "feature", name, in)) })
	t.Run("explain", func(t *testing.T) {
		output := stranger.Output(t, "explain", "feature.status")
		for _, field := range []string{"conditions", "configured", "control", "default", "lockedToDefault", "rollout", "stage", "state", "stateSince", "tasks", "transition", "uses", "version"} {
			if !strings.Contains(output, "\n  "+field+"\t<") {
				t.Errorf("explain feature.status does not have %s:\n%s", field, output)
			}
		}
	})
	t.Run("reports", func(t *testing.T) {
		got, rows := table(admin.Output(t, "get", "featurereports", in, "--output=wide", "--field-selector=spec.component=kube-apiserver"))
		if diff := cmp.Diff(wideReportColumns, got); diff != "" {
			t.Fatalf("columns of get featurereports --output=wide (-want +got)\n%s", diff)
		}
		if len(rows) != 1 {
			t.Fatalf("the reports of one server are %v", rows)
		}
		for report, row := range rows {
			row[5], row[6] = "", "" // the number of gates, and the age
			if diff := cmp.Diff([]string{report, "kube-apiserver", c.Version(), "<none>", "Lease", "", "", framework.Minor(c.Version()), "system:apiserver", metav1.NamespaceSystem + "/" + report}, row); diff != "" {
				t.Errorf("get featurereports (-want +got)\n%s", diff)
			}
		}
		if got, _ := table(admin.Output(t, "get", "featurereports", in)); !slices.Equal(got, reportColumns) {
			t.Errorf("get featurereports has columns %q, want %q", got, reportColumns)
		}
		if output := admin.Output(t, "get", "featurereports", in, "--field-selector=spec.component=kubelet", "--output=name"); output != "" {
			t.Errorf("--field-selector=spec.component=kubelet has %s", output)
		}
	})
}

// maxDescribed is how wide a line of a description may be before its message.
const maxDescribed = 32

// describe looks at what kubectl's describer for all kinds makes of a Feature.
func describe(t *testing.T, output string) {
	for _, text := range []string{
		"Name:         " + name + "\n", "Kind:         Feature\n", "\nSpec:", "\nStatus:\n", "\n  State:        On\n",
		"\n  Configured:\n    Source:     CommandLine\n    Value:      true\n", "\n    Type:                  Consistent\n",
		"all live servers configure the same value\n",
	} {
		if !strings.Contains(output, text) {
			t.Errorf("kubectl describe feature does not have %q:\n%s", text, output)
		}
	}
	if strings.Contains(output, "Managed Fields") {
		t.Errorf("kubectl describe feature has managed fields:\n%s", output)
	}
	fields, _, _ := strings.Cut(output, "\nEvents:")
	for line := range strings.Lines(fields) {
		if name, _, found := strings.Cut(line, ":"); !found || len(name) > maxDescribed {
			t.Errorf("kubectl describe feature has a line that is no name and value: %q", line)
		}
	}
}

// waitForOff waits with nothing but kubectl until a feature is off that a server
// turns off meanwhile.
func waitForOff(t *testing.T, c *framework.Cluster) {
	stranger := c.Kubectl("stranger", "system:authenticated")
	feature, in := "feature/"+name, "--namespace="+metav1.NamespaceSystem
	stranger.Output(t, "wait", feature, in, "--for=jsonpath={.status.state}=Off", "--timeout="+framework.Patience.String())
	if state := stranger.Output(t, "get", feature, in, "--output=jsonpath={.status.state}"); state != "Off" {
		t.Errorf("kubectl wait said that it is Off, and it is %s", state)
	}
	if output, complaint := stranger.Run(t, "wait", feature, in, "--for=jsonpath={.status.state}=On", "--timeout=1s"); !strings.Contains(complaint, "timed out") {
		t.Errorf("kubectl wait for On says %s%s", output, complaint)
	}
}
