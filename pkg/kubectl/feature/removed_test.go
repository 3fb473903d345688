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

package feature

import (
	"fmt"
	"strings"
	"testing"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
	"k8s.io/utils/ptr"
)

// goneIn137 are the gates of 1.36 that 1.37 does not have (upstream's lists of both), with
// their specs at 1.36.
var goneIn137 = func() map[string]versionskew.Spec {
	gone := map[string]versionskew.Spec{
		"GangScheduling":                {Known: true, Stage: v1alpha1.StageAlpha},
		"PreventStaticPodAPIReferences": {Known: true, Stage: v1alpha1.StageBeta, Default: true},
		"WorkloadAwarePreemption":       {Known: true, Stage: v1alpha1.StageAlpha},
	}
	for _, name := range []string{
		"APIServerTracing", "AnonymousAuthConfigurableEndpoints", "AnyVolumeDataSource", "AuthorizeNodeWithSelectors", "AuthorizeWithSelectors",
		"BtreeWatchCache", "ConsistentListFromCache", "JobBackoffLimitPerIndex", "JobPodReplacementPolicy", "JobSuccessPolicy", "LogarithmicScaleDown",
		"OrderedNamespaceDeletion", "PodLifecycleSleepAction", "PodLifecycleSleepActionAllowZero", "RelaxedDNSSearchValidation",
		"ResilientWatchCacheInitialization", "RetryGenerateName", "SchedulerQueueingHints", "SidecarContainers", "StreamingCollectionEncodingToJSON",
		"StreamingCollectionEncodingToProtobuf", "StructuredAuthenticationConfiguration",
	} {
		gone[name] = versionskew.Spec{Known: true, Stage: v1alpha1.StageGA, Default: true, Locked: true}
	}
	return gone
}()

// TestCheckNamesGatesGoneIn137: a binary of 1.37 that is given one of them refuses to start
// with "unrecognized feature gate", whatever the value. Without settings none of them is in
// the way, also those that were removed before they were generally available.
func TestCheckNamesGatesGoneIn137(t *testing.T) {
	if len(goneIn137) != 25 {
		t.Fatalf("%d gates", len(goneIn137))
	}
	w := newWorld(t, "1.36")
	for name, spec := range goneIn137 {
		if w.gates.specAt(name, utilversion.MustParse("1.37")).Known {
			t.Errorf("this build has %s", name)
		}
		// All are on, GangScheduling and WorkloadAwarePreemption by AllAlpha.
		f := w.feature(name, v1alpha1.StateOn)
		f.Status.Stage, f.Status.Default, f.Status.LockedToDefault = spec.Stage, ptr.To(spec.Default), spec.Locked
	}
	w.want("1.37", ExitSafe, "Safe to move from 1.36 to 1.37: all 25 features are.\n")

	for name := range goneIn137 {
		// Half of them have no Feature any more.
		if len(name)%2 == 0 {
			delete(w.features, name)
		}
		w.process("kube-scheduler", "sets-"+name, "1.36", name+"=true")
	}
	out, code := w.run("1.37", "")
	for name := range goneIn137 {
		want := fmt.Sprintf("%s: not safe (RefusesToStart)\n  Why:  1.37 does not have the gate and its binaries would refuse to start: kube-scheduler/sets-%s sets %s=true\n  Next: take %s out of --feature-gates", name, name, name, name)
		if !strings.Contains(out, want) {
			t.Errorf("the check does not say\n%s", want)
		}
	}
	if code != ExitNotSafe || !strings.HasSuffix(out, "25 of 25 features are not safe, 0 unknown.\n") {
		t.Errorf("exit code %d and\n%s", code, out)
	}
}
