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

package controller

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
)

// safety returns the functions that evaluate moves to the adjacent minor versions from
// this binary's own specs of the gate, as far as they reach. They are nil for gates
// that this server does not have: their behavior in another version is unknown here.
func (o *observer) safety(name string, flags tracker.Flags, declared transition.Declared) (upgrade, downgrade transition.EvaluateSkew) {
	if _, ok := o.config.Specs[featuregate.Feature(name)]; !ok {
		return nil, nil
	}
	judge := func(feature *v1alpha1.Feature, here, there *utilversion.Version) *transition.SkewResult {
		q := o.question(feature, flags, declared, here, there)
		v := versionskew.Evaluate(q)
		if known := o.config.SpecsUpTo; !q.Down && (known == nil || known.LessThan(there)) {
			v = versionskew.EvaluateAhead(q)
		}
		return &transition.SkewResult{Status: v.Status, Reason: v.Reason, Message: v.Message()}
	}
	upgrade = func(feature *v1alpha1.Feature, version string) *transition.SkewResult {
		here, err := utilversion.ParseMajorMinor(version)
		if err != nil {
			return nil
		}
		return judge(feature, here, here.AddMinor(1))
	}
	downgrade = func(feature *v1alpha1.Feature, version string) *transition.SkewResult {
		here, err := utilversion.ParseMajorMinor(version)
		if err != nil || here.Minor() == 0 {
			return nil
		}
		return judge(feature, here, here.SubtractMinor(1))
	}
	return upgrade, downgrade
}

// question returns what is known of a feature for a move between two versions, from the
// specs of its gate and of the related ones.
func (o *observer) question(feature *v1alpha1.Feature, flags tracker.Flags, declared transition.Declared, here, there *utilversion.Version) versionskew.Input {
	specs := o.config.Specs[featuregate.Feature(feature.Name)]
	q := versionskew.Input{
		Feature:     feature,
		To:          there.String(),
		Down:        there.LessThan(here),
		Current:     versionskew.SpecAt(specs, here),
		Target:      versionskew.SpecAt(specs, there),
		Explicit:    flags.Explicit,
		Controlled:  flags.Controlled,
		Dependences: slices.Clone(flags.Dependences),
		Stages:      flags.Stages,
		Tasks:       transition.PathTo(&feature.Status, declared, there.String()),
		Clears:      len(declared.OnDisable) > 0,
	}
	for i := range q.Dependences {
		d := &q.Dependences[i]
		d.Target = versionskew.SpecAt(o.config.Specs[featuregate.Feature(d.Name)], there)
	}
	q.StartupBlocking = declared.ObstructingOf(q.Tasks)
	if clean := meta.FindStatusCondition(feature.Status.Conditions, v1alpha1.ConditionClean); clean != nil && clean.Reason == v1alpha1.ReasonLeftovers {
		q.Leftovers = clean.Message
	}
	return q
}
