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
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	clients "k8s.io/feature-lifecycle/client/clientset/versioned/typed/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/leader"
	"k8s.io/feature-lifecycle/lifecycle/task"
	clocktesting "k8s.io/utils/clock/testing"
)

// hanging is a client whose deletions of reports never end by themselves. It tells of
// the first.
type hanging struct {
	versioned.Interface
	begun chan struct{}
}

// IsWatchListSemanticsUnSupported: the fake behind it does not support them.
func (hanging) IsWatchListSemanticsUnSupported() bool { return true }

type hangingFeatures struct {
	clients.FeaturesV1alpha1Interface
	begun chan struct{}
}

type hangingReports struct {
	clients.FeatureReportInterface
	begun chan struct{}
}

func (c hanging) FeaturesV1alpha1() clients.FeaturesV1alpha1Interface {
	return hangingFeatures{c.Interface.FeaturesV1alpha1(), c.begun}
}

func (c hangingFeatures) FeatureReports(namespace string) clients.FeatureReportInterface {
	return hangingReports{c.FeaturesV1alpha1Interface.FeatureReports(namespace), c.begun}
}

func (c hangingReports) Delete(ctx context.Context, _ string, _ metav1.DeleteOptions) error {
	select {
	case c.begun <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestADeletionThatHangsDoesNotKeepFromNoticing: reports are deleted of processes that
// ended in order, and the server that leads a feature dies without a word meanwhile.
func TestADeletionThatHangsDoesNotKeepFromNoticing(t *testing.T) {
	inWorld(t, func(w *world) {
		begun := make(chan struct{}, 1)
		w.client = func(inner versioned.Interface) versioned.Interface { return hanging{inner, begun} }
		w.leased = true
		servers := []string{"s1", "s2"}
		for _, id := range servers {
			w.report("server", id, gate("A", true))
			w.serve(id)
		}
		w.until(time.Minute, "on", func() bool { return w.state("A") == v1alpha1.StateOn })
		dies := leader.Of("A", servers)
		survives := servers[1-slices.Index(servers, dies)]
		// The one that survives deletes some of them.
		w.annotations = map[string]string{v1alpha1.AnnotationEnding: "true"}
		for i := range 20 {
			w.report("comp", fmt.Sprint("ended-", i), asked(gate("A", false)))
		}
		w.annotations = nil
		w.stop(w.servers[dies])
		w.report("server", survives, gate("A", false))
		w.until(time.Minute, "a deletion", func() bool {
			select {
			case <-begun:
				return true
			default:
				return false
			}
		})
		w.until(10*time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
	}, lifecycle.Feature{Name: "A"})
}

// TestALeaseThatNobodyWatchesIsAskedFor: reports say that their processes end, and no
// Lease of theirs was heard of. One has been renewed just now; the other has lost the
// label by which Leases are watched, and its process died long ago.
func TestALeaseThatNobodyWatchesIsAskedFor(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	client := fake.NewClientset()
	made := map[string]*coordinationv1.Lease{}
	for name, renewed := range map[string]time.Time{"comp.new": start, "comp.old": start.Add(-reportRetention)} {
		made[name] = lease(renewed, 40)
		made[name].Namespace, made[name].Name = "leases", name
	}
	cluster := dynamicfake.NewSimpleDynamicClient(clientgoscheme.Scheme, made["comp.new"], made["comp.old"])
	c, err := New(Config{Namespace: "ns", Component: "server", ServerID: "s1", Client: client, Clock: clock, Recorder: record.NewFakeRecorder(1), Tasks: task.Clients{Dynamic: cluster}})
	if err != nil {
		t.Fatal(err)
	}
	own := lease(start, 40)
	own.Namespace, own.Name = "leases", "server.s1"
	c.liveness.observe(own, clock.Now())
	for _, name := range []string{"server.s1", "comp.new", "comp.old"} {
		component, instance, _ := strings.Cut(name, ".")
		r := report(component, instance)
		r.Spec.Liveness.Lease = &v1alpha1.LeaseReference{Namespace: "leases", Name: name}
		if component == "comp" {
			r.Annotations = map[string]string{v1alpha1.AnnotationEnding: "true"}
		}
		if err := client.Tracker().Add(r); err != nil {
			t.Fatal(err)
		}
		c.reports.set(r, clock.Now())
	}
	c.retireReports(t.Context())
	for name, want := range map[string]bool{"comp.new": true, "comp.old": false} {
		_, err := client.FeaturesV1alpha1().FeatureReports("ns").Get(t.Context(), name, metav1.GetOptions{})
		_, leaseErr := cluster.Resource(leases).Namespace("leases").Get(t.Context(), name, metav1.GetOptions{})
		if (err == nil) != want || (leaseErr == nil) != want {
			t.Errorf("report %s: %v, its Lease: %v; want that they stay: %t", name, err, leaseErr, want)
		}
	}
}
