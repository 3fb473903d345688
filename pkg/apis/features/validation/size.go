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

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/apis/features"
	conversion "k8s.io/kubernetes-features/pkg/apis/features/v1alpha1"
)

// MaxObjectSize is the limit of a stored object in bytes. etcd refuses more than 1.5
// MiB (--max-request-bytes), which the server would report as an internal error.
// Valid metadata can exceed it: labels, owners and managed fields have no limit
// together.
const MaxObjectSize = 1 << 20

// ValidateManagedFields validates a change of a Feature's managed fields and nothing else,
// which may make it too large.
func ValidateManagedFields(feature, old *features.Feature) field.ErrorList {
	if equality.Semantic.DeepEqual(feature.ManagedFields, old.ManagedFields) {
		return nil
	}
	return validateFeatureSize(feature, field.NewPath("metadata", "managedFields"))
}

func validateFeatureSize(feature *features.Feature, fldPath *field.Path) field.ErrorList {
	var stored v1alpha1.Feature
	// It shares what it points to with the internal form, and is only measured.
	if err := conversion.Convert_features_Feature_To_v1alpha1_Feature(feature, &stored, nil); err != nil {
		return field.ErrorList{field.InternalError(fldPath, err)}
	}
	return validateSize(stored.Size(), fldPath)
}

func validateReportSize(report *features.FeatureReport, fldPath *field.Path) field.ErrorList {
	var stored v1alpha1.FeatureReport
	if err := conversion.Convert_features_FeatureReport_To_v1alpha1_FeatureReport(report, &stored, nil); err != nil {
		return field.ErrorList{field.InternalError(fldPath, err)}
	}
	return validateSize(stored.Size(), fldPath)
}

func validateSize(size int, fldPath *field.Path) field.ErrorList {
	if size <= MaxObjectSize {
		return nil
	}
	return field.ErrorList{field.Invalid(fldPath, fmt.Sprintf("%d bytes", size), fmt.Sprintf(
		"the whole object may have at most %d bytes; remove labels, annotations, owners, finalizers or managed fields", MaxObjectSize))}
}
