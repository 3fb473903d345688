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

// Package validation validates objects of features.k8s.io. It is pure; the
// registry's strategies call it.
package validation

import (
	"fmt"
	"strings"

	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/apis/features"
)

// Limits keep each object small.
const (
	// MaxNameLength is the longest name of a gate, component, instance or task.
	MaxNameLength = v1alpha1.MaxNameLength
	// MaxReportedFeatures is the most features that one report lists. The
	// binaries of 1.37 know 253.
	MaxReportedFeatures = v1alpha1.MaxReportedFeatures
	// MaxReportedNames is the most characters that their names have together,
	// and MaxReportMetadata those of annotations and labels.
	MaxReportedNames  = v1alpha1.MaxReportedNames
	MaxReportMetadata = 4 << 10
	// MaxReportOwners is the most owners and finalizers that a report has.
	MaxReportOwners = 10
	// MaxTasks is the most tasks that one transition has.
	MaxTasks = v1alpha1.MaxTasks
	// MaxUses is the most rows of uses: components × versions × values.
	MaxUses = 1000
	// MaxExamples is the most instances that one use or leftover names.
	MaxExamples = 5
	// MaxMessageLength is the longest message.
	MaxMessageLength = 32768
	// MaxCheckpointLength is the longest checkpoint of a task.
	MaxCheckpointLength = v1alpha1.MaxCheckpointLength
	// MaxVersionLength is the longest version of a binary.
	MaxVersionLength = v1alpha1.MaxVersionLength
	// MaxRolloutComponents is the most components that a rollout names.
	MaxRolloutComponents = 100
)

// ValidateGateName returns what is wrong with the name of a feature gate, in the form of
// apimachinery's ValidateNameFunc.
func ValidateGateName(name string, _ bool) []string { return v1alpha1.GateNameProblems(name) }

// ValidateFeature validates a new Feature.
func ValidateFeature(feature *features.Feature) field.ErrorList {
	errs := apimachineryvalidation.ValidateObjectMeta(&feature.ObjectMeta, true, ValidateGateName, field.NewPath("metadata"))
	errs = append(errs, validateFeatureSpec(&feature.Spec, field.NewPath("spec"))...)
	return append(errs, validateFeatureSize(feature, field.NewPath("metadata"))...)
}

// ValidateFeatureUpdate validates a change of a Feature's spec.
func ValidateFeatureUpdate(feature, old *features.Feature) field.ErrorList {
	errs := apimachineryvalidation.ValidateObjectMetaUpdate(&feature.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, validateFeatureSpec(&feature.Spec, field.NewPath("spec"))...)
	return append(errs, validateFeatureSize(feature, field.NewPath("metadata"))...)
}

// ValidateFeatureStatusUpdate validates a change of a Feature's status.
func ValidateFeatureStatusUpdate(feature, old *features.Feature) field.ErrorList {
	errs := apimachineryvalidation.ValidateObjectMetaUpdate(&feature.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, validateFeatureStatus(&feature.Status, field.NewPath("status"))...)
	return append(errs, validateFeatureSize(feature, field.NewPath("status"))...)
}

func validateFeatureSpec(spec *features.FeatureSpec, fldPath *field.Path) field.ErrorList {
	if spec.Rollout == nil {
		return nil
	}
	rollout := fldPath.Child("rollout")
	return append(validateRollout(spec.Rollout, rollout), validateMoment(spec.Rollout, rollout)...)
}

// validateMoment checks what goes with a requested moment. What servers store and publish
// has percent or components beside it, too: those of the canary that has the value until then.
func validateMoment(rollout *features.FeatureRollout, fldPath *field.Path) field.ErrorList {
	if rollout.At == nil {
		return nil
	}
	const why = "must be unset with at: until then those have the value that have it now, and then all"
	var errs field.ErrorList
	if rollout.Percent != nil {
		errs = append(errs, field.Forbidden(fldPath.Child("percent"), why))
	}
	if len(rollout.Components) > 0 {
		errs = append(errs, field.Forbidden(fldPath.Child("components"), why))
	}
	return errs
}

