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
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes-features/pkg/apis/features"
)

// manyLabels are labels, each of them valid, of so many bytes.
func manyLabels(n int) map[string]string {
	labels := map[string]string{}
	for size := 0; size < n; size += 130 {
		labels[fmt.Sprintf("l%06d.example/%s", len(labels), strings.Repeat("a", 51))] = strings.Repeat("b", 63)
	}
	return labels
}

// TestTooLargeObjectIsRefused: labels, owners and managed fields have no limit
// together.
func TestTooLargeObjectIsRefused(t *testing.T) {
	large := problem{"metadata", "at most 1048576 bytes"}
	f := feature(func(f *features.Feature) { f.Labels = manyLabels(MaxObjectSize) })
	check(t, ValidateFeature(f), large)
	check(t, ValidateFeatureUpdate(f, f), large)
	check(t, ValidateFeature(feature(func(f *features.Feature) { f.Labels = manyLabels(MaxObjectSize / 2) })))
	check(t, ValidateFeature(feature(func(f *features.Feature) {
		f.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Apply", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(strings.Repeat(" ", MaxObjectSize))}}
	})), large)
	managed := feature(func(f *features.Feature) {
		f.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(strings.Repeat(" ", MaxObjectSize))}}
	})
	check(t, ValidateManagedFields(managed, f), problem{"metadata.managedFields", "at most 1048576 bytes"})
	check(t, ValidateManagedFields(managed, managed))
	check(t, ValidateFeatureReport(report(func(r *features.FeatureReport) {
		r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: strings.Repeat("n", MaxObjectSize), UID: "u"}}
	})), large)
	check(t, turningOn(func(s *features.FeatureStatus) {
		s.Uses = nil
		for i := range 1000 {
			s.Uses = append(s.Uses, features.FeatureUse{Component: fmt.Sprintf("c%d", i), Examples: []string{strings.Repeat("a", 253), strings.Repeat("b", 253), strings.Repeat("c", 253), strings.Repeat("d", 253), strings.Repeat("e", 253)}})
		}
	}), problem{"status", "at most 1048576 bytes"})
}

// TestErrorSizeBounded: a response must not be much longer than what was sent.
func TestErrorSizeBounded(t *testing.T) {
	const n = 100000
	for name, errs := range map[string]field.ErrorList{
		"components": ValidateFeature(feature(func(f *features.Feature) { f.Spec.Rollout = &features.FeatureRollout{Components: make([]string, n)} })),
		"tasks":      turningOn(func(s *features.FeatureStatus) { s.Tasks = make([]features.FeatureTask, n) }),
		"uses":       turningOn(func(s *features.FeatureStatus) { s.Uses = make([]features.FeatureUse, n) }),
		"stored":     turningOn(func(s *features.FeatureStatus) { s.StoredVersions = make([]string, n) }),
		"gone": turningOn(func(s *features.FeatureStatus) {
			s.Rollout = &features.FeatureRolloutStatus{StartTime: s.Transition.StartTime, FailedInstances: make([]string, n)}
		}),
		"a component": ValidateFeatureReport(report(func(r *features.FeatureReport) { r.Spec.Component = strings.Repeat("A", n) })),
		"an instance": ValidateFeatureReport(report(func(r *features.FeatureReport) { r.Spec.Instance = strings.Repeat("A", n) })),
		"a node":      ValidateFeatureReport(report(func(r *features.FeatureReport) { r.Spec.NodeName = strings.Repeat("A", n) })),
		"a version":   ValidateFeatureReport(report(func(r *features.FeatureReport) { r.Spec.EmulationVersion = strings.Repeat("1", n) })),
		"a Lease":     ValidateFeatureReport(leased(func(r *features.FeatureReport) { r.Spec.Liveness.Lease.Name = strings.Repeat("A", n) })),
		"an example":  turningOn(func(s *features.FeatureStatus) { s.Uses[0].Examples = []string{strings.Repeat("A", n)} }),
	} {
		size := 0
		for _, err := range errs {
			size += len(err.Error())
		}
		if len(errs) == 0 || len(errs) > 4 || size > 4*n {
			t.Errorf("%s: %d messages of %d bytes", name, len(errs), size)
		}
	}
}

func TestVersionIsPlainText(t *testing.T) {
	for _, version := range []string{"v1.36.3\x1b[31m", " v1.36.3", "v1.36.3 (dirty)", "v1.36.3-\xff", "v1.36.3-ä", "v1.36.3\n"} {
		check(t, ValidateFeatureReport(report(func(r *features.FeatureReport) { r.Spec.BinaryVersion = version })), problem{"spec.binaryVersion", "must be a version"})
	}
	for _, version := range []string{"v1.36.3", "1.36", "v1.36.3-alpha.1+build~1", "v0.0.0-20260101000000-abcdef123456"} {
		check(t, ValidateFeatureReport(report(func(r *features.FeatureReport) { r.Spec.BinaryVersion = version })))
	}
	check(t, ValidateFeatureReport(report(func(r *features.FeatureReport) { r.Spec.Username = "jane\xff" })), problem{"spec.username", "must be UTF-8"})
}
