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
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// TestPagesBounded walks through objects of several sizes.
func TestPagesBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		objects int
		size    func(i int) int
		want    []int
	}{
		"small ones":      {620, func(int) int { return 10 }, []int{firstPage, mostObjects, mostObjects, 110}},
		"large ones":      {100, func(int) int { return 200 << 10 }, []int{firstPage, 20, 20, 20, 20, 10}},
		"as large as any": {14, func(int) int { return 3 << 20 }, []int{firstPage, 1, 1, 1, 1}},
		"large ones first": {600, func(i int) int {
			if i < 12 {
				return 1 << 20
			}
			return 10
		}, []int{firstPage, 3, 5, mostObjects, mostObjects, 82}},
		"none": {0, nil, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []*unstructured.Unstructured
			for i := range tc.objects {
				objects = append(objects, widget(fmt.Sprintf("%04d", i), strings.Repeat("x", tc.size(i))))
			}
			w := &wire{server: serve(objects...)}
			var pages []int
			if err := forEachPage(t.Context(), w.clients(), widgets, "", func(page *unstructured.UnstructuredList) error {
				pages = append(pages, len(page.Items))
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, pages); diff != "" {
				t.Errorf("pages (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFieldFoundThroughAPI counts objects, also when a token expires in the middle.
func TestFieldFoundThroughAPI(t *testing.T) {
	first := []string{"ns/w00", "ns/w01", "ns/w02", "ns/w03", "ns/w04"}
	for name, tc := range map[string]struct {
		path, value, version string
		want                 v1alpha1.ResourceLeftovers
	}{
		"a field":                    {"spec.field", "", "v1", v1alpha1.ResourceLeftovers{Field: "spec.field", Count: 20, Examples: first}},
		"one value of it":            {"spec.field", "x", "v1", v1alpha1.ResourceLeftovers{Field: "spec.field=x", Count: 20, Examples: first}},
		"a value that no object has": {"spec.field", "y", "v1", v1alpha1.ResourceLeftovers{Field: "spec.field=y"}},
		"the objects":                {"", "", "v1", v1alpha1.ResourceLeftovers{Count: 21, Examples: first}},
		"in any version":             {"spec.field", "", "", v1alpha1.ResourceLeftovers{Field: "spec.field", Count: 20, Examples: first}},
	} {
		expired := false
		w := &wire{server: serve(append(many(20), widget("without", ""))...), size: 4, expired: func(token string) error {
			if token != "after w07" {
				return nil
			}
			expired = true
			err := apierrors.NewResourceExpired("too old")
			err.ErrStatus.Continue = "after w07 as of now"
			return err
		}}
		tc.want.Group, tc.want.Resource = widgets.Group, widgets.Resource
		got, err := Field{Resource: widgets.GroupResource(), Path: tc.path, Value: tc.value}.FindIn(t.Context(), w.clients(), tc.version)
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" || !expired {
			t.Errorf("%s: error %v, a token expired: %t, found (-want +got):\n%s", name, err, expired, diff)
		}
	}
}

// TestFieldNotFoundThroughAPI: what was not read is not "nothing".
func TestFieldNotFoundThroughAPI(t *testing.T) {
	w := &wire{server: serve(many(3)...)}
	field := Field{Resource: widgets.GroupResource(), Path: "spec.field"}
	if _, err := field.FindIn(t.Context(), w.clients(), "v2"); !errors.Is(err, ErrNotServed) {
		t.Errorf("another version: %v", err)
	}
	other := Field{Resource: schema.GroupResource{Group: "other.example.com", Resource: "widgets"}}
	if _, err := other.FindIn(t.Context(), w.clients(), ""); !errors.Is(err, ErrNotServed) {
		t.Errorf("another group: %v", err)
	}
	if n := len(w.requests()); n > 0 {
		t.Errorf("%d requests for what is not served", n)
	}
	if _, err := (Field{Resource: widgets.GroupResource(), Path: "spec..x"}).FindIn(t.Context(), w.clients(), "v1"); err == nil {
		t.Error("a wrong path is no error")
	}
	if _, err := (Field{Resource: widgets.GroupResource(), Path: "spec.x", Chosen: true}).FindIn(t.Context(), w.clients(), "v1"); err == nil {
		t.Error("a function chooses, and nothing is wrong")
	}
	w.before = func(context.Context, request) error {
		return apierrors.NewForbidden(widgets.GroupResource(), "", errors.New("no"))
	}
	if _, err := field.FindIn(t.Context(), w.clients(), "v1"); err == nil || !strings.Contains(err.Error(), "listing widgets.example.com") {
		t.Errorf("forbidden: %v", err)
	}
}
