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

package storage

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes-features/pkg/apis/features"
	"k8s.io/utils/ptr"
)

// store puts a Feature into etcd as a server did that had other rules.
func store(t *testing.T, s FeatureStorage, feature *features.Feature) *features.Feature {
	t.Helper()
	ctx := server(t)
	key, err := s.Feature.KeyFunc(ctx, feature.Name)
	if err != nil {
		t.Fatal(err)
	}
	stored := &features.Feature{}
	if err := s.Feature.Storage.Create(ctx, key, feature, stored, 0, false); err != nil {
		t.Fatal(err)
	}
	return stored
}

func manager(name string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: name, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "features.k8s.io/v1alpha1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}"), Subresource: "status"}
}

// TestUnchangedWritePasses for each user and each stored object, through the main
// resource and through status. Such writes encrypt stored objects with another key.
func TestUnchangedWritePasses(t *testing.T) {
	s, _ := newStorage(t)
	old := func(name string, change func(*features.Feature)) *features.Feature {
		feature := newFeature(metav1.NamespaceSystem, name, nil)
		feature.UID, feature.Generation = "u", 1
		feature.Status.State = features.StateOff
		change(feature)
		return store(t, s, feature)
	}
	for name, before := range map[string]*features.Feature{
		"valid":                             old("Valid", func(*features.Feature) {}),
		"a value of what is not dynamic":    old("Value", func(f *features.Feature) { f.Spec.Enabled = ptr.To(true) }),
		"a rollout that is refused today":   old("Rollout", func(f *features.Feature) { f.Spec.Rollout = &features.FeatureRollout{Percent: ptr.To[int32](200)} }),
		"a status that is refused today":    old("Status", func(f *features.Feature) { f.Status.Tasks = []features.FeatureTask{{Name: "A"}} }),
		"a condition that is refused today": old("Condition", func(f *features.Feature) { f.Status.Conditions = []metav1.Condition{{Type: "Clean"}} }),
	} {
		t.Run(name, func(t *testing.T) {
			for through, to := range map[string]updater{"the resource": s.Feature, "status": s.Status} {
				got, err := update(as(t, "migrator", metav1.NamespaceSystem), to, before.DeepCopy())
				if err != nil {
					t.Errorf("through %s: %v", through, err)
					continue
				}
				if diff := cmp.Diff(before, got); diff != "" {
					t.Errorf("through %s the feature changed (-want +got):\n%s", through, diff)
				}
			}
			managed := before.DeepCopy()
			managed.ManagedFields = []metav1.ManagedFieldsEntry{manager("m")}
			// Like server-side apply without fields, to an object that was never
			// applied.
			got, err := update(as(t, "migrator", metav1.NamespaceSystem), s.Feature, managed.DeepCopy())
			if err != nil || len(got.ManagedFields) != 1 {
				t.Fatalf("managed fields: %v, %v", got, err)
			}
			managed.ResourceVersion = got.ResourceVersion
			managed.ManagedFields = append(managed.ManagedFields, manager("n"))
			_, err = update(as(t, "migrator", metav1.NamespaceSystem), s.Status, managed)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), FlowUser) {
				t.Errorf("a manager of a status that is the server flow's: %v", err)
			}
		})
	}
}
