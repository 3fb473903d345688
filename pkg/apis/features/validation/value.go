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
	"time"

	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/apis/features"
)

const (
	// MaxFeatureVersionLength is the longest resource version of a Feature. Those of etcd
	// have up to 19 digits.
	MaxFeatureVersionLength = 64
	// MaxReportWithinSeconds is the longest time over which reports are spread.
	MaxReportWithinSeconds = int32(v1alpha1.MaxReportSpread / time.Second)
)

var centralControls = sets.New(features.ControlCentral, features.ControlDynamic)

// ValidateFeatureValue validates a new FeatureValue.
func ValidateFeatureValue(value *features.FeatureValue) field.ErrorList {
	errs := apimachineryvalidation.ValidateObjectMeta(&value.ObjectMeta, true, ValidateGateName, field.NewPath("metadata"))
	return append(errs, validateFeatureValue(value)...)
}

// ValidateFeatureValueUpdate validates a change of a FeatureValue.
func ValidateFeatureValueUpdate(value, old *features.FeatureValue) field.ErrorList {
	errs := apimachineryvalidation.ValidateObjectMetaUpdate(&value.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateFeatureValue(value)...)
}

// isResourceVersion returns true for a version that can be compared with others.
func isResourceVersion(version string) bool {
	_, err := resourceversion.CompareResourceVersion(version, version)
	return err == nil
}

func validateFeatureValue(value *features.FeatureValue) field.ErrorList {
	var errs field.ErrorList
	if control := field.NewPath("control"); value.Control == "" {
		errs = append(errs, field.Required(control, "when processes take the value"))
	} else {
		errs = append(errs, validateEnum(value.Control, centralControls, control)...)
	}
	switch version := field.NewPath("featureVersion"); {
	case value.FeatureVersion == "":
		errs = append(errs, field.Required(version, "the resourceVersion of the Feature"))
	case len(value.FeatureVersion) > MaxFeatureVersionLength:
		errs = append(errs, field.TooLong(version, "", MaxFeatureVersionLength))
	case !isResourceVersion(value.FeatureVersion):
		errs = append(errs, field.Invalid(version, value.FeatureVersion, "must be the resourceVersion of a Feature, such as 123456"))
	}
	if value.Rollout != nil {
		errs = append(errs, validateRollout(value.Rollout, field.NewPath("rollout"))...)
	} else if value.Previous != nil {
		errs = append(errs, field.Forbidden(field.NewPath("previous"), "must be unset without rollout: all instances take value"))
	}
	if s := value.ReportWithinSeconds; s < 0 || s > MaxReportWithinSeconds {
		errs = append(errs, field.Invalid(field.NewPath("reportWithinSeconds"), s, fmt.Sprintf("must be between 0 and %d", MaxReportWithinSeconds)))
	}
	return errs
}
