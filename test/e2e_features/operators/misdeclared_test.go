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
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// misdeclared: an operator declares a task for the singular of its resource, and one for a
// path that its schema does not have. Both find nothing, on, used and off, and that is not
// taken for clean: the Feature says so from the beginning.
func (w *world) misdeclared(t *testing.T) {
	resource := w.define(t, "mistaken")
	singular := resource
	singular.Resource = strings.TrimSuffix(resource.Resource, "s")
	o := w.installDeclared(t, "mistaken", resource, []lifecycle.Feature{
		{Name: colors, Control: lifecycle.Dynamic, OnDisable: lifecycle.Tasks{lifecycle.ClearField(singular, "spec.color")}},
		{Name: borrowed, Control: lifecycle.Dynamic, OnDisable: lifecycle.Tasks{lifecycle.ClearField(resource, "spec.limits")}},
	})
	says := map[string]string{
		colors:   fmt.Sprintf("the server has no resource %s; it has %s: declare the task for that", singular.GroupResource(), resource.GroupResource()),
		borrowed: fmt.Sprintf("the schema of %s v1 has no spec.limits; spec has color, glaze, limit, size", resource.GroupResource()),
	}
	r := o.start(t, "a", nil)
	o.waitForState(t, v1alpha1.StateOff, 1, colors, borrowed)
	said := func(when string) {
		t.Helper()
		framework.Eventually(t, "what is declared and not there to be said of a feature that is "+when, func() error {
			for name, want := range says {
				feature, err := features(w.Features, o.namespace).Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				clean := meta.FindStatusCondition(feature.Status.Conditions, v1alpha1.ConditionClean)
				if clean == nil || clean.Reason != v1alpha1.ReasonMisdeclared || !strings.Contains(clean.Message, want) {
					return fmt.Errorf("%s of %s is %+v, want it to say %q", v1alpha1.ConditionClean, name, clean, want)
				}
			}
			return nil
		})
	}
	said("off")
	for name := range says {
		o.ask(t, name, true)
	}
	o.waitForState(t, v1alpha1.StateOn, 1, colors, borrowed)
	said("on")
	used := w.make(t, o.resource, "used", map[string]any{"color": "red", "limit": "3"})
	for name := range says {
		o.ask(t, name, false)
	}
	o.waitForState(t, v1alpha1.StateOff, 1, colors)
	// What is stored of a resource that is there is not seen: it would come back with the property.
	w.WaitForFeatureIn(t, o.namespace, borrowed, "held by a path that the schema does not have", func(f *v1alpha1.Feature) bool {
		return f.Status.State == v1alpha1.StateTurningOff && len(f.Status.Tasks) > 0 &&
			strings.Contains(f.Status.Tasks[0].Message, "has no spec.limits, so what is stored of it cannot be seen")
	})
	said("off again, or held")
	w.untouched(t, o.resource, used)
	for name, want := range says {
		framework.Eventually(t, "an event on "+name, func() error {
			events, err := w.Kube.CoreV1().Events(o.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: fields.Set{"involvedObject.name": name, "type": corev1.EventTypeWarning}.String()})
			if err != nil {
				return err
			}
			var all []string
			for _, event := range events.Items {
				all = append(all, event.Reason+": "+event.Message)
				if event.Reason == "Misdeclared" && strings.Contains(event.Message, want) {
					return nil
				}
			}
			return fmt.Errorf("there are the events %q, want one Misdeclared that says %q", all, want)
		})
	}
	if r.said("Feature does not fit the server") < 2 {
		t.Errorf("the replica's log says nothing of it:\n%s", r.logs.String())
	}
	r.end(t)
}
