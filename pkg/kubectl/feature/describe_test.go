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
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

func on(r *v1alpha1.ReportedFeature)         { r.Enabled = true }
func explicit(r *v1alpha1.ReportedFeature)   { r.Explicit = true }
func notAsked(r *v1alpha1.ReportedFeature)   { r.Queried = false }
func overridden(r *v1alpha1.ReportedFeature) { r.Overridden = true }

// reports are those of processes that queried MaxUnavailableStatefulSet.
func reports() []runtime.Object {
	const feature = "MaxUnavailableStatefulSet"
	ended := report("kube-controller-manager", "m0", "v1.36.3", feature, on)
	ended.Annotations = map[string]string{v1alpha1.AnnotationTerminating: "true"}
	kubelet := report("kubelet", "n1", "v1.36.3", feature, explicit)
	kubelet.Spec.NodeName, kubelet.Spec.EmulationVersion = "n1", "1.36"
	notReady := report("kubelet", "n2", "v1.36.3", feature, on)
	notReady.Spec.NodeName = "n2"
	removed := report("kubelet", "n3", "v1.36.3", feature, on)
	removed.Spec.NodeName = "n3"
	const leases = "kube-feature-lease"
	return []runtime.Object{
		ended, kubelet, notReady, removed,
		node("n1", corev1.ConditionTrue), node("n2", corev1.ConditionUnknown),
		leased(report("kube-scheduler", "lives", "v1.36.3", feature, on), leases),
		lease(leases, "kube-scheduler.lives", 39*time.Second, 3600),
		leased(report("kube-scheduler", "lapsed", "v1.36.3", feature, on), leases),
		lease(leases, "kube-scheduler.lapsed", 40*time.Second, 3600),
		leased(report("kube-scheduler", "short", "v1.36.3", feature), leases),
		lease(leases, "kube-scheduler.short", 30*time.Second, 20),
		leased(report("kube-scheduler", "without", "v1.36.3", feature, on), leases),
		report("kubelet", "n6", "v1.35.0", feature, on),
		report("kubelet", "n9", "v1.36.3", feature, on, explicit, notAsked),
		report("kube-controller-manager", "m1", "v1.36.3", feature, overridden),
		report("kube-apiserver", "b", "v1.36.3", feature, notAsked),
		report("kube-apiserver", "a", "v1.36.3", feature),
		report("kube-scheduler", "s", "v1.36.3", "SomethingElse"),
	}
}

// leased is a report of a process that renews a Lease.
func leased(r *v1alpha1.FeatureReport, namespace string) *v1alpha1.FeatureReport {
	r.Spec.Liveness.Lease = &v1alpha1.LeaseReference{Namespace: namespace, Name: r.Name}
	return r
}

// lease was renewed some time ago.
func lease(namespace, name string, renewed time.Duration, seconds int32) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(time.Now().Add(-renewed))), LeaseDurationSeconds: &seconds},
	}
}

// node is one whose condition Ready has had a status for 10 minutes.
func node(name string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: before(10 * time.Minute)}}},
	}
}

func TestUses(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newSampleCluster(t)
		c.add(reports()...)
		golden(t, "uses.txt", c.session(
			"uses MaxUnavailableStatefulSet",
			"uses feature.features.k8s.io/MaxUnavailableStatefulSet -o wide",
			"uses MaxUnavailableStatefulSet --mismatched",
			"uses MaxUnavailableStatefulSet --mismatched -o name",
			"uses MaxUnavailableStatefulSet --mismatched -o yaml",
			"uses PodDeletionCost",
			"uses PodDeletionCost --mismatched",
			"uses PodDeletionCost --no-headers",
			"uses PodDeletionCots",
			"uses",
			"uses MaxUnavailableStatefulSet -o table",
		))
	})
}

