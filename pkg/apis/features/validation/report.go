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

package validation

import (
	"fmt"

	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kubernetes-features/pkg/apis/features"
)

// ValidateFeatureReport validates a new FeatureReport.
func ValidateFeatureReport(report *features.FeatureReport) field.ErrorList {
	errs := apimachineryvalidation.ValidateObjectMeta(&report.ObjectMeta, true, apimachineryvalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	fldPath := field.NewPath("spec")
	spec := &report.Spec
	errs = append(errs, validateComponent(spec.Component, fldPath.Child("component"))...)
	errs = append(errs, validateInstance(spec.Instance, fldPath.Child("instance"))...)
	if want := spec.Component + "." + spec.Instance; spec.Component != "" && spec.Instance != "" && report.Name != want {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), report.Name, fmt.Sprintf("must be <spec.component>.<spec.instance>, here %q", want)))
	}
	return append(errs, validateFeatureReportSpec(spec, fldPath)...)
}

// ValidateFeatureReportUpdate validates a change of a FeatureReport.
func ValidateFeatureReportUpdate(report, old *features.FeatureReport) field.ErrorList {
	errs := apimachineryvalidation.ValidateObjectMetaUpdate(&report.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	fldPath := field.NewPath("spec")
	for name, values := range map[string][2]string{
		"component": {report.Spec.Component, old.Spec.Component},
		"instance":  {report.Spec.Instance, old.Spec.Instance},
		"nodeName":  {report.Spec.NodeName, old.Spec.NodeName},
		"username":  {report.Spec.Username, old.Spec.Username},
	} {
		errs = append(errs, apimachineryvalidation.ValidateImmutableField(values[0], values[1], fldPath.Child(name))...)
	}
	return append(errs, validateFeatureReportSpec(&report.Spec, fldPath)...)
}

func validateInstance(instance string, fldPath *field.Path) field.ErrorList {
	if instance == "" {
		return field.ErrorList{field.Required(fldPath, "tells the processes of a component apart")}
	}
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Subdomain(instance) {
		errs = append(errs, field.Invalid(fldPath, instance, problem))
	}
	return errs
}

// validateFeatureReportSpec validates what may change.
func validateFeatureReportSpec(spec *features.FeatureReportSpec, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.NodeName != "" {
		for _, problem := range apimachineryvalidation.NameIsDNSSubdomain(spec.NodeName, false) {
			errs = append(errs, field.Invalid(fldPath.Child("nodeName"), spec.NodeName, problem))
		}
	}
	errs = append(errs, validateBinaryVersion(spec.BinaryVersion, fldPath.Child("binaryVersion"))...)
	errs = append(errs, validateMinorVersion(spec.EmulationVersion, fldPath.Child("emulationVersion"))...)
	errs = append(errs, validateReportedFeatures(spec.Features, fldPath.Child("features"))...)
	return append(errs, validateLiveness(&spec.Liveness, fldPath.Child("liveness"))...)
}

func validateReportedFeatures(reported []features.ReportedFeature, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(reported); n > MaxReportedFeatures {
		return append(errs, field.TooMany(fldPath, n, MaxReportedFeatures))
	}
	seen := sets.New[string]()
	for i := range reported {
		name := reported[i].Name
		at := fldPath.Index(i)
		for _, problem := range ValidateGateName(name, false) {
			errs = append(errs, field.Invalid(at.Child("name"), name, problem))
		}
		if seen.Has(name) {
			errs = append(errs, field.Duplicate(at.Child("name"), name))
		}
		seen.Insert(name)
		errs = append(errs, validateEnum(reported[i].Stage, stages, at.Child("stage"))...)
	}
	return errs
}

func validateLiveness(liveness *features.ReportLiveness, fldPath *field.Path) field.ErrorList {
	if liveness.Lease == nil {
		return nil
	}
	var errs field.ErrorList
	fldPath = fldPath.Child("lease")
	for _, problem := range apimachineryvalidation.ValidateNamespaceName(liveness.Lease.Namespace, false) {
		errs = append(errs, field.Invalid(fldPath.Child("namespace"), liveness.Lease.Namespace, problem))
	}
	for _, problem := range apimachineryvalidation.NameIsDNSSubdomain(liveness.Lease.Name, false) {
		errs = append(errs, field.Invalid(fldPath.Child("name"), liveness.Lease.Name, problem))
	}
	return errs
}

// validateBinaryVersion accepts what kubectl version prints, and nothing.
func validateBinaryVersion(version string, fldPath *field.Path) field.ErrorList {
	switch {
	case version == "":
		return nil
	case len(version) > MaxVersionLength:
		return field.ErrorList{field.TooLong(fldPath, version, MaxVersionLength)}
	}
	if _, err := utilversion.ParseGeneric(version); err != nil {
		return field.ErrorList{field.Invalid(fldPath, version, "must be a version such as v1.36.3")}
	}
	return nil
}
