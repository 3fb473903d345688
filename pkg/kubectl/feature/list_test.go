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

package feature

import (
	"encoding/json"
	"strings"
	"testing"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

func TestList(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		golden(t, "list.txt", newSampleCluster(t).session(
			"list",
			"list -o wide",
			"list -A",
			"list --state=on",
			"list --stage=Alpha,GA --sort-by=stage",
			"list --dangling",
			"list --transitioning --sort-by=Since --no-headers",
			"list --not-default",
			"list --mismatched -o name",
			"list --state=Off --stage=GA",
			"list -n nowhere",
			"ls -A --state=Upgrading",
			"list --state=Upgrading -o json",
			"list --dangling -o yaml",
		))
	})
}

func TestListRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		golden(t, "list_errors.txt", newSampleCluster(t).session(
			"list -o table",
			"list --state=Sideways",
			"list --stage=Omega --sort-by=luck",
			"list Name",
			"list --state=",
			"list --stage=",
		))
	})
}

// TestListIsReadBack shows that programs, and the command diff, get features with
// their kind.
func TestListIsReadBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		out, code := newSampleCluster(t).run("list", "-o", "json")
		var list v1alpha1.FeatureList
		if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 {
			t.Fatalf("exit code %d: %v", code, err)
		}
		if list.Kind != "FeatureList" || len(list.Items) != 6 || list.Items[0].Kind != "Feature" || list.Items[0].APIVersion != v1alpha1.SchemeGroupVersion.String() {
			t.Errorf("%s with %d items, the first %+v", list.Kind, len(list.Items), list.Items[0].TypeMeta)
		}
	})
}

func TestColorOnTerminalOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		env  map[string]string
		want bool
	}{
		"a terminal":   {map[string]string{"NO_COLOR": "", "TERM": "xterm"}, true},
		"NO_COLOR":     {map[string]string{"NO_COLOR": "1", "TERM": "xterm"}, false},
		"a dumb one":   {map[string]string{"NO_COLOR": "", "TERM": "dumb"}, false},
		"not terminal": {map[string]string{"NO_COLOR": "", "TERM": "xterm"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			inBubble(t, func(t *testing.T) {
				c := newSampleCluster(t)
				var out string
				if name == "not terminal" {
					out, _ = c.run("list")
				} else {
					out, _ = c.onScreen("list")
				}
				if got := strings.Contains(out, "\x1b["); got != tc.want {
					t.Errorf("color is %t, want %t", got, tc.want)
				}
				if tc.want {
					golden(t, "list_color.txt", out)
				}
			})
		})
	}
}
