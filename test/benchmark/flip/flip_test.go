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

package flip

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"k8s.io/kubernetes-features/test/benchmark/measure"
)

// TestChangeCompletesOnceAllInstancesHaveIt: watchers write at once, some twice, and some of them
// show the value from before.
func TestChangeCompletesOnceAllInstancesHaveIt(t *testing.T) {
	const n = 100
	b := &board{}
	b.show(0, "early")
	now := &change{newArrivals(n), "new"}
	b.now.Store(now)
	begun := time.Now()
	for number := range n {
		b.show(number, "old")
	}
	if left := now.left.Load(); left != n {
		t.Fatalf("%d of %d watchers have the new value, and all showed the old one", n-left, n)
	}
	var showing sync.WaitGroup
	for number := range n - 1 {
		showing.Go(func() {
			b.show(number, "new")
			b.show(number, anyValue)
		})
	}
	showing.Wait()
	select {
	case <-now.all:
		t.Fatal("all have it, and one was never shown")
	default:
	}
	b.show(n-1, anyValue)
	times, err := now.wait(t.Context(), begun)
	if err != nil {
		t.Fatal(err)
	}
	if times.Count() != n || times.Percentile(0) < 0 || times.Max() > time.Since(begun) {
		t.Errorf("%d times from %s to %s", times.Count(), times.Percentile(0), times.Max())
	}
}

func TestOptionsThatMeasureNothingAreRefused(t *testing.T) {
	for want, spoil := range map[string]func(*Options){
		"number of processes": func(o *Options) { o.Processes = nil },
		"has to be even":      func(o *Options) { o.Processes = []int{3} },
		"at least 2 changes":  func(o *Options) { o.Changes = 1 },
	} {
		o := Defaults()
		spoil(&o)
		if err := o.validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
	o := Defaults()
	if err := o.validate(); err != nil {
		t.Error(err)
	}
}

// TestARealGateTakesAChange: the time is what the page says a process spends.
func TestARealGateTakesAChange(t *testing.T) {
	times, err := applyTime()
	if err != nil {
		t.Fatal(err)
	}
	if times.Count() != applies || times.Percentile(50) <= 0 {
		t.Errorf("%d changes of %s", times.Count(), times.Percentile(50))
	}
	t.Logf("median %s, p99 %s", times.Percentile(50), times.Percentile(99))
}

// TestPlainWatchesBeginAtThePresent: others write their ConfigMaps all the while, and the
// server forgets what came since the value was written. A watch from there ends at once.
func TestPlainWatchesBeginAtThePresent(t *testing.T) {
	kube := fake.NewClientset()
	kube.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &corev1.ConfigMapList{
			ListMeta: metav1.ListMeta{ResourceVersion: "70000"},
			Items:    []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: valueName, ResourceVersion: "3"}}},
		}, nil
	})
	if version, err := present(t.Context(), kube); err != nil || version != "70000" {
		t.Errorf("the present version is %q, %v; want that of the list", version, err)
	}
}

// TestAWatchThatEndsShowsNothing: a server that has forgotten what a watch begins with
// says so in an event, which is not the value. Frames are as JSON and as protobuf.
func TestAWatchThatEndsShowsNothing(t *testing.T) {
	for _, test := range []struct {
		name, stream string
		shown        int
		want         error
	}{
		{"a change", `{"type":"MODIFIED","object":{}}` + "\n", 1, io.EOF},
		{"a change as protobuf", "\x00\x00\x00\x0c\n\x08MODIFIED\x12\x00", 1, io.EOF},
		{"forgotten", `{"type":"ERROR","object":{"code":410}}` + "\n", 0, errEnded},
		{"forgotten, as protobuf", "\x00\x00\x00\x09\n\x05ERROR\x12\x00", 0, errEnded},
		{"cut off", "", 0, io.EOF},
	} {
		t.Run(test.name, func(t *testing.T) {
			shown := 0
			if err := events(strings.NewReader(test.stream), func() { shown++ }); !errors.Is(err, test.want) || shown != test.shown {
				t.Errorf("it showed %d changes and ended with %v; want %d and %v", shown, err, test.shown, test.want)
			}
		})
	}
}

// TestP99IsOfAllRequestsTogether: of two changes, each of which has one slow request among
// ten, the p99 of twenty requests is the slowest.
func TestP99IsOfAllRequestsTogether(t *testing.T) {
	var parts []measure.Part
	for _, slowest := range []time.Duration{time.Second, 2 * time.Second} {
		var requests measure.Latencies
		for range 9 {
			requests.Record(time.Millisecond)
		}
		requests.Record(slowest)
		parts = append(parts, measure.Part{Foreground: measure.ForegroundStats{All: requests.Take()}})
	}
	if got := p99(parts, func(p measure.Part) measure.Part { return p }); got != 2000 {
		t.Errorf("the p99 is %v ms, want 2000", got)
	}
}