func validateRollout(rollout *features.FeatureRollout, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if rollout.Attempt < 0 {
		errs = append(errs, field.Invalid(fldPath.Child("attempt"), rollout.Attempt, "must not be negative"))
	}
	if percent := rollout.Percent; percent != nil && (*percent < 0 || *percent > 100) {
		errs = append(errs, field.Invalid(fldPath.Child("percent"), *percent, "must be between 0 and 100"))
	}
	switch at := fldPath.Child("at"); {
	case rollout.At == nil:
	case rollout.At.IsZero():
		// JSON has null for it.
		errs = append(errs, field.Invalid(at, "0001-01-01T00:00:00Z", "must be a moment: leave it out for none"))
	default:
		errs = append(errs, validateTime(rollout.At.Time, at)...)
	}
	components := fldPath.Child("components")
	// Errors for each of too many elements would have any length.
	if n := len(rollout.Components); n > MaxRolloutComponents {
		return append(errs, field.TooMany(components, n, MaxRolloutComponents))
	}
	seen := sets.New[string]()
	for i, component := range rollout.Components {
		errs = append(errs, validateComponent(component, components.Index(i))...)
		if seen.Has(component) {
			errs = append(errs, field.Duplicate(components.Index(i), component))
		}
		seen.Insert(component)
	}
	return errs
}

var (
	stages = sets.New(features.StageAlpha, features.StageBeta, features.StageGA, features.StageDeprecated, features.StagePreAlpha)
	states = sets.New(features.StateOn, features.StateOff, features.StateTurningOn, features.StateTurningOff,
		features.StateUpgrading, features.StateDowngrading)
	atRest   = sets.New(features.StateOn, features.StateOff)
	sources  = sets.New(features.SourceDefault, features.SourceCommandLine, features.SourceAPI)
	controls = sets.New(features.ControlLocal, features.ControlCentral, features.ControlDynamic)
	reasons  = sets.New(features.TransitionConfiguration, features.TransitionClean, features.TransitionVersion)
)

// validateEnum accepts the empty value: nothing is known yet.
func validateEnum[T ~string](value T, known sets.Set[T], fldPath *field.Path) field.ErrorList {
	if value == "" || known.Has(value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(fldPath, value, sets.List(known))}
}

func validateFeatureStatus(status *features.FeatureStatus, fldPath *field.Path) field.ErrorList {
	errs := validateEnum(status.Stage, stages, fldPath.Child("stage"))
	errs = append(errs, validateEnum(status.State, states, fldPath.Child("state"))...)
	errs = append(errs, validateEnum(status.Control, controls, fldPath.Child("control"))...)
	errs = append(errs, validateMinorVersion(status.Version, fldPath.Child("version"))...)
	errs = append(errs, validateStoredVersions(status, fldPath.Child("storedVersions"))...)
	if c := status.Configured; c != nil {
		source := fldPath.Child("configured", "source")
		if c.Source == "" {
			errs = append(errs, field.Required(source, "the source of the value"))
		}
		errs = append(errs, validateEnum(c.Source, sources, source)...)
	}
	errs = append(errs, validateTransition(status, fldPath)...)
	errs = append(errs, validateRolloutStatus(status.Rollout, fldPath.Child("rollout"))...)
	errs = append(errs, validateTasks(status.Tasks, fldPath.Child("tasks"))...)
	errs = append(errs, validateUses(status.Uses, fldPath.Child("uses"))...)
	errs = append(errs, validateTimes(status, fldPath)...)
	return append(errs, metav1validation.ValidateConditions(status.Conditions, fldPath.Child("conditions"))...)
}

