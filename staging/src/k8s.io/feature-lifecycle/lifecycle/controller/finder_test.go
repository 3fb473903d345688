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
	"context"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/utils/clock"
)

// TestFeaturesAddedMeanwhileSearchedTogether: while the first is looked at two
// more come; they begin with the next round, both before one of them ends.
func TestFeaturesAddedMeanwhileSearchedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, release := make(chan string, 10), make(chan bool)
		told := make(chan string, 10)
		f := newFinder(task.Clients{}, nil, clock.RealClock{}, func(feature string, _ time.Duration) { told <- feature })
		f.lull = 0
		want := func(name string) lifecycle.Feature {
			looking := task.Func(task.Own{Name: "look", Find: func(context.Context, task.Clients) ([]v1alpha1.ResourceLeftovers, error) {
				begun <- name
				<-release
				return []v1alpha1.ResourceLeftovers{{Resource: name, Count: 1}}, nil
			}})
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

// TestFirstRoundGathersFeaturesOfStart, for a while: they share collections, each of
// which is read once in a round.
func TestFirstRoundGathersFeaturesOfStart(t *testing.T) {
	// feature is one of which a search is counted.
	feature := func(i int, begun *atomic.Int32) lifecycle.Feature {
		return lifecycle.Feature{Name: featuregate.Feature(fmt.Sprint(i)), OnDisable: lifecycle.Tasks{task.Func(task.Own{Name: "look", Find: func(context.Context, task.Clients) ([]v1alpha1.ResourceLeftovers, error) {
			begun.Add(1)
			return nil, nil
		}})}}
	}
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int32
		f := newFinder(task.Clients{}, nil, clock.RealClock{}, func(string, time.Duration) {})
		came := 0
		come := func() {
			f.refresh(t.Context(), feature(came, &begun))
			came++
			synctest.Wait()
		}
		expect := func(what string, n int) {
			t.Helper()
			if synctest.Wait(); int(begun.Load()) != n {
				t.Errorf("%s: %d of %d features were looked at, want %d", what, begun.Load(), came, n)
			}
		}
		start := time.Now()
		for time.Since(start) < firstLull*3/2 {
			come()
			<-time.After(firstLull / 2)
		}
		expect("while they come", 0)
		<-time.After(firstLull / 2)
		expect("no more come", came)
		come()
		expect("later", came)
		f.drain()
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := newFinder(task.Clients{}, nil, clock.RealClock{}, func(string, time.Duration) {})
		var begun atomic.Int32
		start, n := time.Now(), 0
		for ; f.result("0") == nil && time.Since(start) < time.Hour; n++ {
			f.refresh(ctx, feature(n, &begun))
			<-time.After(firstLull / 4)
		}
		if took := time.Since(start); took < mostGathered || took > mostGathered+firstLull {
			t.Errorf("while more come, the first was looked at after %s, want %s", took, mostGathered)
		}
		// A server that ends does not wait.
		f = newFinder(task.Clients{}, nil, clock.RealClock{}, func(string, time.Duration) {})
		f.refresh(ctx, feature(0, &begun))
		cancel()
		ended := time.Now()
		if f.drain(); time.Since(ended) > 0 || f.result("0") != nil {
			t.Errorf("it ended after %s with %v", time.Since(ended), f.result("0"))
		}
	})
}

// TestFinderNotCalledConcurrently: the first answer is no longer wanted.
func TestFinderNotCalledConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFinder(task.Clients{}, nil, clock.RealClock{}, func(string, time.Duration) {})
		f.lull = 0
		var asked atomic.Int32
		free := make(chan bool)
		feature := lifecycle.Feature{Name: "Hangs", OnDisable: lifecycle.Tasks{task.Func(task.Own{Name: "hangs", Find: func(ctx context.Context, _ task.Clients) ([]v1alpha1.ResourceLeftovers, error) {
			asked.Add(1)
			select {
			case <-free:
			case <-ctx.Done():
			}
			return nil, ctx.Err()
		}})}}
		for range 3 {
			f.refresh(t.Context(), feature)
			<-time.After(roundPatience + time.Second)
			f.forget("Hangs")
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("it was asked %d times before it answered", n)
		}
		close(free)
		synctest.Wait()
		f.refresh(t.Context(), feature)
		f.drain()
		if n := asked.Load(); n != 2 || f.result("Hangs") == nil {
			t.Errorf("it was asked %d times, and the result is %v; want one that is wanted", n, f.result("Hangs"))
		}
	})
}

