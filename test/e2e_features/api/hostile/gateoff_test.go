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

package hostile

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestWithoutTheSystem sends requests to a server that does not have the group: it
// responds as upstream's does for an unknown group.
func TestWithoutTheSystem(t *testing.T) {
	w := start(t, "FeatureLifecycle=false")
	rows := map[string]row{
		"a list":                       {path: features},
		"a creation":                   {method: "POST", path: features, body: feature("A", "")},
		"a report":                     {method: "POST", path: reports, body: reportOf("")},
		"a report by apply":            {method: "PATCH", path: reports + "/app.new?fieldManager=m", contentType: apply, body: reportOf("")},
		"a plan":                       {method: "POST", path: known + "/plan", body: plan(`"enabled":true`)},
		"a watch":                      {path: features + "?watch=1&resourceVersion=x"},
		"all reports deleted":          {method: "DELETE", path: reports},
		"a body that is none":          {method: "POST", path: features, body: "{"},
		"the group":                    {path: "/apis/features.k8s.io"},
		"its document":                 {path: "/openapi/v3/apis/features.k8s.io/v1alpha1"},
		"another path's slash escaped": {path: "/apis/features.k8s.io%2fv1alpha1"},
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		t.Run(name, func(t *testing.T) {
			r := rows[name]
			code, body := w.send(t, r)
			t.Logf("%d: %s", code, short(body))
			if code != http.StatusNotFound {
				t.Errorf("the answer is %d, want 404: %s", code, short(body))
			}
			r.path = strings.Replace(r.path, "features.k8s.io", "unknown.k8s.io", 1)
			if twin, twinBody := w.send(t, r); code != twin || body != strings.ReplaceAll(twinBody, "unknown.k8s.io", "features.k8s.io") {
				t.Errorf("for an unknown group it is %d: %s", twin, short(twinBody))
			}
		})
	}
	t.Run("a Feature as something else", func(t *testing.T) {
		r := row{method: "POST", path: configs, body: feature("A", ""), code: 400, says: "Feature"}
		code, body := w.send(t, r)
		r.check(t, code, body)
	})
	w.checkFailures(t)
	w.checkServer(t)
}
