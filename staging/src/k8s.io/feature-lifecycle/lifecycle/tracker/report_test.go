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

package tracker

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

func TestTerminating(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"a process that runs":           {nil, false},
		"one that ended in order":       {map[string]string{v1alpha1.AnnotationTerminating: "true"}, true},
		"one that was taken back":       {map[string]string{v1alpha1.AnnotationTerminating: ""}, false},
		"a value that is never written": {map[string]string{v1alpha1.AnnotationTerminating: "yes"}, false},
		"another annotation":            {map[string]string{v1alpha1.AnnotationRequestedBy: "true"}, false},
	} {
		report := &v1alpha1.FeatureReport{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}}
		if got := Terminating(report); got != test.want {
			t.Errorf("%s: Terminating is %t, want %t", name, got, test.want)
		}
	}
}

func TestControllerStopped(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"a process that runs a flow":    {nil, false},
		"one that does not any more":    {map[string]string{v1alpha1.AnnotationControllerStopped: "true"}, true},
		"a value that is never written": {map[string]string{v1alpha1.AnnotationControllerStopped: "yes"}, false},
		"one that ends":                 {map[string]string{v1alpha1.AnnotationTerminating: "true"}, false},
	} {
		report := &v1alpha1.FeatureReport{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}}
		if got := ControllerStopped(report); got != test.want {
			t.Errorf("%s: ControllerStopped is %t, want %t", name, got, test.want)
		}
	}
}
