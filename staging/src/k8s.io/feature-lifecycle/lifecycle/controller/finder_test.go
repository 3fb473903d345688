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
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/utils/clock"
)

// TestFeaturesThatComeMeanwhileAreLookedAtTogether: while the first is looked at two
// more come; they begin with the next round, both before one of them ends.
func TestFeaturesThatComeMeanwhileAreLookedAtTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, release := make(chan string, 10), make(chan bool)
		told := make(chan string, 10)
		f := newFinder(task.Clients{}, clock.RealClock{}, func(feature string, _ time.Duration) { told <- feature })
		want := func(name string) lifecycle.Feature {
			looking := task.Func("look", "", func(context.Context, task.Clients) ([]v1alpha1.ResourceLeftovers, error) {
				begun <- name
				<-release
				return []v1alpha1.ResourceLeftovers{{Resource: name, Count: 1}}, nil
			}, nil)
			return lifecycle.Feature{Name: featuregate.Feature("Feature" + name), OnDisable: lifecycle.Tasks{looking}}
		}
		a, b, c := want("a"), want("b"), want("c")
		for _, feature := range []lifecycle.Feature{a, b, b, c} {
			if next := f.refresh(t.Context(), feature); next != 0 {
				t.Errorf("%s is looked at in %s, want now", feature.Name, next)
			}
			synctest.Wait()
		}
		if n := len(begun); n != 1 {
			t.Errorf("%d features are looked at, want the first alone", n)
		}
		release <- true
		synctest.Wait()
		if n := len(begun); n != 3 {
			t.Errorf("%d features were begun with, want all: the two that came together", n)
		}
		if f.result("Featureb") != nil {
			t.Error("there is a result of a search that has not ended")
		}
		close(release)
		f.drain()
		for _, feature := range []lifecycle.Feature{a, b, c} {
			found := f.result(string(feature.Name))
			if found == nil || len(found.Resources) != 1 {
				t.Errorf("%s: found %v", feature.Name, found)
			}
			if next := f.refresh(t.Context(), feature); next != findPeriod {
				t.Errorf("%s is looked at again in %s, want %s", feature.Name, next, findPeriod)
			}
		}
		if len(told) != 3 {
			t.Errorf("%d features were looked at again by the queue, want each once", len(told))
		}
	})
}
