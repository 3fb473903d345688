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

package agent

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/scheme"
)

// BenchmarkReadFeature compares how long a Syncer takes to decode a Feature that is
// turned on, as it comes with ClientConfig and as it would come without.
func BenchmarkReadFeature(b *testing.B) {
	f := used(feature("A", v1alpha1.ControlDynamic, true), 2500, 2500, 2500, 2500)
	for i := range f.Status.Uses {
		f.Status.Uses[i].Examples = []string{"node-000000", "node-000001", "node-000002", "node-000003", "node-000004"}
	}
	for i := range 7 {
		f.Status.Conditions = append(f.Status.Conditions, metav1.Condition{
			Type: fmt.Sprint("Condition", i), Status: metav1.ConditionTrue, ObservedGeneration: 2, LastTransitionTime: metav1.Now(),
			Reason: "AllUsersMatch", Message: "all live users have the feature on, as their reports say",
		})
	}
	for _, mediaType := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		b.Run(mediaType, func(b *testing.B) {
			info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
			if !ok {
				b.Fatal("the client does not know it")
			}
			data, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, v1alpha1.SchemeGroupVersion), f)
			if err != nil {
				b.Fatal(err)
			}
			decoder := scheme.Codecs.WithoutConversion().DecoderToVersion(info.Serializer, v1alpha1.SchemeGroupVersion)
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				read, err := runtime.Decode(decoder, data)
				if err != nil || read.(*v1alpha1.Feature).Status.Uses[0].Count != 2500 {
					b.Fatal(read, err)
				}
			}
		})
	}
}
