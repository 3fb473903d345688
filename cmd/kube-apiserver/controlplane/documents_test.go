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

package controlplane

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/authentication/user"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericfeatures "k8s.io/apiserver/pkg/features"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/featuregate"
	featurelayer "k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/features"
	upstreamopenapi "k8s.io/kubernetes/pkg/generated/openapi"
)

const (
	statefulSetTypes = `{
		"Set": {"type": "object", "properties": {"spec": {"$ref": "#/PREFIX/Spec"}}},
		"Spec": {"type": "object", "properties": {"updateStrategy": {"$ref": "#/PREFIX/Strategy"}}},
		"Strategy": {"type": "object", "properties": {"rollingUpdate": {"$ref": "#/PREFIX/Rolling"}}},
		"Rolling": {"type": "object", "properties": {"maxUnavailable": {"type": "string"}, "partition": {"type": "integer", "default": 7}}}}`
	statefulSetsPath = "/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}"
	appsV1           = "apis/apps/v1"
	field            = "maxUnavailable"
)

func statefulSetsV2(t *testing.T) *spec.Swagger {
	t.Helper()
	document := &spec.Swagger{}
	parse(t, document, `{"swagger": "2.0", "info": {"title": "t", "version": "v"}, "definitions": `+strings.ReplaceAll(statefulSetTypes, "PREFIX", "definitions")+
		`, "paths": {"`+statefulSetsPath+`": {"get": {"responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/Set"}}}}}}}`)
	return document
}

func statefulSetsV3(t *testing.T) *spec3.OpenAPI {
	t.Helper()
	document := &spec3.OpenAPI{}
	parse(t, document, `{"openapi": "3.0.0", "info": {"title": "t", "version": "v"}, "components": {"schemas": `+strings.ReplaceAll(statefulSetTypes, "PREFIX", "components/schemas")+
		`}, "paths": {"`+statefulSetsPath+`": {"get": {"responses": {"200": {"description": "OK", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Set"}}}}}}}}}`)
	return document
}

func parse(t *testing.T, into any, text string) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

// TestDocumentsOfADistribution cuts what the gate of a feature guards that only
// Options.Features declares, and what the declaration of a distribution says of one
// of Kubernetes' own.
func TestDocumentsOfADistribution(t *testing.T) {
	statefulSets := appsv1.SchemeGroupVersion.WithResource("statefulsets")
	const own, path = featuregate.Feature("ExamplePartition"), "spec.updateStrategy.rollingUpdate."
	gates := func(t *testing.T, ownOn bool) *featurelayer.Gate {
		gates := featuregate.NewFeatureGate()
		if err := gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{
			own:                                {PreRelease: featuregate.Alpha, Default: ownOn},
			features.MaxUnavailableStatefulSet: {PreRelease: featuregate.Beta, Default: false},
		}); err != nil {
			t.Fatal(err)
		}
		return featurelayer.Wrap(gates)
	}
	partition := lifecycle.Feature{Name: own, OnDisable: lifecycle.Tasks{lifecycle.ClearField(statefulSets, path+"partition")}}
	for name, test := range map[string]struct {
		declared []lifecycle.Feature
		on       bool
		want     []string
	}{
		"nothing beside the catalog":      {catalog.Features(), false, []string{"partition"}},
		"a gate that is off":              {append(catalog.Features(), partition), false, nil},
		"a gate that is on":               {append(catalog.Features(), partition), true, []string{"partition"}},
		"only a feature of its own":       {[]lifecycle.Feature{partition}, false, nil},
		"another declaration of the same": {[]lifecycle.Feature{{Name: features.MaxUnavailableStatefulSet, OnDisable: partition.OnDisable}}, false, []string{"maxUnavailable"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDocuments(gates(t, test.on), test.declared, nil)
			rolling := d.cutV2(statefulSetsV2(t)).Definitions["Rolling"].Properties
			if diff := cmp.Diff(test.want, slices.Sorted(maps.Keys(rolling))); diff != "" {
				t.Errorf("OpenAPI v2 (-want +got)\n%s", diff)
			}
			rolling = d.cutV3(statefulSetsV3(t)).Components.Schemas["Rolling"].Properties
			if diff := cmp.Diff(test.want, slices.Sorted(maps.Keys(rolling))); diff != "" {
				t.Errorf("OpenAPI v3 (-want +got)\n%s", diff)
			}
		})
	}
}

