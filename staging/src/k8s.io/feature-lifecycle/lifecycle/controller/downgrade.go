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

package controller

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/safety"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// downgrade judges a move to the minor version below the cluster's from this
// binary's own specs of the gate. It is nil for gates that this server does not
// have: what another version does with them is not known here.
func (c *Controller) downgrade(name string, explicit []safety.Setting, declared transition.Declared) func(*v1alpha1.FeatureStatus, string) *transition.Verdict {
	specs, ok := c.config.Specs[featuregate.Feature(name)]
	if !ok {
		return nil
	}
	slices.SortFunc(explicit, func(a, b safety.Setting) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Instance, b.Instance))
	})
	return func(status *v1alpha1.FeatureStatus, version string) *transition.Verdict {
		here, err := utilversion.ParseMajorMinor(version)
		if err != nil || here.Minor() == 0 {
			return nil
		}
		there := here.SubtractMinor(1)
		to := there.String()
		q := safety.Question{
			Feature:  &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: c.config.Namespace, Name: name}, Status: *status},
			To:       to,
			Down:     true,
			Here:     safety.SpecAt(specs, here),
			There:    safety.SpecAt(specs, there),
			Explicit: explicit,
			Tasks:    transition.PathTo(status, declared, to),
			Clears:   len(declared.OnDisable) > 0,
		}
		if clean := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionClean); clean != nil && clean.Reason == v1alpha1.ReasonLeftovers {
			q.Leftovers = clean.Message
		}
		v := safety.Judge(q)
		return &transition.Verdict{Status: v.Status, Reason: v.Reason, Message: v.Message}
	}
}
