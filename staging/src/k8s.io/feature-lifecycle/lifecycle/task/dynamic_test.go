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
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	restclient "k8s.io/client-go/rest"
)

// ownList and upstreamList decode lists, ours and client-go's.
func ownList() runtime.Decoder {
	return listSerializers{dynamic.ConfigFor(&restclient.Config{}).NegotiatedSerializer}.SupportedMediaTypes()[0].Serializer
}

func upstreamList() runtime.Decoder {
	return dynamic.ConfigFor(&restclient.Config{}).NegotiatedSerializer.SupportedMediaTypes()[0].Serializer
}

// sameList fails unless both decoders make the same of some data.
func sameList(t *testing.T, data []byte) {
	t.Helper()
	own, upstream := &unstructured.UnstructuredList{}, &unstructured.UnstructuredList{}
	ownObject, ownKind, ownErr := ownList().Decode(data, nil, own)
	object, kind, err := upstreamList().Decode(data, nil, upstream)
	if (ownErr == nil) != (err == nil) || (err != nil && ownErr.Error() != err.Error()) {
		t.Fatalf("%s: error %v, client-go has %v", data, ownErr, err)
	}
	if err != nil {
		return
	}
	if diff := cmp.Diff(kind, ownKind); diff != "" {
		t.Errorf("%s: another kind (-client-go +ours):\n%s", data, diff)
	}
	if diff := cmp.Diff(object, ownObject); diff != "" {
		t.Errorf("%s: another object (-client-go +ours):\n%s", data, diff)
	}
	if (object == upstream) != (ownObject == own) {
		t.Errorf("%s: the list is decoded into the one given: %t, client-go %t", data, ownObject == own, object == upstream)
	}
}

// lists are possible answers of servers to a LIST.
var lists = []string{
	`{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"7","continue":"x","remainingItemCount":3},"items":[{"metadata":{"name":"a"},"spec":{"n":1,"f":1.5,"big":9223372036854775807,"none":null}},{"kind":"Other","apiVersion":"other/v1"}]}`,
	`{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{},"items":[{"kind":"Half"},{"apiVersion":"half/v1"},{}]}`,
	`{"kind":"WidgetList","apiVersion":"example.com/v1","items":[]}`,
	`{"kind":"WidgetList","apiVersion":"example.com/v1","items":null}`,
	`{"kind":"WidgetList","apiVersion":"example.com/v1"}`,
	`{"kind":"WidgetList","apiVersion":"example.com/v1","items":[null]}`,
	`{"kind":"WidgetList","apiVersion":"example.com/v1","items":[1]}`,
	`{"kind":"WidgetList","apiVersion":"example.com/v1","items":{}}`,
	`{"kind":"WidgetList","apiVersion":"example.com/v1","items":[{"kind":7,"apiVersion":{}}]}`,
	`{"kind":"WidgetList","items":[{}]}`,
	`{"apiVersion":"example.com/v1","items":[{}]}`,
	`{"kind":"WidgetList","apiVersion":"a/b/c","items":[{}]}`,
	`{"kind":"Widgets","apiVersion":"v1","Items":[{}],"items":[{"metadata":{"name":"twice"}}],"items":[{"metadata":{"name":"last"}}],"more":[1,{"a":"b"}]}`,
	`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","code":500}`,
	`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"one"}}`,
	`{"kind":"WidgetList","apiVersion":"example.com/v1","items":[{}]} {}`,
	`{"kind":"WidgetList","apiVersion":"example.com/v1","items":[{"a":1]}`,
	`{"kind":"WidgetList","KIND":"Other","apiVersion":"example.com/v1","APIVERSION":"v2","items":[{}]}`,
	`{"Kind":"WidgetList","apiVersion":"example.com/v1","items":[{}]}`,
	`{"kind":"WidgetList","apiVersion":"example.com/v1","items":[{"n":1e400}]}`,
	`[]`, `null`, `"text"`, ``,
}

func TestListsDecodedAsByClientGo(t *testing.T) {
	for _, list := range lists {
		sameList(t, []byte(list))
	}
}

func FuzzDecodeList(f *testing.F) {
	foundDecodeList(f)
	for _, list := range lists {
		f.Add([]byte(list))
	}
	f.Fuzz(sameList)
}

// TestNewDynamicClient requests a list, an object and something that fails.
func TestNewDynamicClient(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/apis/example.com/v1/widgets":
			fmt.Fprint(w, lists[0])
		case "/apis/example.com/v1/widgets/a":
			fmt.Fprint(w, `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a"}}`)
		default:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"not you","reason":"Forbidden","code":403}`)
		}
	}))
	defer server.Close()
	config := &restclient.Config{Host: server.URL}
	client, err := NewDynamicClient(config)
	if err != nil {
		t.Fatal(err)
	}
	if config.NegotiatedSerializer != nil {
		t.Error("the config was changed")
	}
	widgets := client.Resource(widgetKind.GroupVersion().WithResource("widgets"))
	list, err := widgets.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 || list.GetContinue() != "x" || list.Items[0].GetName() != "a" || list.Items[0].GetKind() != "Widget" {
		t.Errorf("list %v, %v", list, err)
	}
	if object, err := widgets.Get(t.Context(), "a", metav1.GetOptions{}); err != nil || object.GetName() != "a" {
		t.Errorf("object %v, %v", object, err)
	}
	if _, err := client.Resource(widgetKind.GroupVersion().WithResource("others")).List(t.Context(), metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), "not you") {
		t.Errorf("error %v", err)
	}
	if _, err := NewDynamicClient(&restclient.Config{TLSClientConfig: restclient.TLSClientConfig{CAData: []byte("none")}}); err == nil {
		t.Error("no error for a certificate that is none")
	}
}

// BenchmarkDecodeList decodes a page of objects of 15 KiB.
func BenchmarkDecodeList(b *testing.B) {
	var variables, items []any
	for i := range 98 {
		variables = append(variables, map[string]any{"name": fmt.Sprintf("SETTING_%d", i), "value": strings.Repeat("v", 120)})
	}
	for i := range mostObjects {
		items = append(items, map[string]any{"metadata": map[string]any{"name": fmt.Sprint(i)}, "spec": map[string]any{"env": variables}})
	}
	data, err := json.Marshal(map[string]any{"kind": "WidgetList", "apiVersion": "example.com/v1", "metadata": map[string]any{}, "items": items})
	if err != nil {
		b.Fatal(err)
	}
	for name, decoder := range map[string]runtime.Decoder{"own": ownList(), "client-go": upstreamList()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := decoder.Decode(data, nil, &unstructured.UnstructuredList{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
