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
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
