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

// safety returns who judges moves to the neighbouring minor versions from this
// binary's own specs of the gate, as far as they reach. They are nil for gates
// that this server does not have: what another version does with them is not
// known here.
func (c *Controller) safety(name string, explicit []safety.Setting, declared transition.Declared) (upgrade, downgrade transition.Judge) {
	specs, ok := c.config.Specs[featuregate.Feature(name)]
	if !ok {
		return nil, nil
	}
	slices.SortFunc(explicit, func(a, b safety.Setting) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Instance, b.Instance))
	})
	judge := func(status *v1alpha1.FeatureStatus, here, there *utilversion.Version) *transition.Verdict {
		q := safety.Question{
			Feature:  &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: c.config.Namespace, Name: name}, Status: *status},
			To:       there.String(),
			Down:     there.LessThan(here),
			Here:     safety.SpecAt(specs, here),
			There:    safety.SpecAt(specs, there),
			Explicit: explicit,
			Tasks:    transition.PathTo(status, declared, there.String()),
			Clears:   len(declared.OnDisable) > 0,
		}
		if clean := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionClean); clean != nil && clean.Reason == v1alpha1.ReasonLeftovers {
			q.Leftovers = clean.Message
		}
		v := safety.Judge(q)
		if known := c.config.SpecsUpTo; !q.Down && (known == nil || known.LessThan(there)) {
			v = safety.JudgeAhead(q)
		}
		return &transition.Verdict{Status: v.Status, Reason: v.Reason, Message: v.Message()}
	}
	upgrade = func(status *v1alpha1.FeatureStatus, version string) *transition.Verdict {
		here, err := utilversion.ParseMajorMinor(version)
		if err != nil {
			return nil
		}
		return judge(status, here, here.AddMinor(1))
	}
	downgrade = func(status *v1alpha1.FeatureStatus, version string) *transition.Verdict {
		here, err := utilversion.ParseMajorMinor(version)
		if err != nil || here.Minor() == 0 {
			return nil
		}
		return judge(status, here, here.SubtractMinor(1))
	}
	return upgrade, downgrade
}
