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

package operators

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/operator"
)

// cleans writes a field while the feature is off. The operator reports it with the next
// step, and removes it on request, with its own permissions. Nothing else is written.
func (w *world) cleans(t *testing.T) {
	o := w.install(t, "tidy")
	plain := w.make(t, o.resource, "plain", map[string]any{"size": "1"})
	painted := w.make(t, o.resource, "painted", map[string]any{"size": "2", "color": "red"})
	const how = "ring the bell of the tidy operator"
	rings := func(c *operator.Config) { c.Settings.HowToClean = how }
	// Any replica can begin it, whichever looks after the feature.
	replicas := []*replica{o.start(t, "a", rings), o.start(t, "b", rings)}
	o.waitForState(t, v1alpha1.StateOff, 2, colors)
	o.waitForClean(t, metav1.ConditionFalse, "1 "+o.resource.GroupResource().String()+" have spec.color (default/painted); "+how+" to remove them")
	_, err := features(w.Features, o.namespace).CreateCleanup(t.Context(), colors, &v1alpha1.FeatureCleanup{}, metav1.CreateOptions{})
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "ask the operator") {
		t.Errorf("kube-apiserver is asked to clean: %v, want that it names who does", err)
	}

	o.cleanBy(t, replicas[0])
	got := w.read(t, o.resource, painted.GetName())
	if diff := cmp.Diff(any(map[string]any{"size": "2"}), got.Object["spec"]); diff != "" {
		t.Errorf("the spec of what was cleaned (-want +got):\n%s", diff)
	}
	for _, r := range replicas {
		if _, err := r.Clean(t.Context(), colors); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "nothing is left") {
			t.Errorf("cleaning what is clean: %v", err)
		}
	}

	// Once more, before anybody has looked again: the condition is still True.
	w.make(t, o.resource, "late", map[string]any{"color": "blue"})
	o.cleanBy(t, replicas[1])
	if spec, _, _ := unstructured.NestedMap(w.read(t, o.resource, "late").Object, "spec"); len(spec) > 0 {
		t.Errorf("of what was cleaned there is %v", spec)
	}
	w.untouched(t, o.resource, plain)
	w.untouched(t, o.resource, got)
	for _, r := range replicas {
		if found := o.elsewhere(r); len(found) > 0 {
			t.Errorf("a replica has sent requests for what is not its own: %v", found)
		}
		r.end(t)
	}
}

// cleanBy has a replica clean, and waits until nothing is left.
func (o *thirdParty) cleanBy(t *testing.T, r *replica) {
	t.Helper()
	status, err := r.Clean(t.Context(), colors)
	if err != nil {
		t.Fatalf("cleaning: %v", err)
	}
	if status.TransitionID == "" || len(status.Tasks) == 0 {
		t.Errorf("a clean-up began: %+v, want a transition with tasks", status)
	}
	o.waitForClean(t, metav1.ConditionTrue, "no stored object holds anything of the feature")
}

// waitForClean waits until a feature that is off has the condition Clean.
func (o *thirdParty) waitForClean(t *testing.T, status metav1.ConditionStatus, message string) {
	t.Helper()
	o.w.WaitForFeatureIn(t, o.namespace, colors, string(v1alpha1.StateOff)+", Clean "+string(status)+": "+message, func(f *v1alpha1.Feature) bool {
		c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionClean)
		return f.Status.State == v1alpha1.StateOff && c != nil && c.Status == status && c.Message == message
	})
}
