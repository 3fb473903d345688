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

package lifecycle

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// TestAnAdoptedClusterKeepsItsLeftovers until a user requests their removal:
// the gate was used and turned off before the server flow existed.
func TestAnAdoptedClusterKeepsItsLeftovers(t *testing.T) {
	config := controlPlane(gate + "=true,FeatureLifecycle=false")
	config.Only = []string{localcluster.Etcd, localcluster.APIServer}
	c := framework.Start(t, config)
	names := []string{"a", "b"}
	versions := map[string]string{}
	for _, name := range names {
		versions[name] = create(t, c, statefulSet(name, rolling)).ResourceVersion
	}

	const key = "/registry/statefulsets/default/a"
	backup, err := c.Etcd().Get(t.Context(), key)
	if err != nil || len(backup.Kvs) != 1 {
		t.Fatalf("reading %s from etcd: %v, %v", key, backup, err)
	}

	adopt := gate + "=false"
	if err := c.Restart(t.Context(), &adopt); err != nil {
		t.Fatalf("restarting with the feature lifecycle: %v", err)
	}
	clean := func(f *v1alpha1.Feature) *metav1.Condition {
		return meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionClean)
	}
	found := c.WaitForFeature(gate, "adopted with leftovers", func(f *v1alpha1.Feature) bool {
		if f.Status.Transition != nil || len(f.Status.Tasks) > 0 {
			t.Errorf("a transition runs unasked: %+v", f.Status)
		}
		return f.Status.State == v1alpha1.StateOff && clean(f) != nil && clean(f).Reason == v1alpha1.ReasonLeftovers
	})
	if message := clean(found).Message; !strings.Contains(message, "2 statefulsets.apps have spec.updateStrategy.rollingUpdate.maxUnavailable (default/a, default/b)") {
		t.Errorf("the leftovers are told as %q", message)
	}
	for _, name := range names {
		if is := read(t, c, name).ResourceVersion; is != versions[name] {
			t.Errorf("StatefulSet %s was written unasked: resourceVersion %s, now %s", name, versions[name], is)
		}
	}

	begun := time.Now()
	cleanup, err := c.Features.FeaturesV1alpha1().Features(metav1.NamespaceSystem).CreateCleanup(t.Context(), gate, &v1alpha1.FeatureCleanup{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("asking for their removal: %v", err)
	}
	if cleanup.Status.TransitionID == "" || len(cleanup.Status.Tasks) != 2 {
		t.Errorf("the answer is %+v", cleanup.Status)
	}
	c.WaitForFeature(gate, "clean", func(f *v1alpha1.Feature) bool {
		return f.Status.State == v1alpha1.StateOff && clean(f).Reason == v1alpha1.ReasonNothingLeft
	})
	t.Logf("clean %s after it was asked for", time.Since(begun).Round(time.Millisecond))
	for _, name := range names {
		if is := read(t, c, name); framework.HasMaxUnavailable(is) {
			t.Errorf("StatefulSet %s still has maxUnavailable %s", name, is.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable)
		}
	}

	// One comes back from a backup. The condition says for half an hour that nothing is left;
	// a clean-up looks itself.
	if _, err := c.Etcd().Put(t.Context(), key, string(backup.Kvs[0].Value)); err != nil {
		t.Fatal(err)
	}
	features := c.Features.FeaturesV1alpha1().Features(metav1.NamespaceSystem)
	if _, err := features.CreateCleanup(t.Context(), gate, &v1alpha1.FeatureCleanup{}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("a dry run of the removal of what came back: %v", err)
	}
	if _, err := features.CreateCleanup(t.Context(), gate, &v1alpha1.FeatureCleanup{}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("asking for the removal of what came back: %v", err)
	}
	c.WaitForFeature(gate, "clean again", func(f *v1alpha1.Feature) bool {
		return f.Status.State == v1alpha1.StateOff && clean(f).Reason == v1alpha1.ReasonNothingLeft && !framework.HasMaxUnavailable(read(t, c, "a"))
	})
	_, err = features.CreateCleanup(t.Context(), gate, &v1alpha1.FeatureCleanup{}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "nothing is left") {
		t.Errorf("a dry run without leftovers: %v, want a conflict that says so", err)
	}
}
