//go:build linux

/*
Copyright 2026 The Kubernetes Authors.

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

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/scheme"
)

// stored are the objects of the group: in other namespaces than that of Kubernetes
// with their version in etcd, since nothing may change there. In that of Kubernetes the
// server flow writes what it sees, so they are there with what requests could change.
func (w *world) stored(t *testing.T) map[string]string {
	t.Helper()
	answer, err := w.etcd.Get(t.Context(), "/registry/feature", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Kvs) < 200 {
		t.Fatalf("only %d objects of the group are in etcd", len(answer.Kvs))
	}
	objects := map[string]string{}
	for _, kv := range answer.Kvs {
		key := string(kv.Key)
		if !strings.Contains(key, "/kube-system/") {
			objects[key] = fmt.Sprint(kv.ModRevision)
			continue
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(kv.Value, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		objects[key] = changeable(t, object)
	}
	return objects
}

// changeable is what the server flow and reporters leave as it is in an object of
// Kubernetes, to which nobody writes.
func changeable(t *testing.T, object runtime.Object) string {
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