// published are documents as a server publishes them, and what it publishes them by.
type published struct {
	*documents
	gate *featurelayer.Gate
	v2   *handler.OpenAPIService
	v3   *handler3.OpenAPIService
}

// publish does what a server does when it prepares to run.
func publish(t *testing.T, enabled bool, dynamic ...string) published {
	t.Helper()
	gates := featuregate.NewFeatureGate()
	if err := gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{features.MaxUnavailableStatefulSet: {PreRelease: featuregate.Beta}}); err != nil {
		t.Fatal(err)
	}
	p := published{gate: featurelayer.Wrap(gates), v3: handler3.NewOpenAPIService()}
	p.set(t, enabled)
	p.documents = newDocuments(p.gate, catalog.Features(), dynamic)
	shared := &common.OpenAPIV3Config{}
	config := &genericapiserver.Config{OpenAPIConfig: &common.Config{}, OpenAPIV3Config: shared}
	p.configure(config)
	if shared.PostProcessSpec != nil {
		t.Error("the configuration that other servers share changed")
	}
	v2, err := config.OpenAPIConfig.PostProcessSpec(statefulSetsV2(t))
	if err != nil {
		t.Fatal(err)
	}
	p.v2 = handler.NewOpenAPIService(v2)
	v3, err := config.OpenAPIV3Config.PostProcessSpec(statefulSetsV3(t))
	if err != nil {
		t.Fatal(err)
	}
	p.v3.UpdateGroupVersion(appsV1, v3)
	return p
}

func (p published) set(t *testing.T, enabled bool) {
	t.Helper()
	if err := p.gate.SetFromMap(map[string]bool{string(features.MaxUnavailableStatefulSet): enabled}); err != nil {
		t.Fatal(err)
	}
}

// handler serves the documents as the chain does.
func (p published) handler(t *testing.T) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	p.v2.RegisterOpenAPIVersionedService("/openapi/v2", paths{mux})
	if err := p.v3.RegisterOpenAPIV3VersionedService(documentsRoot, paths{mux}); err != nil {
		t.Fatal(err)
	}
	return withCompleteDocuments(mux, p.complete)
}

// paths lets kube-openapi register at a mux.
type paths struct{ *http.ServeMux }

func (p paths) HandlePrefix(path string, handler http.Handler) { p.Handle(path, handler) }

func get(t *testing.T, handler http.Handler, as, url string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: as}), http.MethodGet, url, nil)
	r.Header.Set("Accept", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", url, w.Code, w.Body)
	}
	return w.Body.String()
}

// address is that of the document of apps/v1, with the hash of what is in it.
func address(t *testing.T, handler http.Handler, as string) string {
	t.Helper()
	var discovery handler3.OpenAPIV3Discovery
	parse(t, &discovery, get(t, handler, as, documentsRoot))
	return discovery.Paths[appsV1].ServerRelativeURL
}

func TestPublishedDocumentsAreCut(t *testing.T) {
	for _, enabled := range []bool{true, false} {
		p := publish(t, enabled)
		handler := p.handler(t)
		for _, url := range []string{"/openapi/v2", groupVersions + appsV1, address(t, handler, "jane")} {
			document := get(t, handler, "jane", url)
			if has := strings.Contains(document, field); has != enabled {
				t.Errorf("gate %v: %s has the field: %v", enabled, url, has)
			}
			if !strings.Contains(document, "partition") {
				t.Errorf("gate %v: %s has not the other field", enabled, url)
			}
		}
		for _, o := range p.gate.Observations() {
			if o.Name == string(features.MaxUnavailableStatefulSet) && o.Queried {
				t.Errorf("gate %v: publishing documents made the server a user of the feature", enabled)
			}
		}
	}
}