// TestUsesOnAFullDisk checks that a failed write of the output is an error.
func TestUsesOnAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("there is no full device here: %v", err)
	}
	defer full.Close()
	inBubble(t, func(t *testing.T) {
		c := newSampleCluster(t)
		c.add(reports()...)
		for _, args := range []string{"", "-o name", "-o wide", "--mismatched", "-o json"} {
			var said bytes.Buffer
			b := c.base(&said)
			b.Out = full
			if code := b.run(t.Context(), strings.Fields("uses MaxUnavailableStatefulSet --server=https://localhost "+args)); code != ExitFailed || !strings.Contains(said.String(), "no space left") {
				t.Errorf("uses %s: exit code %d: %s", args, code, said.String())
			}
		}
	})
}

// TestExpiredListIsReadAgain: the server compacted what the list began with.
func TestExpiredListIsReadAgain(t *testing.T) {
	var asked []string
	list := func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
		asked = append(asked, fmt.Sprintf("%q of %d", options.Continue, options.Limit))
		switch {
		case options.Continue != "":
			return nil, apierrors.NewResourceExpired("too old")
		case options.Limit > 0:
			return &v1alpha1.FeatureList{ListMeta: metav1.ListMeta{Continue: "next"}, Items: []v1alpha1.Feature{*sample("A", v1alpha1.StageBeta, true, true)}}, nil
		default:
			return &v1alpha1.FeatureList{Items: []v1alpha1.Feature{*sample("A", v1alpha1.StageBeta, true, true), *sample("B", v1alpha1.StageBeta, true, true)}}, nil
		}
	}
	var features []v1alpha1.Feature
	if err := each(t.Context(), list, &features); err != nil || len(features) != 2 || features[1].Name != "B" {
		t.Errorf("it has %d features after asking for %v: %v", len(features), asked, err)
	}
}

// forbid makes requests to list a resource fail.
func forbid(on *clienttesting.Fake, resource string) {
	on.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("because"))
	})
}

// TestDescribeWithoutPermissionForReports covers all users but administrators.
func TestDescribeWithoutPermissionForReports(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newSampleCluster(t)
		forbid(&c.client.Fake, "featurereports")
		forbid(&c.core.Fake, "events")
		golden(t, "forbidden.txt", c.session(
			"uses MaxUnavailableStatefulSet",
			"uses MaxUnavailableStatefulSet --mismatched",
			"uses MaxUnavailableStatefulSet -o name",
			"uses MaxUnavailableStatefulSet --mismatched --no-headers",
			"uses MaxUnavailableStatefulSet -o json",
			"describe PodDeletionCost",
		))
	})
}

// TestDescribeWithoutPermissionForLeases covers users that may read reports, and no
// Leases.
func TestDescribeWithoutPermissionForLeases(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newSampleCluster(t)
		c.add(reports()...)
		forbid(&c.core.Fake, "leases")
		forbid(&c.core.Fake, "nodes")
		golden(t, "leases.txt", c.session(
			"uses MaxUnavailableStatefulSet",
			"uses MaxUnavailableStatefulSet --mismatched -o json",
			"describe MaxUnavailableStatefulSet",
		))
	})
}

