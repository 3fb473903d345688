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
	"strings"
	"unicode/utf8"

	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
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
	// A user's name may have any bytes; what is stored is UTF-8.
	if !utf8.ValidString(spec.Username) {
		errs = append(errs, field.Invalid(fldPath.Child("username"), strings.ToValidUTF8(spec.Username, string(utf8.RuneError)), "must be UTF-8"))
	}
	return append(errs, validateFeatureReportSpec(report, fldPath)...)
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
	return append(errs, validateFeatureReportSpec(report, fldPath)...)
}

func validateInstance(instance string, fldPath *field.Path) field.ErrorList {
	if instance == "" {
		return field.ErrorList{field.Required(fldPath, "identifies a process of the component")}
	}
	return validateSubdomain(instance, fldPath)
}

func validateSubdomain(text string, fldPath *field.Path) field.ErrorList {
	return validateName(text, validation.DNS1123SubdomainMaxLength, validation.IsDNS1123Subdomain, fldPath)
}

func validateLabel(text string, fldPath *field.Path) field.ErrorList {
	return validateName(text, validation.DNS1123LabelMaxLength, validation.IsDNS1123Label, fldPath)
}

// validateName does not repeat a text that is too long in its message.
func validateName(text string, most int, problems func(string) []string, fldPath *field.Path) field.ErrorList {
	if len(text) > most {
		return field.ErrorList{field.TooLong(fldPath, "", most)}
	}
	var errs field.ErrorList
	for _, problem := range problems(text) {
		errs = append(errs, field.Invalid(fldPath, text, problem))
	}
	return errs
}

// validateFeatureReportSpec validates what may change.
func validateFeatureReportSpec(report *features.FeatureReport, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	spec := &report.Spec
	if spec.NodeName != "" {
		errs = append(errs, validateSubdomain(spec.NodeName, fldPath.Child("nodeName"))...)
	}
	if spec.Process != "" {
		errs = append(errs, validateLabel(spec.Process, fldPath.Child("process"))...)
	}
	errs = append(errs, validateBinaryVersion(spec.BinaryVersion, fldPath.Child("binaryVersion"))...)
	errs = append(errs, validateMinorVersion(spec.EmulationVersion, fldPath.Child("emulationVersion"))...)
	errs = append(errs, validateReportedFeatures(spec.Features, fldPath.Child("features"))...)
	errs = append(errs, validateNodeComponent(report, fldPath.Child("nodeName"))...)
	errs = append(errs, validateReportMetadata(report, field.NewPath("metadata"))...)
	errs = append(errs, validateLiveness(report, fldPath.Child("liveness", "lease"))...)
	return append(errs, validateReportSize(report, field.NewPath("metadata"))...)
}

func validateReportedFeatures(reported []features.ReportedFeature, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(reported); n > MaxReportedFeatures {
		return append(errs, field.TooMany(fldPath, n, MaxReportedFeatures))
	}
	size := 0
	for i := range reported {
		size += len(reported[i].Name)
	}
	if size > MaxReportedNames {
		// The names themselves would make the message as long.
		return append(errs, field.Invalid(fldPath, size, fmt.Sprintf("the names may have at most %d characters together", MaxReportedNames)))
	}
	seen := sets.New[string]()
	for i := range reported {
		name := reported[i].Name
		at := fldPath.Index(i)
		for _, problem := range v1alpha1.GateNameProblems(name) {
			errs = append(errs, field.Invalid(at.Child("name"), name, problem))
		}
		if seen.Has(name) {
			errs = append(errs, field.Duplicate(at.Child("name"), name))
		}
		seen.Insert(name)
		errs = append(errs, validateEnum(reported[i].Stage, stages, at.Child("stage"))...)
		errs = append(errs, validateSwitchTime(reported[i].SwitchTime, at.Child("switchTime"))...)
		errs = append(errs, validateEnum(reported[i].Control, controls, at.Child("control"))...)
	}
	return errs
}

