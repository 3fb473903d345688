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
	"slices"
	"strings"
	"testing"

	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
)

// TestKubeletFlagz: flags are read where the configuration is not shown, and what only the
// configuration sets is not known then.
func TestKubeletFlagz(t *testing.T) {
	const path = "/api/v1/nodes/n1/proxy"
	for name, tc := range map[string]struct {
		without []string
		flagz   string
		want    string
		asked   bool
		gap     string
	}{
		"the configuration is shown": {nil, "feature-gates=A=false", "; A=true set=true by its metrics; B=false set=false by its metrics", false, ""},
		"no configuration":           {[]string{"/configz"}, "feature-gates=A=true", "; A=true set=true by its metrics; B=false set=unknown by its metrics", true, ""},
		"no metrics":                 {[]string{"/metrics"}, "feature-gates=B=false", "; A=true set=true by its configuration (configz)", false, ""},
		"flags alone":                {[]string{"/metrics", "/configz"}, "feature-gates=A=true", "; A=true set=true by its /flagz", true, "not what its configuration sets"},
		"nothing":                    {[]string{"/metrics", "/configz"}, "", "", true, "not served"},
	} {
		t.Run(name, func(t *testing.T) {
			f, config := newFake(t, 1)
			list(f, "/api/v1/nodes", "v1", "NodeList", f.node("n1", "v1.36.3", map[string]bool{"A": true, "B": false}, map[string]bool{"A": true}))
			for _, part := range tc.without {
				delete(f.answers, path+part)
			}
			if tc.flagz != "" {
				f.text(path+"/flagz", "\nkubelet flagz\n"+tc.flagz+"\n")
			}
			c, err := Observe(t.Context(), config, Options{})
			if err != nil {
				t.Fatal(err)
			}
			derived := *c
			derived.Processes = slices.Clone(c.Processes)
			derived.Derive(history.Load())
			for _, p := range derived.Processes {
				if p.Unread && !p.Complete && len(p.Gates) != 1 {
					t.Errorf("%d gates are known by a flag that sets one", len(p.Gates))
				}
			}
			at := slices.IndexFunc(c.Processes, func(p Process) bool { return p.Component == Kubelet })
			if (at >= 0) != (tc.want != "") {
				t.Fatalf("processes: %+v", c.Processes)
			}
			if at >= 0 {
				if line := summary(&Cluster{Processes: c.Processes[at : at+1]})[0]; !strings.HasSuffix(line, tc.want) && tc.want != "" {
					t.Errorf("got %q, want %q", line, tc.want)
				}
			}
			if asked := slices.Contains(f.asked, path+"/flagz"); asked != tc.asked {
				t.Errorf("flags were asked for: %t, want %t", asked, tc.asked)
			}
			gap := slices.ContainsFunc(c.Gaps, func(g Gap) bool { return g.Component == Kubelet && tc.gap != "" && strings.Contains(g.Why, tc.gap) })
			if gap != (tc.gap != "") {
				t.Errorf("gaps: %+v, want one with %q", c.Gaps, tc.gap)
			}
		})
	}
}
