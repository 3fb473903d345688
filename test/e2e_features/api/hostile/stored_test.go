//go:build linux

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

package hostile

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/scheme"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// keep holds what is stored of the group against what was stored before. In other
// namespaces than that of Kubernetes objects count with their version in etcd, since
// nothing may change there. In that of Kubernetes the server flow writes what it sees,
// so they count with what requests could change.
func keep(t *testing.T, etcd *clientv3.Client) *framework.Kept {
	t.Helper()
	kept := framework.Keep(t, etcd, "/registry/feature", func(t testing.TB, kv *mvccpb.KeyValue) string {
		if !strings.Contains(string(kv.Key), "/kube-system/") {
			return fmt.Sprint(kv.ModRevision)
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(kv.Value, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", kv.Key, err)
		}
		return changeable(t, object)
	})
	if kept.Len() < 200 {
		t.Fatalf("only %d objects of the group are in etcd", kept.Len())
	}
	return kept
}

// checkStored is an error if something has changed since the last look.
func (w *world) checkStored(t *testing.T) {
	t.Helper()
	before, after := w.kept.Changes(t)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("what is stored has changed (-before +after):\n%s", diff)
	}
}

// changeable returns the part of an object of Kubernetes that the server flow and
// reporters do not change.
func changeable(t testing.TB, object runtime.Object) string {
	t.Helper()
	of, err := meta.Accessor(object)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]any{
		"uid": of.GetUID(), "labels": of.GetLabels(), "annotations": of.GetAnnotations(),
		"finalizers": of.GetFinalizers(), "owners": of.GetOwnerReferences(), "deleted": of.GetDeletionTimestamp(),
	}
	switch o := object.(type) {
	case *v1alpha1.Feature:
		kept["generation"], kept["spec"] = o.Generation, o.Spec
		kept["state"], kept["transition"] = o.Status.State, o.Status.Transition
	case *v1alpha1.FeatureReport:
		kept["component"], kept["instance"], kept["liveness"] = o.Spec.Component, o.Spec.Instance, o.Spec.Liveness
	default:
		t.Fatalf("%T is in etcd", object)
	}
	text, err := json.Marshal(kept)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
