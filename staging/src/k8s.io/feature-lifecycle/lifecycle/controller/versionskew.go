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
	utilversion "k8s.io/apimachinery/pkg/util/version"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
)

// evaluateSkew returns the functions that evaluate moves to the adjacent minor versions
// from this binary's own specs of the gate, as far as they reach. They are nil for gates
// that this server does not have: their behavior in another version is unknown here.
func (o *observer) evaluateSkew(name string, flags tracker.Flags, declared transition.Declared) (upgrade, downgrade transition.EvaluateSkew) {
	if !o.binary.Has(name) {
		return nil, nil
	}
	evaluate := func(feature *v1alpha1.Feature, current, target *utilversion.Version) *transition.SkewResult {
		move := versionskew.Move{Current: current, Target: target}
		v := o.binary.Evaluate(o.input(feature, flags, declared, move), move)
		return &transition.SkewResult{Status: v.Status, Reason: v.Reason, Message: v.Message()}
	}
	upgrade = func(feature *v1alpha1.Feature, version string) *transition.SkewResult {
		current, err := utilversion.ParseMajorMinor(version)
		if err != nil {
			return nil
		}
		return evaluate(feature, current, current.AddMinor(1))
	}
	downgrade = func(feature *v1alpha1.Feature, version string) *transition.SkewResult {
		current, err := utilversion.ParseMajorMinor(version)
		if err != nil || current.Minor() == 0 {
			return nil
		}
		return evaluate(feature, current, current.SubtractMinor(1))
	}
	return upgrade, downgrade
}

// input returns what is known of a feature for a move between two versions.
func (o *observer) input(feature *v1alpha1.Feature, flags tracker.Flags, declared transition.Declared, move versionskew.Move) versionskew.Input {
	tasks := transition.PathTo(&feature.Status, declared, move.Target.String())
	return o.binary.Complete(versionskew.Input{
		Feature:         feature,
		Explicit:        flags.Explicit,
		Controlled:      flags.Controlled,
		Dependences:     flags.Dependences,
		Stages:          flags.Stages,
		Tasks:           tasks,
		StartupBlocking: declared.StartupBlockingOf(tasks),
		Clears:          len(declared.OnDisable) > 0,
	}, move)
}
