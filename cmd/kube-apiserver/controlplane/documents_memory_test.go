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
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emicklei/go-restful/v3"

	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/featuregate"
	featurelayer "k8s.io/feature-lifecycle/featuregate"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// configured is a configuration of a server that publishes cut documents.
func configured(definitions common.GetOpenAPIDefinitions) *common.Config {
	generic := &genericapiserver.Config{OpenAPIConfig: genericapiserver.DefaultOpenAPIConfig(definitions, apiopenapi.NewDefinitionNamer(legacyscheme.Scheme))}
	newDocuments(featurelayer.Wrap(featuregate.NewFeatureGate()), nil, nil).configure(generic)
	return generic.OpenAPIConfig
}

// TestConfigurationsHoldNoDefinitions builds a document and finds that the definitions
// are garbage then: kube-openapi's default for the names of operations would hold them.
func TestConfigurationsHoldNoDefinitions(t *testing.T) {
	freed := make(chan struct{})
	config := configured(func(common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		unused := new([1 << 20]byte)
		runtime.AddCleanup(unused, func(freed chan struct{}) { close(freed) }, freed)
		return map[string]common.OpenAPIDefinition{"unused": {Schema: spec.Schema{VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-big": unused}}}}}
	})
	if _, err := builder.BuildOpenAPISpecFromRoutes(nil, config); err != nil {
		t.Fatal(err)
	}
	limit := time.After(5 * time.Minute)
	for {
		runtime.GC()
		select {
		case <-freed:
			runtime.KeepAlive(config)
			return
		case <-limit:
			t.Fatal("the configuration holds definitions that no document has")
		default:
		}
	}
}

func TestOperationsHaveUpstreamsNames(t *testing.T) {
	config := configured(nil)
	service := new(restful.WebService).Path("/apis/apps/v1")
	service.Route(service.GET("/namespaces/{namespace}/statefulsets/{name}").Operation("readStatefulSet").To(func(*restful.Request, *restful.Response) {}))
	route := service.Routes()[0]
	id, tags, err := config.GetOperationIDAndTagsFromRoute(&restfuladapter.RouteAdapter{Route: &route})
	wantID, wantTags, wantErr := apiopenapi.GetOperationIDAndTags(&route)
	if id != wantID || !slices.Equal(tags, wantTags) || err != nil || wantErr != nil {
		t.Errorf("%q, %q, %v, want upstream's %q, %q, %v", id, tags, err, wantID, wantTags, wantErr)
	}
	other := struct{ common.Route }{&restfuladapter.RouteAdapter{Route: &route}}
	if _, _, err := config.GetOperationIDAndTagsFromRoute(other); err == nil || !strings.Contains(err.Error(), "GET /apis/apps/v1/namespaces/{namespace}/statefulsets/{name}") {
		t.Errorf("a route of another kind: %v", err)
	}
}