// TestHangingFinderDelaysOthersBounded: those of its round and those that come
// later, whether it heeds its context or not. It is not asked again before it has ended.
func TestHangingFinderDelaysOthersBounded(t *testing.T) {
	const deadline = 5 * time.Minute
	for _, test := range []struct {
		what   string
		waits  func(ctx context.Context, free chan bool) error
		strays bool
		want   string
	}{
		{"it heeds its context", func(ctx context.Context, _ chan bool) error { <-ctx.Done(); return ctx.Err() }, false, "not done within 5m0s"},
		{"it does not", func(_ context.Context, free chan bool) error { <-free; return nil }, true, "not done within 5m0s"},
		{"it ends its goroutine", func(context.Context, chan bool) error { goruntime.Goexit(); return nil }, false, "it ended without an answer"},
	} {
		synctest.Test(t, func(t *testing.T) {
			widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
			widget := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"namespace": "ns", "name": "w"}, "spec": map[string]any{"field": "x"},
			}}
			clients := task.Clients{Dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{widgets: "WidgetList"}, widget)}
			f := newFinder(clients, nil, clock.RealClock{}, func(string, time.Duration) {})
			f.lull = 0
			free, asked := make(chan bool), 0
			hangs := task.Func(task.Own{Name: "hangs", Find: func(ctx context.Context, _ task.Clients) ([]v1alpha1.ResourceLeftovers, error) {
				asked++
				return nil, test.waits(ctx, free)
			}}).WithDeadline(deadline)
			first := make(chan bool)
			begin := task.Func(task.Own{Name: "begin", Find: func(context.Context, task.Clients) ([]v1alpha1.ResourceLeftovers, error) {
				<-first
				return nil, nil
			}})
			// The others are found in one round behind it.
			a := lifecycle.Feature{Name: "Hangs", OnDisable: lifecycle.Tasks{hangs}}
			b := lifecycle.Feature{Name: "Reads", OnDisable: lifecycle.Tasks{task.ClearField(widgets, "spec.field")}}
			for _, feature := range []lifecycle.Feature{{Name: "Begins", OnDisable: lifecycle.Tasks{begin}}, a, b} {
				f.refresh(t.Context(), feature)
			}
			close(first)
			<-time.After(roundPatience / 2)
			later := b
			later.Name = "Later"
			f.refresh(t.Context(), later)
			<-time.After(roundPatience/2 + time.Second)
			synctest.Wait()
			for _, name := range []string{"Reads", "Later"} {
				if found := f.result(name); found == nil || found.Err != "" || len(found.Resources) != 1 {
					t.Errorf("%s: %s found %+v", test.what, name, found)
				}
			}
			<-time.After(deadline)
			synctest.Wait()
			if found := f.result("Hangs"); found == nil || !strings.Contains(found.Err, test.want) {
				t.Errorf("%s: found %+v, want an error that says %q", test.what, found, test.want)
			}
			<-time.After(2 * findPeriod)
			f.refresh(t.Context(), a)
			synctest.Wait()
			if again := asked > 1; again == test.strays {
				t.Errorf("%s: it was asked %d times", test.what, asked)
			}
			close(free)
			synctest.Wait()
			f.refresh(t.Context(), a)
			f.drain()
			if test.strays && asked != 2 {
				t.Errorf("%s: it has ended, and was asked %d times", test.what, asked)
			}
		})
	}
}
