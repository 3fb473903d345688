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

package task

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	restclient "k8s.io/client-go/rest"
)

// NewDynamicClient returns a client for Clients.Dynamic. It does what client-go's does
// and decodes collections faster. Client-go decodes each object of a LIST twice, after
// several scans of its bytes (unstructuredJSONScheme of apimachinery's
// pkg/apis/meta/v1/unstructured), which is most of the cost of finding. The config is
// not changed; its rate limit applies.
func NewDynamicClient(config *restclient.Config) (*dynamic.DynamicClient, error) {
	config = dynamic.ConfigFor(config)
	config.GroupVersion = nil
	config.NegotiatedSerializer = listSerializers{config.NegotiatedSerializer}
	client, err := restclient.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	requests, err := restclient.UnversionedRESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return dynamic.New(requests), nil
}

// listSerializers are the serializers of dynamic clients, of which the one of JSON
// decodes lists in one go.
type listSerializers struct{ runtime.NegotiatedSerializer }

func (s listSerializers) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes())
	for i := range infos {
		if infos[i].MediaType == runtime.ContentTypeJSON {
			infos[i].Serializer = listSerializer{infos[i].Serializer}
		}
	}
	return infos
}

type listSerializer struct{ runtime.Serializer }

// Decode decodes a list in one go. All else, and what does not look like a list, is for
// client-go's own.
func (s listSerializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if list, ok := into.(*unstructured.UnstructuredList); ok && decodeList(data, list) {
		kind := list.GroupVersionKind()
		return list, &kind, nil
	}
	return s.Serializer.Decode(data, defaults, into)
}

// decodeList returns false, and leaves the list as it is, when the data are not those
// of a list of objects.
func decodeList(data []byte, list *unstructured.UnstructuredList) bool {
	var content map[string]any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return false
	}
	objects, ok := content["items"].([]any)
	if !ok {
		return false
	}
	delete(content, "items")
	decoded := unstructured.UnstructuredList{Object: content, Items: make([]unstructured.Unstructured, len(objects))}
	kind, version := decoded.GetKind(), decoded.GetAPIVersion()
	if _, err := schema.ParseGroupVersion(version); err != nil || kind == "" || version == "" {
		return false
	}
	for i, object := range objects {
		item := &decoded.Items[i]
		if item.Object, ok = object.(map[string]any); !ok {
			return false
		}
		// Servers omit the kind of objects in built-in lists, since it is clear.
		if item.GetKind() == "" && item.GetAPIVersion() == "" {
			item.SetKind(strings.TrimSuffix(kind, "List"))
			item.SetAPIVersion(version)
		}
	}
	*list = decoded
	return true
}
