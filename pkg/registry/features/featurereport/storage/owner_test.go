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
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes-features/pkg/apis/features"
)

// knowing makes the server know one uid for all Nodes, and none if that is empty.
func knowing(r *REST, uid types.UID) {
	r.node = func(name string) (*corev1.Node, error) {
		if uid == "" {
			return nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
		}
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}, nil
	}
}

func owner(name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: name, UID: uid}
}

func wantOwners(t *testing.T, what string, report *features.FeatureReport, want ...metav1.OwnerReference) {
	t.Helper()
	if diff := cmp.Diff(want, report.OwnerReferences, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: unexpected owners (-want +got):\n%s", what, diff)
	}
}

// TestReportIsOwnedByItsNode as soon as the server's cache has the Node. Other owners
// stay.
func TestReportIsOwnedByItsNode(t *testing.T) {
	r := newREST(t)
	updated := func(ctx context.Context, report *features.FeatureReport) *features.FeatureReport {
		t.Helper()
		report, err := update(ctx, r, report, report.ResourceVersion == "")
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "c"}
	made := created(node(t, "n1"), t, r, report("kubelet", "n1", "n1", ""))
	wantOwners(t, "there is no Node", made)
	made.OwnerReferences = []metav1.OwnerReference{other}
	knowing(r, "a")
	made = updated(node(t, "n1"), made)
	wantOwners(t, "it is updated, with another owner", made, other, owner("n1", "a"))
	wantOwners(t, "a report without a node", created(in(t, "scheduler"), t, r, report("kube-scheduler", "i", "", "")))
	wantOwners(t, "a report that is new", created(node(t, "n2"), t, r, report("kubelet", "n2", "n2", "")), owner("n2", "a"))
	wantOwners(t, "a report that is applied", updated(in(t, "agent"), report("agent", "n3", "n3", "")), owner("n3", "a"))
}

// TestOwnerOfWriterIsKept for a recreated Node, of which the server's cache may be
// older than the writer's.
func TestOwnerOfWriterIsKept(t *testing.T) {
	r := newREST(t)
	knowing(r, "old")
	wanted := report("kubelet", "n1", "n1", "")
	wanted.OwnerReferences = []metav1.OwnerReference{owner("n1", "new")}
	made := created(node(t, "n1"), t, r, wanted)
	wantOwners(t, "it is made", made, owner("n1", "new"))
	made.Spec.BinaryVersion = "v1.36.4"
	made, err := update(node(t, "n1"), r, made, false)
	if err != nil {
		t.Fatal(err)
	}
	wantOwners(t, "it is updated", made, owner("n1", "new"))
	changed := made.DeepCopy()
	changed.OwnerReferences[0].UID = "newer"
	if changed, err = update(node(t, "n1"), r, changed, false); err != nil {
		t.Fatal(err)
	}
	wantOwners(t, "the Node was recreated again", changed, owner("n1", "newer"))
	// Another Node is no reason to leave out its own.
	wanted = report("kubelet", "n2", "n2", "")
	wanted.OwnerReferences = []metav1.OwnerReference{owner("n9", "u")}
	wantOwners(t, "it belongs to another Node", created(node(t, "n2"), t, r, wanted), owner("n9", "u"), owner("n2", "old"))
}

// TestOrphanStaysOrphan: "kubectl delete node --cascade=orphan" makes the garbage
// collector take the owner away while the Node is there, which then goes.
func TestOrphanStaysOrphan(t *testing.T) {
	r := newREST(t)
	knowing(r, "a")
	made := created(node(t, "n1"), t, r, report("kubelet", "n1", "n1", ""))
	wantOwners(t, "it is made", made, owner("n1", "a"))
	made.OwnerReferences = nil
	// The server has not seen yet that the Node is to go.
	made, err := update(in(t, "gc"), r, made, false)
	if err != nil {
		t.Fatal(err)
	}
	wantOwners(t, "the collector has orphaned it", made)
	r.node = func(name string) (*corev1.Node, error) {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "a", DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}}}, nil
	}
	made.Spec.BinaryVersion = "v1.36.4"
	if made, err = update(node(t, "n1"), r, made, false); err != nil {
		t.Fatal(err)
	}
	wantOwners(t, "its process writes while the Node goes", made)
}
