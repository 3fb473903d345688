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
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes-features/pkg/apis/features"
)

// store puts a report into etcd as a server did that had other rules.
func store(ctx context.Context, t *testing.T, r *REST, report *features.FeatureReport) *features.FeatureReport {
	t.Helper()
	key, err := r.KeyFunc(ctx, report.Name)
	if err != nil {
		t.Fatal(err)
	}
	stored := &features.FeatureReport{}
	if err := r.Storage.Create(ctx, key, report, stored, 0, false); err != nil {
		t.Fatal(err)
	}
	return stored
}

// TestUnchangedWritePasses for each user and each stored object. The migrator of
// storage versions writes so. It may patch every resource but no
// featurereports/any.
func TestUnchangedWritePasses(t *testing.T) {
	r := newREST(t)
	made := created(node(t, "n1"), t, r, report("kubelet", "n1", "n1", ""))
	refused := report("kube-scheduler", "old", "", "scheduler")
	refused.UID = "u"
	refused.Spec.BinaryVersion = "not a version"
	refused.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	refused = store(in(t, "scheduler"), t, r, refused)
	// The server knows the Node now, and would make it the report's owner.
	knowing(r, "a")
	for name, before := range map[string]*features.FeatureReport{"a report without its Node": made, "what is refused today": refused} {
		t.Run(name, func(t *testing.T) {
			applied := before.DeepCopy()
			// As server-side apply of nothing does to an object without managed fields.
			applied.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "before-first-apply"}}
			got, err := update(in(t, "migrator"), r, applied, true)
			if err != nil {
				t.Fatal(err)
			}
			want := before.DeepCopy()
			want.ManagedFields = nil
			want.ResourceVersion = got.ResourceVersion
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the report changed (-want +got):\n%s", diff)
			}
			changed := got.DeepCopy()
			changed.Labels = map[string]string{"a": "b"}
			if _, err := update(in(t, "migrator"), r, changed, true); err == nil {
				t.Error("a write that changes something passes as well")
			}
		})
	}
}
