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
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

func TestLeftovers(t *testing.T) {
	objects := func(namespace string, n int) []unstructured.Unstructured {
		made := make([]unstructured.Unstructured, n)
		for i := range made {
			made[i].SetNamespace(namespace)
			made[i].SetName(fmt.Sprintf("w%d", i))
		}
		return made
	}
	group, resource := widgets.Group, widgets.Resource
	for name, tc := range map[string]struct {
		field   string
		objects []unstructured.Unstructured
		want    []v1alpha1.ResourceLeftovers
	}{
		"no objects are no leftovers": {
			field: "spec.field",
		},
		"objects in namespaces are named with them": {
			field: "spec.field", objects: objects("ns", 2),
			want: []v1alpha1.ResourceLeftovers{{Group: group, Resource: resource, Field: "spec.field", Count: 2, Examples: []string{"ns/w0", "ns/w1"}}},
		},
		"all are counted and the first five are named": {
			objects: objects("", 7),
			want:    []v1alpha1.ResourceLeftovers{{Group: group, Resource: resource, Count: 7, Examples: []string{"w0", "w1", "w2", "w3", "w4"}}},
		},
	} {
		if diff := cmp.Diff(tc.want, Leftovers(widgets.GroupResource(), tc.field, tc.objects)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
