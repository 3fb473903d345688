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

package featurevalue

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes-features/pkg/apis/features"
	"k8s.io/utils/ptr"
)

// decorated is a value with all that clients and admission add to objects.
func decorated() *features.FeatureValue {
	return &features.FeatureValue{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: "A", ResourceVersion: "7", Generation: 3,
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m"}},
			Labels:          map[string]string{"a": "b"},
			Annotations:     map[string]string{"a": "b"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "operator", UID: "u"}},
		},
		Control: features.ControlDynamic, Value: true, FeatureVersion: "6",
	}
}

// TestOnlyWhatFollowersNeedIsStored: each of thousands would receive the rest with each change.
func TestOnlyWhatFollowersNeedIsStored(t *testing.T) {
	want := decorated()
	want.ManagedFields, want.Labels, want.Annotations, want.Generation = nil, nil, nil, 0
	created := decorated()
	Strategy.PrepareForCreate(t.Context(), created)
	if diff := cmp.Diff(want, created); diff != "" {
		t.Errorf("unexpected value when created (-want +got):\n%s", diff)
	}
	updated := decorated()
	Strategy.PrepareForUpdate(t.Context(), updated, want)
	if diff := cmp.Diff(want, updated); diff != "" {
		t.Errorf("unexpected value when updated (-want +got):\n%s", diff)
	}
}

func TestUnchangedIgnoresWhatIsNotStored(t *testing.T) {
	before := decorated()
	Strategy.PrepareForCreate(t.Context(), before)
	written := decorated()
	written.ResourceVersion = "8"
	if !Unchanged(written, before) {
		t.Error("a write of nothing changes something")
	}
	for name, change := range map[string]func(*features.FeatureValue){
		"the value":     func(v *features.FeatureValue) { v.Value = false },
		"others' value": func(v *features.FeatureValue) { v.Previous = ptr.To(false) },
		"the rollout":   func(v *features.FeatureValue) { v.Rollout = &features.FeatureRollout{} },
		"the version":   func(v *features.FeatureValue) { v.FeatureVersion = "8" },
		"an owner":      func(v *features.FeatureValue) { v.OwnerReferences = nil },
	} {
		changed := decorated()
		change(changed)
		if Unchanged(changed, before) {
			t.Errorf("a write of %s changes nothing", name)
		}
	}
}

func TestSelectableFields(t *testing.T) {
	_, fields, err := GetAttrs(decorated())
	if err != nil || fields["control"] != "Dynamic" || fields["metadata.name"] != "A" || fields["metadata.namespace"] != "kube-system" {
		t.Errorf("fields %v, %v", fields, err)
	}
	if _, _, err := GetAttrs(&features.Feature{}); err == nil {
		t.Error("another kind has fields")
	}
	if got := TriggerFuncs()["control"](decorated()); got != "Dynamic" {
		t.Errorf("watchers are indexed by %q", got)
	}
}
