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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/operator"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// unpermitted: an operator is installed without its roles, then with those for reporting
// alone, then with all. One error each says what it lacks and which functions return it, and
// it begins as soon as it may.
func (w *world) unpermitted(t *testing.T) {
	const namespace = "humble"
	resource := w.define(t, namespace)
	o := &thirdParty{w: w, component: namespace + "-operator", resource: resource, declared: []lifecycle.Feature{
		{Name: colors, Control: lifecycle.Dynamic, OnDisable: lifecycle.Tasks{lifecycle.ClearField(resource, "spec.color")}},
		{Name: borrowed, Control: lifecycle.Dynamic},
	}}
	o.identity = w.identity(t, namespace, o.component)
	r := o.start(t, "a", nil)
	const lacks = "Operator lacks permissions"
	explained := func(what string, texts ...string) {
		t.Helper()
		framework.Eventually(t, "the log to say what it lacks "+what, func() error {
			for _, text := range texts {
				if r.said(text) == 0 {
					return fmt.Errorf("it does not say %q, but:\n%s", text, r.logs.String())
				}
			}
			return nil
		})
	}
	rules := operator.Rules(o.component)
	explained("without any",
		"runs as "+o.user()+", which lacks permissions; bind a Role in namespace humble with operator.Rules",
		"report components.features.k8s.io humble-operator; create, get, update, list, watch, delete featurereports.features.k8s.io",
		"and bind a ClusterRole with lifecycle.Rules of the declared features, of which it lacks: get, list, patch "+resource.GroupResource().String())
	if n := r.said(lacks); n != 1 {
		t.Errorf("it complains %d times, want once:\n%s", n, r.logs.String())
	}
	w.Permit(t, o.grantee(), o.name+"-reports", namespace, rules[:3])
	framework.Eventually(t, "a report", func() error {
		_, err := reports(w.Features, namespace).Get(t.Context(), o.component+".a", metav1.GetOptions{})
		return err
	})
	explained("with those to report", "of which it lacks: create, delete features.features.k8s.io; update features.features.k8s.io/status; create, update, delete featurevalues.features.k8s.io; list, watch, delete featurereports.features.k8s.io")
	// The flow has not begun: client-go would complain for it.
	if strings.Contains(r.logs.String(), "Failed to watch") {
		t.Errorf("the flow watches what it may not:\n%s", r.logs.String())
	}
	w.permit(t, o.identity, rules, lifecycle.Rules(o.declared))
	o.waitForState(t, v1alpha1.StateOff, 1, colors, borrowed)
	explained("no more", "The operator has all permissions that it needs")
	r.end(t)
}
