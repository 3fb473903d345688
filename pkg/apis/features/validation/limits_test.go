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
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/apis/features"
	"k8s.io/utils/ptr"
)

// turningOn validates a feature whose status was changed from that of a plain
// transition.
func turningOn(change func(*features.FeatureStatus)) field.ErrorList {
	return ValidateFeatureStatusUpdate(feature(func(f *features.Feature) {
		f.Status.State = features.StateTurningOn
		f.Status.Transition = &features.FeatureTransition{
			ID: "t", StartTime: metav1.NewMicroTime(time.Unix(1, 0)), Reason: features.TransitionConfiguration, FromVersion: "1.35", ToVersion: "1.36",
		}
		f.Status.Tasks = []features.FeatureTask{{Name: "A"}}
		f.Status.Uses = []features.FeatureUse{{Component: "kubelet"}}
		change(&f.Status)
	}), feature(nil))
}

// TestLimits tries each limit itself, which is accepted, and one more.
func TestLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		limit int
		with  func(n int) field.ErrorList
		want  problem
	}{
		"the length of a feature's name": {MaxNameLength, func(n int) field.ErrorList {
			return ValidateFeature(feature(func(f *features.Feature) { f.Name = strings.Repeat("a", n) }))
		}, problem{"metadata.name", "253"}},
		"components of a rollout": {MaxRolloutComponents, func(n int) field.ErrorList {
			return ValidateFeature(feature(func(f *features.Feature) {
				f.Spec.Rollout = &features.FeatureRollout{}
				for i := range n {
					f.Spec.Rollout.Components = append(f.Spec.Rollout.Components, fmt.Sprintf("c%d", i))
				}
			}))
		}, problem{"spec.rollout.components", "100"}},
		"the percentage of a rollout": {100, func(n int) field.ErrorList {
			return ValidateFeature(feature(func(f *features.Feature) { f.Spec.Rollout = &features.FeatureRollout{Percent: ptr.To(int32(n))} }))
		}, problem{"spec.rollout.percent", "between 0 and 100"}},
		"the length of a transition's id": {MaxNameLength, func(n int) field.ErrorList {
			return turningOn(func(s *features.FeatureStatus) { s.Transition.ID = strings.Repeat("a", n) })
		}, problem{"status.transition.id", "253"}},
		"tasks": {MaxTasks, func(n int) field.ErrorList {
			return turningOn(func(s *features.FeatureStatus) { s.Tasks = tasks(n) })
		}, problem{"status.tasks", "100"}},
		"the length of a task's name": {MaxNameLength, func(n int) field.ErrorList {
			return turningOn(func(s *features.FeatureStatus) { s.Tasks[0].Name = strings.Repeat("a", n) })
		}, problem{"status.tasks[0].name", "253"}},
		"the length of a task's message": {MaxMessageLength, func(n int) field.ErrorList {
			return turningOn(func(s *features.FeatureStatus) { s.Tasks[0].Message = strings.Repeat("a", n) })
		}, problem{"status.tasks[0].message", "32768"}},
		"instances that a canary was halted for": {v1alpha1.MaxFailedInstances, func(n int) field.ErrorList {
			return turningOn(func(s *features.FeatureStatus) {
				s.Rollout = &features.FeatureRolloutStatus{StartTime: s.Transition.StartTime, FailedInstances: slices.Repeat([]string{"kubelet/node-1"}, n)}
			})
		}, problem{"status.rollout.failedInstances", "20"}},
		"the length of an instance's name": {MaxNameLength, func(n int) field.ErrorList {
			return turningOn(func(s *features.FeatureStatus) {
				s.Rollout = &features.FeatureRolloutStatus{StartTime: s.Transition.StartTime, FailedInstances: []string{"kubelet/" + strings.Repeat("a", n)}}
			})
		}, problem{"status.rollout.failedInstances[0]", "253"}},
		"the length of a canary's message": {MaxMessageLength, func(n int) field.ErrorList {
			return turningOn(func(s *features.FeatureStatus) {
				s.Rollout = &features.FeatureRolloutStatus{StartTime: s.Transition.StartTime, Message: strings.Repeat("a", n)}
			})
		}, problem{"status.rollout.message", "32768"}},
		"rows of uses": {MaxUses, func(n int) field.ErrorList {
			return turningOn(func(s *features.FeatureStatus) {
				s.Uses = nil
				for range n {
					s.Uses = append(s.Uses, features.FeatureUse{Component: "kubelet"})
				}
			})
		}, problem{"status.uses", "1000"}},
		"the length of a user's version": {MaxVersionLength, func(n int) field.ErrorList {
			return turningOn(func(s *features.FeatureStatus) { s.Uses[0].Version = strings.Repeat("1", n) })
		}, problem{"status.uses[0].version", "128"}},
		"examples of a use": {MaxExamples, func(n int) field.ErrorList {
			return turningOn(func(s *features.FeatureStatus) { s.Uses[0].Examples = make([]string, n) })
		}, problem{"status.uses[0].examples", "5"}},
		"features of a report": {MaxReportedFeatures, func(n int) field.ErrorList {
			return ValidateFeatureReport(report(func(r *features.FeatureReport) {
				r.Spec.Features = nil
				for i := range n {
					r.Spec.Features = append(r.Spec.Features, features.ReportedFeature{Name: fmt.Sprintf("F%d", i)})
				}
			}))
		}, problem{"spec.features", "1000"}},
		"values of a confirmation": {MaxReportedFeatures, func(n int) field.ErrorList {
			c := &features.FeatureConfirmation{Spec: features.FeatureConfirmationSpec{Process: "p"}}
			for i := range n {
				c.Spec.Values = append(c.Spec.Values, features.ConfirmedValue{Name: fmt.Sprintf("F%d", i)})
			}
			return ValidateFeatureConfirmation(c)
		}, problem{"spec.values", "1000"}},
		"the length of a binary's version": {MaxVersionLength, func(n int) field.ErrorList {
			return ValidateFeatureReport(report(func(r *features.FeatureReport) {
				r.Spec.BinaryVersion = "v1.36.3+" + strings.Repeat("a", n-len("v1.36.3+"))
			}))
		}, problem{"spec.binaryVersion", "128"}},
		"the length of a process's name": {validation.DNS1123LabelMaxLength, func(n int) field.ErrorList {
			return ValidateFeatureReport(report(func(r *features.FeatureReport) { r.Spec.Process = strings.Repeat("a", n) }))
		}, problem{"spec.process", "63"}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, tc.with(tc.limit))
			check(t, tc.with(tc.limit+1), tc.want)
		})
	}
}

