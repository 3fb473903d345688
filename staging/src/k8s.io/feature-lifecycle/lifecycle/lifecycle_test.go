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

package lifecycle

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestValidate(t *testing.T) {
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	clear := ClearField(widgets, "spec.x")
	for name, tc := range map[string]struct {
		features []Feature
		says     string
	}{
		"none":                     {nil, ""},
		"one that declares all":    {[]Feature{{Name: "A", OnDisable: Tasks{clear}, Control: Central}}, ""},
		"without a name":           {[]Feature{{}}, "without a name"},
		"twice":                    {[]Feature{{Name: "A"}, {Name: "A"}}, "declared twice"},
		"an unknown control":       {[]Feature{{Name: "A", Control: "Remote"}}, "Remote"},
		"one task twice":           {[]Feature{{Name: "A", OnEnable: Tasks{clear, clear}}}, "twice in one list"},
		"one task in both lists":   {[]Feature{{Name: "A", OnEnable: Tasks{clear}, OnDisable: Tasks{clear}}}, ""},
		"a task that is not valid": {[]Feature{{Name: "A", OnDisable: Tasks{ClearField(widgets, "")}}}, `feature "A"`},
	} {
		err := Validate(tc.features)
		if (err == nil) != (tc.says == "") || (err != nil && !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: got %v, want it to say %q", name, err, tc.says)
		}
	}
}
