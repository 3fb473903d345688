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
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

// answering returns a client that passes patches on to a server and answers with the
// metadata of the object, as servers do on request.
func answering(t *testing.T, s *server) *metadatafake.FakeMetadataClient {
	client := metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme())
	client.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		action := a.(clienttesting.PatchActionImpl)
		var sub []string
		if action.Subresource != "" {
			sub = []string{action.Subresource}
		}
		object, err := s.Resource(action.Resource).Namespace(action.Namespace).Patch(t.Context(), action.Name, action.PatchType, action.Patch, action.PatchOptions, sub...)
		if err != nil {
			return true, nil, err
		}
		return true, &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: object.GetAPIVersion(), Kind: object.GetKind()},
			ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()},
		}, nil
	})
	return client
}

// TestClearFieldListsMetadata checks that answers have metadata only, since nothing
// else is read.
func TestClearFieldListsMetadata(t *testing.T) {
	for field, want := range map[string]string{"spec.field": "", "status.field": "status"} {
		withStatus := widget("a", "x")
		withStatus.Object["status"] = map[string]any{"field": "x"}
		s := serve(withStatus, widget("b", ""))
		clients, metadata := s.clients(), answering(t, s)
		clients.Metadata = metadata
		if err := ClearField(widgets, field).Run(t.Context(), clients, ignored); err != nil {
			t.Fatal(err)
		}
		var asked []string
		for _, a := range metadata.Actions() {
			patch := a.(clienttesting.PatchActionImpl)
			asked = append(asked, patch.Namespace+"/"+patch.Name+":"+patch.Subresource)
		}
		if diff := cmp.Diff([]string{"ns/a:" + want}, asked); diff != "" {
			t.Errorf("%s: asked for metadata (-want +got):\n%s", field, diff)
		}
		object, err := s.Tracker().Get(widgets, "ns", "a")
		if err != nil {
			t.Fatal(err)
		}
		path, err := ParsePath(field)
		if err != nil {
			t.Fatal(err)
		}
		if left := path.Pointers(object.(*unstructured.Unstructured).Object); len(left) > 0 {
			t.Errorf("%s is there still: %v", field, left)
		}
	}
}