func TestEveryKnownValueIsAccepted(t *testing.T) {
	for _, stage := range []features.FeatureStage{features.StageAlpha, features.StageBeta, features.StageGA, features.StageDeprecated, features.StagePreAlpha} {
		check(t, turningOn(func(s *features.FeatureStatus) { s.Stage = stage }))
		check(t, ValidateFeatureReport(report(func(r *features.FeatureReport) { r.Spec.Features[0].Stage = stage })))
	}
	for _, state := range []features.FeatureState{features.StateTurningOn, features.StateTurningOff, features.StateUpgrading, features.StateDowngrading} {
		check(t, turningOn(func(s *features.FeatureStatus) { s.State = state }))
	}
	for _, state := range []features.FeatureState{features.StateOn, features.StateOff} {
		check(t, turningOn(func(s *features.FeatureStatus) { s.State, s.Transition, s.Tasks = state, nil, nil }))
	}
	for _, control := range []features.FeatureControl{features.ControlLocal, features.ControlCentral, features.ControlDynamic} {
		check(t, turningOn(func(s *features.FeatureStatus) { s.Control = control }))
	}
	for _, source := range []features.FeatureValueSource{features.SourceDefault, features.SourceCommandLine, features.SourceAPI} {
		check(t, turningOn(func(s *features.FeatureStatus) { s.Configured = &features.FeatureConfiguration{Source: source} }))
	}
	for _, reason := range []features.FeatureTransitionReason{features.TransitionConfiguration, features.TransitionClean, features.TransitionVersion} {
		check(t, turningOn(func(s *features.FeatureStatus) { s.Transition.Reason = reason }))
	}
}

