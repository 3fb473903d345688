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
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	clients "k8s.io/feature-lifecycle/client/clientset/versioned/typed/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/leader"
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
