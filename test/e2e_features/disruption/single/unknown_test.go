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

package single

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/scheme"
	"k8s.io/kubernetes-features/test/integration/framework"
)

// unknown leaves Features of gates that no server knows, as an upgrade does. They
// are written into etcd: nobody else may write a status.
func unknown(t *testing.T, w *world, row *row) {
	const kept, old = "RemovedThreeMinorsAgo", "RemovedFourMinorsAgo"
	for name, stored := range map[string]string{kept: "1.33", old: "1.32"} {
		feature := &v1alpha1.Feature{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name, UID: uuid.NewUUID(), CreationTimestamp: metav1.Now(), Generation: 1},
			Status:     v1alpha1.FeatureStatus{Stage: v1alpha1.StageAlpha, State: v1alpha1.StateOff, Version: stored, Control: v1alpha1.ControlLocal},
		}
		data, err := runtime.Encode(scheme.Codecs.LegacyCodec(v1alpha1.SchemeGroupVersion), feature)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.etcd.Put(t.Context(), framework.FeatureKey(name), string(data)); err != nil {
			t.Fatal(err)
		}
		row.happened()
	}
	begun := time.Now()
	exists := func(name string) bool {
		response, err := w.etcd.Get(t.Context(), framework.FeatureKey(name), clientv3.WithCountOnly())
		return err == nil && response.Count == 1
	}
	framework.WaitFor(t, "the Feature that is too old to be deleted", func() bool { return !exists(old) })
	row.recovered(time.Since(begun))
	client := w.features(w.witness()).FeaturesV1alpha1().Features(metav1.NamespaceSystem)
	said(t, "the Feature of version 1.32 went after %.1f s", time.Since(begun).Seconds())
	known := func() *metav1.Condition {
		feature, err := client.Get(t.Context(), kept, metav1.GetOptions{})
		if err != nil {
			return nil
		}
		for i, c := range feature.Status.Conditions {
			if c.Type == v1alpha1.ConditionKnown {
				return &feature.Status.Conditions[i]
			}
		}
		return nil
	}
	framework.WaitFor(t, "the other to be shown as unknown", func() bool {
		c := known()
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonNotKnown
	})
	// A restart of all servers must not take it either.
	w.restart(t, w.cluster.FeatureGates())
	hold(t, 5*time.Second)
	if !exists(kept) {
		t.Error("the Feature of version 1.33 is gone; it is kept for 3 minor versions")
		row.lost(0, 1)
	}
}
