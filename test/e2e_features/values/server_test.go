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

package values

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/authentication/user"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/examplegates"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// TestTheServerDecides: flags of kube-apiserver alone give values to the other
// components, at their start and while they run.
func TestTheServerDecides(t *testing.T) {
	t.Parallel()
	const (
		fixed   = "StaleControllerConsistencyJob" // on by default; asked by the controller manager when it starts
		admin   = "kubernetes-admin"
		flipped = examplegates.Dynamic // off by default; queried by both when they start
	)
	c := framework.Start(t, localcluster.Config{
		Only: []string{localcluster.Etcd, localcluster.APIServer},
		ExtraArgs: map[string][]string{localcluster.APIServer: {
			"--feature-gates=" + fixed + "=false", "--central-features=" + fixed, "--dynamic-features=" + flipped + ",PodDeletionCost", "--feature-settle-period=1s",
		}},
	})
	c.MustStart(localcluster.ControllerManager)
	c.WaitForFeature(fixed, "central", func(f *v1alpha1.Feature) bool { return f.Status.Control == v1alpha1.ControlCentral })
	c.WaitForReports("in which the controller manager has the value of kube-apiserver", func(reports []v1alpha1.FeatureReport) bool {
		f := framework.Reported(reports, localcluster.ControllerManager, fixed)
		return f != nil && !f.Enabled && f.Queried && !f.Explicit
	})

	// A value that is not dynamic cannot be set; the message names the flag.
	if err := framework.Request(t.Context(), c.Features, examplegates.Cleared, `{"enabled":true}`); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "--dynamic-features") {
		t.Errorf("a feature that is not dynamic: %v", err)
	}
	both := func(on bool) func([]v1alpha1.FeatureReport) bool {
		return func(reports []v1alpha1.FeatureReport) bool {
			server, manager := framework.Reported(reports, localcluster.APIServer, flipped), framework.Reported(reports, localcluster.ControllerManager, flipped)
			return server != nil && server.Enabled == on && manager != nil && manager.Enabled == on
		}
	}
	c.WaitForReports("in which kube-apiserver and the controller manager have asked for "+flipped, both(false))
	for _, on := range []bool{true, false} {
		c.Request(flipped, fmt.Sprintf(`{"enabled":%t}`, on))
		c.WaitForReports(fmt.Sprintf("in which kube-apiserver and the controller manager have %s %t", flipped, on), both(on))
		want := v1alpha1.StateOff
		if on {
			want = v1alpha1.StateOn
		}
		c.WaitForFeature(flipped, string(want), func(f *v1alpha1.Feature) bool {
			return f.Status.State == want && f.Status.Configured.Source == v1alpha1.SourceAPI && f.Annotations[v1alpha1.AnnotationRequestedBy] == admin
		})
		c.WaitForEvent(flipped, "TransitionStarted", fmt.Sprintf("%s: configured value is %s by API (requested by %s)",
			map[bool]v1alpha1.FeatureState{true: v1alpha1.StateTurningOn, false: v1alpha1.StateTurningOff}[on], map[bool]string{true: "on", false: "off"}[on], admin))
	}
	// Without a request the command line counts again.
	c.Request(flipped, `{"enabled":true}`)
	c.WaitForFeature(flipped, "On", func(f *v1alpha1.Feature) bool { return f.Status.State == v1alpha1.StateOn })
	const other = "widget-keeper"
	if err := framework.Request(t.Context(), versioned.NewForConfigOrDie(c.Impersonate(other, user.SystemPrivilegedGroup)), flipped, `{"enabled":null}`); err != nil {
		t.Fatal(err)
	}
	c.WaitForFeature(flipped, "Off by default", func(f *v1alpha1.Feature) bool {
		return f.Status.State == v1alpha1.StateOff && f.Status.Configured.Source == v1alpha1.SourceDefault && f.Annotations[v1alpha1.AnnotationRequestedBy] == other
	})
	c.WaitForEvent(flipped, "TransitionStarted", "off by Default (nothing is requested; spec last changed by "+other+")")

	// A server that was restarted with another value of a central feature is ready
	// only when the Feature says it: who starts now takes that one.
	c.SetArgs(localcluster.APIServer, "--feature-gates="+fixed+"=true", "--central-features="+fixed, "--feature-settle-period=1s")
	c.MustRestart(localcluster.APIServer)
	if f := c.Feature(fixed); f.Status.Configured == nil || !f.Status.Configured.Value {
		t.Errorf("kube-apiserver is ready, and %s is still configured as %+v", fixed, f.Status.Configured)
	}
	// A value without followers is reported, and may be removed.
	c.Request(flipped, `{"rollout":{"percent":50}}`)
	c.WaitForFeature(flipped, "said to have a rollout without effect", func(f *v1alpha1.Feature) bool {
		consistent := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionConsistent)
		return f.Status.Control == v1alpha1.ControlLocal && consistent != nil && strings.Contains(consistent.Message, "spec.rollout has no effect")
	})
}
