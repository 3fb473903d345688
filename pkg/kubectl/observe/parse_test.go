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

package observe

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseGates(t *testing.T) {
	for name, tc := range map[string]struct {
		values []string
		want   map[string]bool
		wrong  string
	}{
		"none":                       {nil, map[string]bool{}, ""},
		"several":                    {[]string{"A=true,B=false"}, map[string]bool{"A": true, "B": false}, ""},
		"a flag twice":               {[]string{"A=true", "A=false,C=1"}, map[string]bool{"A": false, "C": true}, ""},
		"for a component":            {[]string{"kube:A=true,mine:B=true"}, map[string]bool{"A": true}, ""},
		"as a flag prints no prefix": {[]string{":A=true"}, map[string]bool{"A": true}, ""},
		"spaces":                     {[]string{" A = true , "}, map[string]bool{"A": true}, ""},
		"no value":                   {[]string{"A"}, nil, `"A"`},
		"no boolean":                 {[]string{"A=on"}, nil, `"A=on"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseGates(tc.values...)
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Errorf("got the error %v, want one that names %s", err, tc.wrong)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestFlagValues(t *testing.T) {
	args := []string{"kube-scheduler", "--v=2", "--feature-gates=A=true,B=false", "--feature_gates", "C=true", "--feature-gates-other=D=true", "feature-gates=E=true"}
	if diff := cmp.Diff([]string{"A=true,B=false", "C=true"}, flagValues(args, gatesFlag)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestParseFlagz tries every separator that servers choose from, and the structured form.
func TestParseFlagz(t *testing.T) {
	want := map[string]bool{"A": true, "B": false}
	const head = "\nkube-apiserver flagz\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n"
	bodies := []string{`{"kind":"Flagz","apiVersion":"config.k8s.io/v1alpha1","metadata":{"name":"kube-apiserver"},"flags":{"feature-gates":"A=true,B=false","v":"2"}}`}
	for _, separator := range []string{":", ": ", "=", " "} {
		bodies = append(bodies, head+"external-hostname"+separator+"\nfeature-gates"+separator+"A=true,B=false\nv"+separator+"2\n")
	}
	for _, body := range bodies {
		got, err := parseFlagz([]byte(body))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", body, err, diff)
		}
	}
	for _, body := range []string{head, "{}", "null", `{"kind":"Flagz","flags":{"v":"2"}}`, `{"kind":"Status","status":"Success"}`} {
		if got, err := parseFlagz([]byte(body)); err == nil {
			t.Errorf("no error for %q without the flag, and %v", body, got)
		}
	}
}

const metrics = `# HELP kubernetes_feature_enabled [BETA] This metric records the data about the stage and enablement of a k8s feature.
# TYPE kubernetes_feature_enabled gauge
kubernetes_feature_enabled{name="AllAlpha",stage="ALPHA"} 0
kubernetes_feature_enabled{name="Aged",stage=""} 1
kubernetes_feature_enabled{name="Both",stage="ALPHA"} 0
kubernetes_feature_enabled{name="Both",stage="BETA"} 1
kubernetes_feature_enabled{name="Both",stage="DEPRECATED"} 1
kubernetes_feature_enabled{name="Same",stage="ALPHA"} 1
kubernetes_feature_enabled{name="Same",stage="BETA"} 1
# TYPE kubernetes_feature_enabled_other gauge
kubernetes_feature_enabled_other{name="Other"} 1
# TYPE kubernetes_build_info gauge
kubernetes_build_info{build_date="2026-01-01",git_version="v1.36.3",go_version="go1.26"} 1
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.7e+09`

func TestParseMetrics(t *testing.T) {
	// A line longer than any buffer is passed over.
	long := "apiserver_long{x=\"" + strings.Repeat("y", 1<<20) + "\"} 1\n"
	got, err := parseMetrics(strings.NewReader(long + metrics))
	if err != nil {
		t.Fatal(err)
	}
	if got.version != "v1.36.3" || got.start != 1.7e9 {
		t.Errorf("version %q, started at %g", got.version, got.start)
	}
	if diff := cmp.Diff([]string{"Both"}, got.conflicts); diff != "" {
		t.Errorf("gates with two values (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Aged", "AllAlpha", "Same"}, slices.Sorted(maps.Keys(got.gates))); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
	if v := got.gates["AllAlpha"]; v.Enabled || v.Stage != "ALPHA" {
		t.Errorf("AllAlpha is %+v", v)
	}
	if _, err := parseMetrics(strings.NewReader("go_threads 5\n")); err == nil || !strings.Contains(err.Error(), enabledMetric) {
		t.Errorf("got the error %v, want one that names the metric", err)
	}
}
