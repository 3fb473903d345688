/*
Copyright 2026 The Kubernetes Authors.

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

package catalog

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// storedPages are what is stored of widgets, one page each.
type storedPages []task.StoredObject

func (s storedPages) List(_ context.Context, resource schema.GroupResource, _ int64, from string) ([]task.StoredObject, string, error) {
	at := 0
	if from != "" {
		_, _ = fmt.Sscan(from, &at)
	}
	switch {
	case resource != widgets.GroupResource() || at >= len(s):
		return nil, "", nil
	case at == len(s)-1:
		return s[at:], "", nil
	default:
		return s[at : at+1], fmt.Sprint(at + 1), nil
	}
}

func (s storedPages) Delete(context.Context, schema.GroupResource, task.StoredObject) error {
	return fmt.Errorf("nothing is to be deleted")
}

func customDefinition(group, plural string, served bool) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{"group": group, "names": map[string]any{"plural": plural}, "versions": []any{
			map[string]any{"name": "v0", "served": false}, map[string]any{"name": "v1", "served": served},
		}},
	}}
}

func TestCBORIsRewrittenWhereverItIsStored(t *testing.T) {
	object := func(name, mediaType string) task.StoredObject {
		return task.StoredObject{Namespace: "ns", Name: name, MediaType: mediaType}
	}
	stored := storedPages{object("a", runtime.ContentTypeCBOR), object("b", runtime.ContentTypeJSON), object("c", runtime.ContentTypeCBOR)}
	for name, tc := range map[string]struct {
		served  bool
		refusal error
		blocked bool
		patched []string
	}{
		"it is written as it is":     {served: true, patched: []string{"a", "c"}},
		"gone meanwhile":             {served: true, refusal: apierrors.NewNotFound(widgets.GroupResource(), "a"), patched: []string{"a", "c"}},
		"a webhook refuses":          {served: true, refusal: apierrors.NewForbidden(widgets.GroupResource(), "a", nil), blocked: true, patched: []string{"a", "c"}},
		"no version of it is served": {blocked: true},
	} {
		t.Run(name, func(t *testing.T) {
			client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
				map[schema.GroupVersionResource]string{crds: "CustomResourceDefinitionList"},
				customDefinition(widgets.Group, widgets.Resource, tc.served), customDefinition("other.example.com", "gadgets", true))
			var patched []string
			client.PrependReactor("patch", "widgets", func(action clienttesting.Action) (bool, runtime.Object, error) {
				patch := action.(clienttesting.PatchAction)
				patched = append(patched, patch.GetName())
				if string(patch.GetPatch()) != "{}" {
					t.Errorf("the patch %s changes something", patch.GetPatch())
				}
				return true, &unstructured.Unstructured{Object: map[string]any{}}, tc.refusal
			})
			clients := task.Clients{Dynamic: client, Storage: stored}
			rewriting := rewriteCBOR()
			found, err := rewriting.Find(t.Context(), clients)
			if err != nil {
				t.Fatal(err)
			}
			want := []v1alpha1.ResourceLeftovers{{Group: widgets.Group, Resource: widgets.Resource, Count: 2, Examples: []string{"ns/a", "ns/c"}}}
			if diff := cmp.Diff(want, found); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
			err = rewriting.Run(t.Context(), clients, task.Attempt{Report: func(task.Progress) {}})
			if _, blocked := err.(*task.BlockedError); blocked != tc.blocked || (err != nil && !blocked) {
				t.Errorf("run: %v", err)
			}
			if diff := cmp.Diff(tc.patched, patched); diff != "" {
				t.Errorf("patched (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIdentityLeasesOfAnyServerGo(t *testing.T) {
	lease := func(namespace, name string, labels map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
			"metadata": map[string]any{"namespace": namespace, "name": name, "labels": labels},
		}}
	}
	identity := map[string]any{"apiserver.kubernetes.io/identity": "kube-apiserver"}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{leases: "LeaseList"},
		lease("kube-system", "apiserver-a", identity), lease("kube-system", "kube-scheduler", nil), lease("elsewhere", "apiserver-b", identity))
	clients, deleting := task.Clients{Dynamic: client}, deleteIdentityLeases()
	found, err := deleting.Find(t.Context(), clients)
	want := []v1alpha1.ResourceLeftovers{{Group: "coordination.k8s.io", Resource: "leases", Count: 1, Examples: []string{"kube-system/apiserver-a"}}}
	if diff := cmp.Diff(want, found); diff != "" || err != nil {
		t.Errorf("found (-want +got):\n%s%v", diff, err)
	}
	if err := deleting.Run(t.Context(), clients, task.Attempt{Report: func(task.Progress) {}}); err != nil {
		t.Fatal(err)
	}
	left, err := client.Resource(leases).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 2 {
		t.Errorf("left are %v (%v), want those of others", left, err)
	}
}
