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

package featurereport

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes-features/pkg/apis/features"
)

func TestServerSetsReportingUser(t *testing.T) {
	ctx := genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "me"})
	report := &features.FeatureReport{Spec: features.FeatureReportSpec{Username: "stranger"}}
	Strategy.PrepareForCreate(ctx, report)
	if report.Spec.Username != "me" {
		t.Errorf("created by %q", report.Spec.Username)
	}
	changed := report.DeepCopy()
	changed.Spec.Username = "stranger"
	Strategy.PrepareForUpdate(genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "other"}), changed, report)
	if changed.Spec.Username != "me" || changed.Generation != report.Generation {
		t.Errorf("updated to %q, generation %d", changed.Spec.Username, changed.Generation)
	}
	anonymous := &features.FeatureReport{Spec: features.FeatureReportSpec{Username: "stranger"}}
	Strategy.PrepareForCreate(t.Context(), anonymous)
	if anonymous.Spec.Username != "" {
		t.Errorf("a request without a user is by %q", anonymous.Spec.Username)
	}
}

// TestManagedFieldsAreDropped: its process writes it as a whole.
func TestManagedFieldsAreDropped(t *testing.T) {
	entry := []metav1.ManagedFieldsEntry{{Manager: "m"}}
	report := &features.FeatureReport{ObjectMeta: metav1.ObjectMeta{ManagedFields: entry}}
	Strategy.PrepareForCreate(t.Context(), report)
	changed := report.DeepCopy()
	changed.ManagedFields = entry
	Strategy.PrepareForUpdate(t.Context(), changed, report)
	if len(report.ManagedFields)+len(changed.ManagedFields) > 0 {
		t.Errorf("created with %v, updated with %v", report.ManagedFields, changed.ManagedFields)
	}
}

func TestSelectableFields(t *testing.T) {
	report := &features.FeatureReport{Spec: features.FeatureReportSpec{Component: "kubelet", NodeName: "n1"}}
	_, fields, err := GetAttrs(report)
	if err != nil || fields["spec.component"] != "kubelet" || fields["spec.nodeName"] != "n1" {
		t.Errorf("fields %v, %v", fields, err)
	}
	if _, _, err := GetAttrs(&features.Feature{}); err == nil {
		t.Error("another kind has fields")
	}
}
