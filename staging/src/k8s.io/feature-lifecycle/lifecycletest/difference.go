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

package lifecycletest

import (
	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/feature-lifecycle/internal/objectdiff"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// Changed returns how an object changed other than by the removal of fields: what
// follows from any write (resourceVersion, generation, managed fields) does not
// count (S7). It is "" when nothing changed.
func Changed(before, after *unstructured.Unstructured, removed []task.Field) string {
	return cmp.Diff(beside(before, removed), beside(after, removed))
}

// beside is an object without fields and without what follows from any write.
func beside(object *unstructured.Unstructured, removed []task.Field) map[string]any {
	left := object.Object
	for _, field := range removed {
		if path, err := task.ParsePath(field.Path); err == nil {
			left = objectdiff.Beside(left, path.Pointers(left))
		}
	}
	return objectdiff.Beside(left, nil)
}
