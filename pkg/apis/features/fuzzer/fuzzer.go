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

// Package fuzzer makes random objects of features.k8s.io that are in the form
// that decoding gives them. Round-trip tests are its callers.
package fuzzer

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/kubernetes-features/pkg/apis/features"
	"sigs.k8s.io/randfill"
)

// Funcs returns what differs from plain random filling.
var Funcs = func(_ runtimeserializer.CodecFactory) []any {
	return []any{
		func(t *features.FeatureTransition, c randfill.Continue) {
			c.FillNoCustom(t)
			// MicroTime keeps microseconds only.
			t.StartTime = metav1.NewMicroTime(time.Unix(c.Int63n(1<<32), c.Int63n(1e6)*1e3))
		},
		func(r *features.FeatureRolloutStatus, c randfill.Continue) {
			c.FillNoCustom(r)
			r.StartTime = metav1.NewMicroTime(time.Unix(c.Int63n(1<<32), c.Int63n(1e6)*1e3))
			r.UnhealthySince = nil
			if c.Bool() {
				suspect := metav1.NewMicroTime(time.Unix(c.Int63n(1<<32), c.Int63n(1e6)*1e3))
				r.UnhealthySince = &suspect
			}
		},
		func(t *features.FeatureTask, c randfill.Continue) {
			c.FillNoCustom(t)
			t.LastAttemptTime = nil
			if c.Bool() {
				last := metav1.NewMicroTime(time.Unix(c.Int63n(1<<32), c.Int63n(1e6)*1e3))
				t.LastAttemptTime = &last
			}
		},
	}
}