func validateRolloutStatus(rollout *features.FeatureRolloutStatus, fldPath *field.Path) field.ErrorList {
	if rollout == nil {
		return nil
	}
	errs := validateRollout(&rollout.Observed, fldPath.Child("observed"))
	if rollout.StartTime.IsZero() {
		errs = append(errs, field.Required(fldPath.Child("startTime"), "the time from which instances count"))
	}
	if rollout.Halted != (rollout.HaltTime != nil) {
		errs = append(errs, field.Invalid(fldPath.Child("haltTime"), rollout.HaltTime, "must be set if and only if halted is true"))
	}
	if rollout.Halted && rollout.UnhealthySince != nil {
		errs = append(errs, field.Forbidden(fldPath.Child("unhealthySince"), "must be unset once halted is true"))
	}
	if rollout.MomentHeld && (rollout.Halted || rollout.Observed.At == nil) {
		errs = append(errs, field.Forbidden(fldPath.Child("momentHeld"), "must be unset without observed.at, and once halted is true"))
	}
	if rollout.Halted && rollout.Message == "" {
		errs = append(errs, field.Required(fldPath.Child("message"), "the cause of the halt"))
	}
	if len(rollout.Message) > MaxMessageLength {
		errs = append(errs, field.TooLong(fldPath.Child("message"), "", MaxMessageLength))
	}
	failed := fldPath.Child("failedInstances")
	if n := len(rollout.FailedInstances); n > v1alpha1.MaxFailedInstances {
		return append(errs, field.TooMany(failed, n, v1alpha1.MaxFailedInstances))
	}
	for i, instance := range rollout.FailedInstances {
		errs = append(errs, validateFailedInstance(instance, failed.Index(i))...)
	}
	return errs
}

// validateFailedInstance accepts <component>/<name>, as reports have them.
func validateFailedInstance(instance string, fldPath *field.Path) field.ErrorList {
	component, name, found := strings.Cut(instance, "/")
	if !found {
		return field.ErrorList{field.Invalid(fldPath, instance, "must be <component>/<name of the instance>")}
	}
	return append(validateComponent(component, fldPath), validateInstance(name, fldPath)...)
}

// maxStoredVersions is a lowest and a highest one.
const maxStoredVersions = 2

func validateStoredVersions(status *features.FeatureStatus, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(status.StoredVersions); n > maxStoredVersions {
		return append(errs, field.TooMany(fldPath, n, maxStoredVersions))
	}
	seen := sets.New(status.Version)
	for i, version := range status.StoredVersions {
		if version == "" {
			errs = append(errs, field.Required(fldPath.Index(i), "a minor version"))
			continue
		}
		errs = append(errs, validateMinorVersion(version, fldPath.Index(i))...)
		if seen.Has(version) {
			errs = append(errs, field.Duplicate(fldPath.Index(i), version))
		}
		seen.Insert(version)
	}
	return errs
}

// validateTransition holds S1: no task is left in a state of rest.
func validateTransition(status *features.FeatureStatus, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if atRest.Has(status.State) && len(status.Tasks) > 0 {
		errs = append(errs, field.Forbidden(fldPath.Child("tasks"), fmt.Sprintf("must be empty in state %s: a state of rest has no task left", status.State)))
	}
	t := status.Transition
	if t == nil {
		return errs
	}
	fldPath = fldPath.Child("transition")
	if status.State == "" || atRest.Has(status.State) {
		errs = append(errs, field.Forbidden(fldPath, fmt.Sprintf("must be unset in state %q", status.State)))
	}
	if t.ID == "" {
		errs = append(errs, field.Required(fldPath.Child("id"), "the ID of the transition"))
	} else if len(t.ID) > MaxNameLength {
		errs = append(errs, field.TooLong(fldPath.Child("id"), t.ID, MaxNameLength))
	}
	if t.StartTime.IsZero() {
		errs = append(errs, field.Required(fldPath.Child("startTime"), "the time at which the transition began"))
	}
	if t.Reason == "" {
		errs = append(errs, field.Required(fldPath.Child("reason"), "the cause of the transition"))
	}
	errs = append(errs, validateEnum(t.Reason, reasons, fldPath.Child("reason"))...)
	errs = append(errs, validateMinorVersion(t.FromVersion, fldPath.Child("fromVersion"))...)
	errs = append(errs, validateEnum(t.FromState, atRest, fldPath.Child("fromState"))...)
	return append(errs, validateMinorVersion(t.ToVersion, fldPath.Child("toVersion"))...)
}