// ValidateFeatureConfirmation validates a FeatureConfirmation. What it changes in a report
// that is valid leaves it so.
func ValidateFeatureConfirmation(confirmation *features.FeatureConfirmation) field.ErrorList {
	fldPath := field.NewPath("spec")
	spec := &confirmation.Spec
	if spec.Process == "" {
		return field.ErrorList{field.Required(fldPath.Child("process"), "has to be that of the report, which its process writes with it")}
	}
	errs := validateLabel(spec.Process, fldPath.Child("process"))
	values := fldPath.Child("values")
	if len(spec.Values) == 0 {
		return append(errs, field.Required(values, "has the values that are confirmed"))
	}
	list := make([]features.ReportedFeature, len(spec.Values))
	for i, v := range spec.Values {
		list[i].Name, list[i].SwitchTime = v.Name, v.SwitchTime
	}
	return append(errs, validateReportedFeatures(list, values)...)
}

// validateReportMetadata keeps reports small: there is one for each process.
func validateReportMetadata(report *features.FeatureReport, fldPath *field.Path) field.ErrorList {
	size := 0
	for _, m := range []map[string]string{report.Annotations, report.Labels} {
		for key, value := range m {
			size += len(key) + len(value)
		}
	}
	var errs field.ErrorList
	if size > MaxReportMetadata {
		errs = append(errs, field.Invalid(fldPath, fmt.Sprintf("%d bytes", size), fmt.Sprintf("labels and annotations together may have at most %d bytes", MaxReportMetadata)))
	}
	if n := len(report.OwnerReferences) + len(report.Finalizers); n > MaxReportOwners {
		errs = append(errs, field.TooMany(fldPath.Child("ownerReferences"), n, MaxReportOwners))
	}
	return errs
}

// nodeComponents are Kubernetes' own components of which each node has one.
var nodeComponents = sets.New("kubelet", "kube-proxy")

// validateNodeComponent requires Kubernetes' own node components to name their
// node: expected reports of a node are found by that name.
func validateNodeComponent(report *features.FeatureReport, fldPath *field.Path) field.ErrorList {
	spec := &report.Spec
	if report.Namespace != metav1.NamespaceSystem || !nodeComponents.Has(spec.Component) || spec.NodeName == spec.Instance {
		return nil
	}
	return field.ErrorList{field.Invalid(fldPath, spec.NodeName, fmt.Sprintf("must be the same as spec.instance, %q: each node has one %s", spec.Instance, spec.Component))}
}

// validateLiveness lets a process name a Lease that is its own, or its Node.
// Another process's Lease would make a lost process seem alive.
func validateLiveness(report *features.FeatureReport, fldPath *field.Path) field.ErrorList {
	lease, onNode := report.Spec.Liveness.Lease, report.Spec.NodeName != ""
	switch {
	case lease == nil && onNode:
		return nil
	case lease == nil:
		return field.ErrorList{field.Required(fldPath, "or spec.nodeName: others have to see whether the process is alive")}
	case onNode:
		return field.ErrorList{field.Forbidden(fldPath, "may not be set together with spec.nodeName: a process on a node is alive while the node is Ready")}
	}
	errs := validateSubdomain(lease.Namespace, fldPath.Child("namespace"))
	if errs = append(errs, validateSubdomain(lease.Name, fldPath.Child("name"))...); len(errs) > 0 {
		return errs
	}
	// Controller managers and schedulers may write all Leases where theirs are,
	// and must not be able to declare a kube-apiserver dead or alive.
	want := report.Namespace
	if want == metav1.NamespaceSystem && report.Spec.Component != "kube-apiserver" {
		want = v1alpha1.LeaseNamespace
	}
	if lease.Namespace != want {
		errs = append(errs, field.Invalid(fldPath.Child("namespace"), lease.Namespace, fmt.Sprintf("must be %q for reports of %s in namespace %q", want, report.Spec.Component, report.Namespace)))
	}
	if lease.Name != report.Name {
		errs = append(errs, field.Invalid(fldPath.Child("name"), lease.Name, fmt.Sprintf("must be the report's own name, %q", report.Name)))
	}
	return errs
}

// validateBinaryVersion accepts what kubectl version prints, and nothing.
func validateBinaryVersion(version string, fldPath *field.Path) field.ErrorList {
	switch {
	case version == "":
		return nil
	case len(version) > MaxVersionLength:
		return field.ErrorList{field.TooLong(fldPath, "", MaxVersionLength)}
	}
	// ParseGeneric takes anything behind the numbers, and blanks before them.
	graphic := !strings.ContainsFunc(version, func(r rune) bool { return r <= ' ' || r > '~' })
	if _, err := utilversion.ParseGeneric(version); err != nil || !graphic {
		return field.ErrorList{field.Invalid(fldPath, version, "must be a version such as v1.37.2")}
	}
	return nil
}
