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

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes-features/pkg/apis/features"
)

// lastYear is the last that RFC 3339 can write; the first is 0. Protobuf can encode
// others, and an object that has one could not be read as JSON.
const lastYear = 9999

// validateTimes checks all times of a status.
func validateTimes(status *features.FeatureStatus, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	check := func(t time.Time, fldPath *field.Path) { errs = append(errs, validateTime(t, fldPath)...) }
	if status.StateSince != nil {
		check(status.StateSince.Time, fldPath.Child("stateSince"))
	}
	if t := status.Transition; t != nil {
		check(t.StartTime.Time, fldPath.Child("transition", "startTime"))
	}
	if r := status.Rollout; r != nil {
		path := fldPath.Child("rollout")
		check(r.StartTime.Time, path.Child("startTime"))
		if r.UnhealthySince != nil {
			check(r.UnhealthySince.Time, path.Child("unhealthySince"))
		}
		if r.HaltTime != nil {
			check(r.HaltTime.Time, path.Child("haltTime"))
		}
	}
	// More of them are refused as too many.
	for i := range min(len(status.Tasks), MaxTasks) {
		if t := status.Tasks[i].LastAttemptTime; t != nil {
			check(t.Time, fldPath.Child("tasks").Index(i).Child("lastAttemptTime"))
		}
	}
	for i := range status.Conditions {
		check(status.Conditions[i].LastTransitionTime.Time, fldPath.Child("conditions").Index(i).Child("lastTransitionTime"))
	}
	return errs
}

// validateTime checks that a time can be written as JSON.
func validateTime(t time.Time, fldPath *field.Path) field.ErrorList {
	if year := t.UTC().Year(); year < 0 || year > lastYear {
		return field.ErrorList{field.Invalid(fldPath, fmt.Sprintf("year %d", year), fmt.Sprintf("must be a time of the years 0 to %d, which are those that RFC 3339 can write", lastYear))}
	}
	return nil
}

// validateSwitchTime checks the moment for which a process waits: it is compared as text.
func validateSwitchTime(text string, fldPath *field.Path) field.ErrorList {
	if text == "" {
		return nil
	}
	if t, err := time.Parse(time.RFC3339, text); err != nil || t.UTC().Format(time.RFC3339) != text {
		return field.ErrorList{field.Invalid(fldPath, text, "must be a time in RFC 3339 and UTC with seconds, for example 2026-11-30T12:00:00Z")}
	}
	return nil
}