// TestTheServerItselfSeesCompleteDocuments: see withCompleteDocuments.
func TestTheServerItselfSeesCompleteDocuments(t *testing.T) {
	p := publish(t, false)
	p.v3.UpdateGroupVersion("apis/example.com/v1", &spec3.OpenAPI{Version: "3.0.0"})
	handler := p.handler(t)
	if at, others := address(t, handler, user.APIServerUser), address(t, handler, "jane"); at == others {
		t.Errorf("the same address for both: %s", at)
	}
	for _, url := range []string{address(t, handler, user.APIServerUser), groupVersions + appsV1} {
		if !strings.Contains(get(t, handler, user.APIServerUser, url), field) {
			t.Errorf("%s has not the field", url)
		}
	}
	if root := get(t, handler, user.APIServerUser, documentsRoot); !strings.Contains(root, "apis/example.com/v1?hash") {
		t.Errorf("other groups are not there: %s", root)
	}
	if other := get(t, handler, user.APIServerUser, groupVersions+"apis/example.com/v1"); !strings.Contains(other, "3.0.0") {
		t.Errorf("the document of another group: %s", other)
	}
	// No client gets a group that is not published.
	p.v3.DeleteGroupVersion(appsV1)
	if at := address(t, handler, user.APIServerUser); at != "" {
		t.Errorf("a group that is not published is at %s", at)
	}
}

func TestDocumentsFollowDynamicFeatures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := publish(t, false, string(features.MaxUnavailableStatefulSet))
		handler := p.handler(t)
		// Between the documents and the subscription.
		p.set(t, true)
		p.subscribe(t.Context(), p.v2, p.v3)
		for _, enabled := range []bool{true, false, true} {
			p.set(t, enabled)
			synctest.Wait()
			for _, url := range []string{"/openapi/v2", address(t, handler, "jane")} {
				if has := strings.Contains(get(t, handler, "jane", url), field); has != enabled {
					t.Errorf("gate %v: %s has the field: %v", enabled, url, has)
				}
			}
		}
	})
}

// TestUpdatedDocumentsHaveNoDefaults in OpenAPI v2, like those that are installed.
func TestUpdatedDocumentsHaveNoDefaults(t *testing.T) {
	p := publish(t, false, string(features.MaxUnavailableStatefulSet))
	p.set(t, true)
	p.update(p.v2, p.v3)
	handler := p.handler(t)
	for url, want := range map[string]bool{"/openapi/v2": false, address(t, handler, "jane"): true} {
		document := get(t, handler, "jane", url)
		if !strings.Contains(document, field) {
			t.Errorf("%s was not updated", url)
		}
		if strings.Contains(document, `"default":7`) != want {
			t.Errorf("%s has defaults: %t: %s", url, !want, document)
		}
	}
}

// TestDocumentsOfAServerThatEnds do not change any more.
func TestDocumentsOfAServerThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := publish(t, false, string(features.MaxUnavailableStatefulSet))
		handler := p.handler(t)
		ctx, end := context.WithCancel(t.Context())
		p.subscribe(ctx, p.v2, p.v3)
		end()
		synctest.Wait()
		p.set(t, true)
		synctest.Wait()
		for _, url := range []string{"/openapi/v2", groupVersions + appsV1} {
			if strings.Contains(get(t, handler, "jane", url), field) {
				t.Errorf("%s still follows the gate", url)
			}
		}
	})
}

// TestGatesThatThisBinaryDoesNotKnow guard nothing here.
func TestGatesThatThisBinaryDoesNotKnow(t *testing.T) {
	d := newDocuments(featurelayer.Wrap(featuregate.NewFeatureGate()), catalog.Features(), nil)
	if _, ok := d.cutV2(statefulSetsV2(t)).Definitions["Rolling"].Properties[field]; !ok {
		t.Error("OpenAPI v2 lacks the field")
	}
	if _, ok := d.cutV3(statefulSetsV3(t)).Components.Schemas["Rolling"].Properties[field]; !ok {
		t.Error("OpenAPI v3 lacks the field")
	}
}

// TestOnlyRequestFields: a document that lacks only what no stored object has is
// none that the server itself needs to be complete.
func TestOnlyRequestFields(t *testing.T) {
	gates := featuregate.NewFeatureGate()
	if err := gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{genericfeatures.ShardedListAndWatch: {PreRelease: featuregate.Alpha}}); err != nil {
		t.Fatal(err)
	}
	d := newDocuments(featurelayer.Wrap(gates), catalog.Features(), nil)
	document := &spec3.OpenAPI{}
	parse(t, document, `{"openapi": "3.0.0", "info": {"title": "t", "version": "v"}, "components": {"schemas": {}}, "paths": {"/apis/apps/v1/statefulsets": {"parameters": [{"name": "shardSelector", "in": "query"}]}}}`)
	if left := d.cutV3(document).Paths.Paths["/apis/apps/v1/statefulsets"].Parameters; len(left) > 0 {
		t.Errorf("the parameter is left: %v", left)
	}
	if addresses := addressesOf(http.HandlerFunc(d.complete.HandleDiscovery), httptest.NewRequestWithContext(t.Context(), http.MethodGet, documentsRoot, nil)); len(addresses) > 0 {
		t.Errorf("the server itself gets %v", addresses)
	}
}

