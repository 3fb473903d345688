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

package lifecycle_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/feature-lifecycle/lifecycle"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// Two features of an operator: one has a field that is cleared when it is turned off, the
// other one waits until no object has what only users can remove.
func Example() {
	features := []lifecycle.Feature{{
		Name:      "WidgetColors",
		OnDisable: lifecycle.Tasks{lifecycle.ClearField(widgets, "spec.color")},
		Control:   lifecycle.Dynamic,
	}, {
		Name:      "WidgetShapes",
		OnDisable: lifecycle.Tasks{lifecycle.WaitForNone(widgets, "shape", "spec.shape")},
	}}
	if err := lifecycle.Validate(features); err != nil {
		fmt.Println(err)
	}
	for _, feature := range features {
		fmt.Println(feature.Name, feature.OnDisable.Names())
	}
	fmt.Println(lifecycle.Validate(append(features, features[0])))
	// Output:
	// WidgetColors [ClearField/widgets.example.com/spec.color]
	// WidgetShapes [WaitForNone/widgets.example.com/shape]
	// feature "WidgetColors": declared twice; merge the declarations
}