func validateTasks(tasks []features.FeatureTask, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(tasks); n > MaxTasks {
		return append(errs, field.TooMany(fldPath, n, MaxTasks))
	}
	seen := sets.New[string]()
	for i := range tasks {
		task, at := &tasks[i], fldPath.Index(i)
		switch {
		case task.Name == "":
			errs = append(errs, field.Required(at.Child("name"), "identifies the task"))
		case len(task.Name) > MaxNameLength:
			errs = append(errs, field.TooLong(at.Child("name"), task.Name, MaxNameLength))
		case seen.Has(task.Name):
			errs = append(errs, field.Duplicate(at.Child("name"), task.Name))
		}
		seen.Insert(task.Name)
		if len(task.Message) > MaxMessageLength {
			errs = append(errs, field.TooLong(at.Child("message"), "", MaxMessageLength))
		}
		if len(task.Checkpoint) > MaxCheckpointLength {
			errs = append(errs, field.TooLong(at.Child("checkpoint"), "", MaxCheckpointLength))
		}
		errs = append(errs, apimachineryvalidation.ValidateNonnegativeField(task.Done, at.Child("done"))...)
		errs = append(errs, apimachineryvalidation.ValidateNonnegativeField(task.Total, at.Child("total"))...)
		errs = append(errs, apimachineryvalidation.ValidateNonnegativeField(int64(task.Attempts), at.Child("attempts"))...)
	}
	return errs
}

func validateUses(uses []features.FeatureUse, fldPath *field.Path) field.ErrorList {
	if n := len(uses); n > MaxUses {
		return field.ErrorList{field.TooMany(fldPath, n, MaxUses)}
	}
	var errs field.ErrorList
	for i := range uses {
		errs = append(errs, validateUse(&uses[i], fldPath.Index(i))...)
	}
	return errs
}

func validateUse(use *features.FeatureUse, fldPath *field.Path) field.ErrorList {
	errs := validateComponent(use.Component, fldPath.Child("component"))
	if len(use.Version) > MaxVersionLength {
		errs = append(errs, field.TooLong(fldPath.Child("version"), use.Version, MaxVersionLength))
	}
	for name, count := range map[string]int32{"count": use.Count, "expected": use.Expected, "stale": use.Stale} {
		errs = append(errs, apimachineryvalidation.ValidateNonnegativeField(int64(count), fldPath.Child(name))...)
	}
	if n := len(use.Examples); n > MaxExamples {
		return append(errs, field.TooMany(fldPath.Child("examples"), n, MaxExamples))
	}
	for i, example := range use.Examples {
		if len(example) > MaxNameLength {
			errs = append(errs, field.TooLong(fldPath.Child("examples").Index(i), "", MaxNameLength))
		}
	}
	return errs
}

// ValidateFeaturePlan validates what is posted to the subresource plan.
func ValidateFeaturePlan(plan *features.FeaturePlan) field.ErrorList {
	fldPath := field.NewPath("spec")
	switch {
	case plan.Spec.Enabled == nil && plan.Spec.TargetVersion == "":
		return field.ErrorList{field.Required(fldPath, "set either enabled or targetVersion")}
	case plan.Spec.Enabled != nil && plan.Spec.TargetVersion != "":
		return field.ErrorList{field.Invalid(fldPath, plan.Spec.TargetVersion, "set either enabled or targetVersion, not both")}
	default:
		return validateMinorVersion(plan.Spec.TargetVersion, fldPath.Child("targetVersion"))
	}
}

func validateComponent(component string, fldPath *field.Path) field.ErrorList {
	if component == "" {
		return field.ErrorList{field.Required(fldPath, "names the kind of process, for example kube-scheduler")}
	}
	return validateLabel(component, fldPath)
}

// validateMinorVersion accepts <major>.<minor> and nothing.
func validateMinorVersion(version string, fldPath *field.Path) field.ErrorList {
	switch {
	case version == "":
		return nil
	case len(version) > MaxVersionLength:
		return field.ErrorList{field.TooLong(fldPath, "", MaxVersionLength)}
	}
	if v, err := utilversion.ParseMajorMinor(version); err != nil || fmt.Sprintf("%d.%d", v.Major(), v.Minor()) != version {
		return field.ErrorList{field.Invalid(fldPath, version, "must be a minor version such as 1.36")}
	}
	return nil
}