// TestSignsOfLifeAreReadOnce for all features that are described: a cluster has a Lease
// and a Node for each kubelet.
func TestSignsOfLifeAreReadOnce(t *testing.T) {
	const leases, more = "kube-feature-lease", "more-leases"
	const noLeases, noMore, noNodes = "you may not list Leases in " + leases + ",", "you may not list Leases in " + more + ",", "you may not list Nodes,"
	for name, tc := range map[string]struct {
		forbidden []string
		// said counts a text in the three descriptions together.
		said map[string]int
	}{
		"by those who may":     {nil, map[string]int{`"alive": true`: 5, noLeases: 0, noMore: 0, noNodes: 0}},
		"by those who may not": {[]string{"leases", "nodes"}, map[string]int{`"alive": true`: 0, noLeases: 2, noMore: 1, noNodes: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newCluster(t, dynamic("A", v1alpha1.StateOn), dynamic("B", v1alpha1.StateOn), dynamic("C", v1alpha1.StateOn))
				kubelet := report("kubelet", "n1", "v1.36.3", "A", on)
				kubelet.Spec.Features = append(kubelet.Spec.Features, v1alpha1.ReportedFeature{Name: "B", Queried: true, Enabled: true})
				kubelet.Spec.NodeName = "n1"
				c.add(kubelet, node("n1", corev1.ConditionTrue),
					leased(report("kube-scheduler", "a", "v1.36.3", "A", on), leases), lease(leases, "kube-scheduler.a", time.Second, 40),
					leased(report("kube-scheduler", "b", "v1.36.3", "B", on), leases), lease(leases, "kube-scheduler.b", time.Second, 40),
					leased(report("kube-scheduler", "c", "v1.36.3", "C", on), more), lease(more, "kube-scheduler.c", time.Second, 40))
				for _, resource := range tc.forbidden {
					forbid(&c.core.Fake, resource)
				}
				out, code := c.run("describe", "A", "B", "C", "-o", "json")
				requests := map[string]int{}
				for _, action := range c.core.Actions() {
					if resource := action.GetResource().Resource; resource != "events" {
						requests[action.GetVerb()+" "+resource+" "+action.GetNamespace()]++
					}
				}
				want := map[string]int{"list leases " + leases: 1, "list leases " + more: 1, "list nodes ": 1}
				if diff := cmp.Diff(want, requests); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
				said := map[string]int{}
				for text := range tc.said {
					said[text] = strings.Count(out, text)
				}
				if diff := cmp.Diff(tc.said, said); diff != "" || code != 0 {
					t.Errorf("exit code %d, what is said (-want +got):\n%s", code, diff)
				}
			})
		})
	}
}

func TestDescribe(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newSampleCluster(t)
		c.add(reports()...)
		for i, instance := range []string{"x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "xa", "xb", "xc"} {
			c.add(report("kubelet", instance, "v1.36.3", "PodDeletionCost"), event("old"+instance, "HPAScaleToZero", corev1.EventTypeNormal, "Old", instance, time.Duration(30-i)*time.Minute, 1))
		}
		c.add(event("e2", "MaxUnavailableStatefulSet", corev1.EventTypeWarning, "TaskFailed", "ClearField: the server is busy", 90*time.Second, 3),
			event("e1", "MaxUnavailableStatefulSet", corev1.EventTypeNormal, "TransitionStarted", "the feature is being turned off", 5*time.Minute, 1))
		versions := sample("Versions", v1alpha1.StageBeta, true, true)
		versions.Status.State = v1alpha1.StateDowngrading
		versions.Status.Transition = &v1alpha1.FeatureTransition{ID: "v", Reason: v1alpha1.TransitionVersion, FromVersion: "1.36", ToVersion: "1.35", FromState: v1alpha1.StateOn, Interrupted: true}
		ignored := sample("Ignored", v1alpha1.StageBeta, true, true)
		ignored.Spec = v1alpha1.FeatureSpec{Enabled: ptr.To(false), Rollout: &v1alpha1.FeatureRollout{Percent: ptr.To[int32](10)}}
		fresh := &v1alpha1.Feature{}
		fresh.Namespace, fresh.Name = "kube-system", "Fresh"
		c.add(versions, ignored, fresh)
		golden(t, "describe.txt", c.session(
			"describe MaxUnavailableStatefulSet",
			"describe SchedulerAsyncPreemption GenericWorkload",
			"describe HPAScaleToZero",
			"describe PodDeletionCost",
			"describe Gadgets -n widgets",
			"describe Versions",
			"describe Ignored",
			"describe Fresh",
			"describe Nothing InPlacePodVerticalScaling",
			"describe MaxUnavailableStatefulSet Fresh -o yaml",
			"describe Fresh -o name",
		))
		if out, _ := c.onScreen("describe", "GenericWorkload"); !strings.Contains(out, "\x1b[33mProgressing") {
			t.Errorf("that it is paused does not stand out: %q", out)
		}
	})
}
