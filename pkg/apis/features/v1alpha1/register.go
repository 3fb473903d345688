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
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// GroupName is the API group of this package. It is written out since upstream's
// hack/verify-api-groups.sh reads the text.
const GroupName = "features.k8s.io"

// SchemeGroupVersion is the version that this package converts.
var SchemeGroupVersion = v1alpha1.SchemeGroupVersion

// Resource qualifies a resource with this group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

var (
	localSchemeBuilder = &v1alpha1.SchemeBuilder
	// AddToScheme adds the types, conversions and defaults to a scheme.
	AddToScheme = localSchemeBuilder.AddToScheme
)

func init() {
	// Generated functions register themselves; the code compiles without them.
	localSchemeBuilder.Register(addFieldLabelConversions)
}

// addFieldLabelConversions names the fields that selectors may use.
func addFieldLabelConversions(scheme *runtime.Scheme) error {
	for kind, labels := range map[string][]string{
		"Feature":       {"metadata.name", "metadata.namespace", "status.state", "status.stage", "status.control"},
		"FeatureReport": {"metadata.name", "metadata.namespace", "spec.component", "spec.nodeName", "spec.username"},
		"FeatureValue":  {"metadata.name", "metadata.namespace", "control"},
	} {
		err := scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind(kind), func(label, value string) (string, string, error) {
			for _, known := range labels {
				if label == known {
					return label, value, nil
				}
			}
			return "", "", fmt.Errorf("field selector %q is not supported for %s; use one of %v", label, kind, labels)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