func TestValidateTransition(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*features.FeatureStatus)
		want   []problem
	}{
		"nothing wrong":     {change: func(*features.FeatureStatus) {}},
		"an unknown reason": {func(s *features.FeatureStatus) { s.Transition.Reason = "Whim" }, []problem{{"status.transition.reason", "Unsupported"}}},
		"patch versions":    {func(s *features.FeatureStatus) { s.Transition.FromVersion, s.Transition.ToVersion = "1.35.1", "v1.36" }, []problem{{"status.transition.fromVersion", "1.36"}, {"status.transition.toVersion", "1.36"}}},
		"a state to return to that is none of rest": {func(s *features.FeatureStatus) { s.Transition.FromState = features.StateTurningOn }, []problem{{"status.transition.fromState", "Unsupported"}}},
		"a state of rest to return to":              {change: func(s *features.FeatureStatus) { s.Transition.FromState = features.StateOff }},
		"stored versions that are none": {func(s *features.FeatureStatus) { s.StoredVersions = []string{"", "1.34.1"} },
			[]problem{{"status.storedVersions[0]", "minor version"}, {"status.storedVersions[1]", "1.36"}}},
		"the version among the stored versions": {func(s *features.FeatureStatus) { s.Version, s.StoredVersions = "1.35", []string{"1.35"} }, []problem{{"status.storedVersions[0]", "Duplicate"}}},
		"stored versions between the ends": {func(s *features.FeatureStatus) {
			s.Version, s.StoredVersions = "1.30", []string{"1.34", "1.35", "1.36"}
		}, []problem{{"status.storedVersions", "at most 2"}}},
		"two stored versions": {change: func(s *features.FeatureStatus) { s.Version, s.StoredVersions = "1.35", []string{"1.34", "1.36"} }},
		"no state beside it":  {func(s *features.FeatureStatus) { s.State, s.Tasks = "", nil }, []problem{{"status.transition", "must be unset"}}},
		"negative counts of users": {func(s *features.FeatureStatus) { s.Uses[0].Count, s.Uses[0].Expected, s.Uses[0].Stale = -1, -1, -1 },
			[]problem{{"status.uses[0].count", "greater than"}, {"status.uses[0].expected", "greater than"}, {"status.uses[0].stale", "greater than"}}},
		"a user that is no component": {func(s *features.FeatureStatus) { s.Uses[0].Component = "Kube Let" }, []problem{{"status.uses[0].component", "RFC 1123"}}},
	} {
		t.Run(name, func(t *testing.T) { check(t, turningOn(tc.change), tc.want...) })
	}
}

func TestImmutableFields(t *testing.T) {
	renamed := feature(func(f *features.Feature) { f.Name = "OtherGate" })
	for name, errs := range map[string]field.ErrorList{
		"of a spec":   ValidateFeatureUpdate(renamed, feature(nil)),
		"of a status": ValidateFeatureStatusUpdate(renamed, feature(nil)),
	} {
		t.Run(name, func(t *testing.T) { check(t, errs, problem{"metadata.name", "immutable"}) })
	}
	check(t, ValidateFeatureReportUpdate(report(func(r *features.FeatureReport) { r.Name = "kubelet.node-2" }), report(nil)),
		problem{"metadata.name", "immutable"})
}

// TestReportOptionalFields checks that optional fields may be empty.
func TestReportOptionalFields(t *testing.T) {
	for name, change := range map[string]func(*features.FeatureReport){
		"its versions": func(r *features.FeatureReport) { r.Spec.BinaryVersion, r.Spec.EmulationVersion = "", "" },
		"its features": func(r *features.FeatureReport) { r.Spec.Features = nil },
		"its identity": func(r *features.FeatureReport) { r.Spec.Username = "" },
	} {
		t.Run(name, func(t *testing.T) { check(t, ValidateFeatureReport(report(change))) })
	}
}

// TestUpdateIsValidatedLikeCreation tries the fields that may change.
func TestUpdateIsValidatedLikeCreation(t *testing.T) {
	changed := leased(func(r *features.FeatureReport) {
		r.Spec.BinaryVersion, r.Spec.EmulationVersion = "new", "1.36.3"
		r.Spec.Features[1].Name = "A"
		r.Spec.Liveness.Lease.Name = "/"
	})
	check(t, ValidateFeatureReportUpdate(changed, leased(nil)),
		problem{"spec.binaryVersion", "v1.37.2"}, problem{"spec.emulationVersion", "1.36"},
		problem{"spec.features[1].name", "Duplicate"}, problem{"spec.liveness.lease.name", "RFC 1123"})
}
