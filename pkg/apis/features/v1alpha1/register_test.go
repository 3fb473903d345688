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

package v1alpha1

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestFieldSelectors(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for kind, labels := range map[string]map[string]bool{
		"Feature":       {"metadata.name": true, "status.state": true, "spec.component": false},
		"FeatureReport": {"metadata.name": true, "spec.component": true, "spec.nodeName": true, "spec.username": true, "status.state": false},
		"FeatureValue":  {"metadata.name": true, "control": true, "status.control": false, "value": false},
	} {
		for label, ok := range labels {
			got, value, err := scheme.ConvertFieldLabel(SchemeGroupVersion.WithKind(kind), label, "x")
			switch {
			case ok && (err != nil || got != label || value != "x"):
				t.Errorf("%s by %s: %q, %q, %v", kind, label, got, value, err)
			case !ok && (err == nil || !strings.Contains(err.Error(), label)):
				t.Errorf("%s by %s: %v, want a message that names it", kind, label, err)
			}
		}
	}
}