// TestOthersSeeNoCompleteDocuments for any user.
func TestOthersSeeNoCompleteDocuments(t *testing.T) {
	handler := publish(t, false).handler(t)
	want := address(t, handler, "jane")
	for _, name := range []string{"system:kube-controller-manager", "system:admin", "system:anonymous", "system:apiserver2", "apiserver", ""} {
		if at := address(t, handler, name); at != want {
			t.Errorf("%q is told %s, others %s", name, at, want)
		}
		if strings.Contains(get(t, handler, name, groupVersions+appsV1), field) {
			t.Errorf("%q sees the field", name)
		}
	}
}

// TestConditionsOfServerRequest apply to its response: inner requests for that
// response are unconditional and in plain text.
func TestConditionsOfServerRequest(t *testing.T) {
	p := publish(t, false)
	complete := address(t, p.handler(t), user.APIServerUser)
	for _, header := range []string{"Accept-Encoding", "If-None-Match", "If-Match", "If-Modified-Since", "If-Unmodified-Since", "Range", "If-Range"} {
		handler := withCompleteDocuments(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get(header) != "" {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			p.v3.HandleDiscovery(w, r)
		}), p.complete)
		r := httptest.NewRequestWithContext(genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: user.APIServerUser}), http.MethodGet, documentsRoot, nil)
		r.Header.Set(header, "x")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), complete) {
			t.Errorf("with %s: %d %s", header, w.Code, w.Body)
		}
		if r.Header.Get(header) != "x" {
			t.Errorf("the request lost its %s", header)
		}
	}
}

// TestDocumentsThatCannotChangeAreNotKept: they are large.
func TestDocumentsThatCannotChangeAreNotKept(t *testing.T) {
	for _, dynamic := range [][]string{nil, {string(features.HPAConfigurableTolerance)}} {
		p := publish(t, false, dynamic...)
		if p.documents.v2 != nil || len(p.documents.v3) > 0 {
			t.Errorf("dynamic %v: kept %v and %v", dynamic, p.documents.v2, p.documents.v3)
		}
	}
	p := publish(t, false, string(features.MaxUnavailableStatefulSet))
	if p.documents.v2 == nil || len(p.documents.v3) != 1 {
		t.Error("the documents that change are not kept")
	}
}

// TestServerSideApplyKeepsItsModels checks that the server's models for server-side
// apply have the field that is in no document. A model of the published document
// refuses an object with the field. So the server itself gets complete documents.
func TestServerSideApplyKeepsItsModels(t *testing.T) {
	p := publish(t, false)
	config := &genericapiserver.Config{OpenAPIV3Config: genericapiserver.DefaultOpenAPIV3Config(upstreamopenapi.GetOpenAPIDefinitions, apiopenapi.NewDefinitionNamer(legacyscheme.Scheme))}
	p.configure(config)
	// As GenericAPIServer.getOpenAPIModels does.
	models := func() map[string]*spec.Schema {
		schemas, err := builder3.BuildOpenAPIDefinitionsForResources(config.OpenAPIV3Config, appsv1.StatefulSet{}.OpenAPIModelName())
		if err != nil {
			t.Fatal(err)
		}
		return schemas
	}
	document := statefulSetsV3(t)
	document.Paths.Paths[statefulSetsPath].Get.Responses.StatusCodeResponses[http.StatusOK].Content["application/json"].Schema = spec.RefSchema("#/components/schemas/" + appsv1.StatefulSet{}.OpenAPIModelName())
	document.Components.Schemas = models()
	published, err := config.OpenAPIV3Config.PostProcessSpec(document)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	parse(t, object, `{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}}}`)
	for name, test := range map[string]struct {
		schemas map[string]*spec.Schema
		knows   bool
	}{
		"the configuration":      {models(), true},
		"the published document": {published.Components.Schemas, false},
	} {
		converter, err := managedfields.NewTypeConverter(test.schemas, false)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := converter.ObjectToTyped(object); (err == nil) != test.knows {
			t.Errorf("a model of %s takes an object that has the field: %v", name, err)
		}
	}
}
