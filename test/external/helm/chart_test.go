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

// Package helm renders the chart of docs/examples with Helm's engine, against a
// server whose Features a test makes up, or against a real cluster. It is a module
// of its own, since Helm brings other versions of Kubernetes' libraries.
package helm

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	groupVersion = "features.k8s.io/v1alpha1"
	// name is the feature that the chart asks for.
	name = "MaxUnavailableStatefulSet"
	// used is what the chart renders where the feature is on everywhere.
	used = "maxUnavailable: 2"
)

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load("../../../docs/examples/chart")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// values are what Helm gives a template. The versions are those that the server
// has, as "helm install" asks for.
func values(t *testing.T, c *chart.Chart, versions ...string) chartutil.Values {
	t.Helper()
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.APIVersions = append(capabilities.APIVersions, versions...)
	v, err := chartutil.ToRenderValues(c, nil, chartutil.ReleaseOptions{Name: "widgets", Namespace: "default", IsInstall: true}, capabilities)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// rendered is the StatefulSet.
func rendered(t *testing.T, files map[string]string) string {
	t.Helper()
	text := files["widgets/templates/statefulset.yaml"]
	if !strings.Contains(text, "kind: StatefulSet") {
		t.Fatalf("the chart rendered %q", files)
	}
	return text
}

// feature is one as the API shows it.
func feature(state string, conditions ...metav1.Condition) map[string]any {
	status := map[string]any{}
	if state != "" {
		status["state"] = state
	}
	if len(conditions) > 0 {
		status["conditions"] = conditions
	}
	return map[string]any{
		"apiVersion": groupVersion, "kind": "Feature",
		"metadata": map[string]any{"namespace": "kube-system", "name": name},
		"spec":     map[string]any{}, "status": status,
	}
}

func usesMatch(status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: "UsesMatch", Status: status}
}

// serve answers as kube-apiserver does. A nil feature is not there.
func serve(t *testing.T, object map[string]any) *rest.Config {
	t.Helper()
	answer := func(w http.ResponseWriter, code int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/apis/"+groupVersion, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: groupVersion,
			APIResources: []metav1.APIResource{
				{Name: "features", Kind: "Feature", Namespaced: true},
				{Name: "features/status", Kind: "Feature", Namespaced: true},
			},
		})
	})
	mux.HandleFunc("/apis/"+groupVersion+"/namespaces/{namespace}/features/{name}", func(w http.ResponseWriter, r *http.Request) {
		if object == nil || r.PathValue("namespace") != object["metadata"].(map[string]any)["namespace"] || r.PathValue("name") != object["metadata"].(map[string]any)["name"] {
			answer(w, http.StatusNotFound, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
			return
		}
		answer(w, http.StatusOK, object)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func TestTheChartUsesAFeatureThatIsOnEverywhere(t *testing.T) {
	for sentence, test := range map[string]struct {
		feature map[string]any
		want    bool
	}{
		"on, and all users agree":                     {feature("On", metav1.Condition{Type: "Clean", Status: "True"}, usesMatch("True")), true},
		"on, and a user has it off":                   {feature("On", usesMatch("False")), false},
		"on, and a node has not reported":             {feature("On", usesMatch("Unknown")), false},
		"on, and another condition is True":           {feature("On", metav1.Condition{Type: "Clean", Status: "True"}), false},
		"on its way":                                  {feature("TurningOn", usesMatch("True")), false},
		"on its way off":                              {feature("TurningOff", usesMatch("True")), false},
		"off":                                         {feature("Off", usesMatch("True")), false},
		"just created, with an empty status":          {feature(""), false},
		"on, and nothing has been said about its use": {feature("On"), false},
		"not a feature of this cluster":               {nil, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := load(t)
			files, err := engine.RenderWithClient(c, values(t, c, groupVersion), serve(t, test.feature))
			if err != nil {
				t.Fatal(err)
			}
			if text := rendered(t, files); strings.Contains(text, used) != test.want {
				t.Errorf("%q in what was rendered is %t, want %t:\n%s", used, !test.want, test.want, text)
			}
		})
	}
}

// TestAFeatureOfAnOperator is in the operator's namespace, and has nothing to do with
// one of the same name elsewhere.
func TestAFeatureOfAnOperator(t *testing.T) {
	widgets := feature("On", usesMatch("True"))
	widgets["metadata"] = map[string]any{"namespace": "widgets", "name": "Widgets"}
	for call, want := range map[string]string{
		`(dict "root" $ "name" "Widgets" "namespace" "widgets")`: "true",
		`(dict "root" $ "name" "Widgets")`:                       "",
		`(dict "root" $ "name" "Gadgets" "namespace" "widgets")`: "",
	} {
		c := load(t)
		c.Templates = append(c.Templates, &chart.File{Name: "templates/asks", Data: []byte(`{{ include "features.on" ` + call + ` }}`)})
		files, err := engine.RenderWithClient(c, values(t, c, groupVersion), serve(t, widgets))
		if err != nil {
			t.Fatalf("%s: %v", call, err)
		}
		if got := files["widgets/templates/asks"]; got != want {
			t.Errorf("%s is %q, want %q", call, got, want)
		}
	}
}

// TestTheChartWorksWithoutTheAPI, where a lookup would fail, and without a cluster.
func TestTheChartWorksWithoutTheAPI(t *testing.T) {
	c := load(t)
	// This server has nothing at all.
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	files, err := engine.RenderWithClient(c, values(t, c), &rest.Config{Host: server.URL})
	if err != nil {
		t.Fatalf("on a cluster without the API: %v", err)
	}
	if strings.Contains(rendered(t, files), used) {
		t.Error("the feature is used where it is not reported as on")
	}
	// What the guard is for.
	if _, err := engine.RenderWithClient(c, values(t, c, groupVersion), &rest.Config{Host: server.URL}); err == nil {
		t.Error("a lookup without the API works; the chart does not need to ask for its capabilities any more")
	}
	files, err = engine.Render(c, values(t, c, groupVersion))
	if err != nil {
		t.Fatalf("helm template: %v", err)
	}
	if strings.Contains(rendered(t, files), used) {
		t.Error("helm template uses the feature without a cluster")
	}
}

// TestOnACluster renders with the cluster that FEATURES_KUBECONFIG names, with the
// versions that it has. FEATURES_WANT says whether the feature is on everywhere;
// test/e2e_features/api/readers sets both.
func TestOnACluster(t *testing.T) {
	path, want := os.Getenv("FEATURES_KUBECONFIG"), os.Getenv("FEATURES_WANT")
	if path == "" {
		t.Skip("FEATURES_KUBECONFIG names no cluster")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := client.ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	c := load(t)
	files, err := engine.RenderWithClient(c, values(t, c, metav1.ExtractGroupVersions(groups)...), config)
	if err != nil {
		t.Fatal(err)
	}
	if text := rendered(t, files); strings.Contains(text, used) != (want == "true") {
		t.Errorf("the feature is on everywhere: %s; the chart rendered\n%s", want, text)
	}
}
