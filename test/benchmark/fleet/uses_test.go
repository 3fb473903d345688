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

package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// TestUsesAreRightFromWhenThatWasSeen, however late they are read.
func TestUsesAreRightFromWhenThatWasSeen(t *testing.T) {
	key := UseKey{Feature: "A", Component: Kubelet, Enabled: true}
	u := &Uses{wanted: map[UseKey]int32{key: 2}, users: map[UseKey]int32{{Feature: "A", Component: Kubelet}: 2}, right: map[string]bool{}, changed: make(chan struct{}, 1)}
	see := func(count int32) {
		u.see(&v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Name: "A"}, Status: v1alpha1.FeatureStatus{
			Uses: []v1alpha1.FeatureUse{{Component: Kubelet, Enabled: ptr.To(true), Count: count}},
		}})
	}
	wait := func() time.Time {
		t.Helper()
		at, err := u.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	see(1)
	see(2)
	seen := time.Now()
	see(2)
	first := wait()
	if first.After(seen) {
		t.Errorf("right from %s on, which is after it was seen", first)
	}
	// They count again once they were wrong.
	see(1)
	see(2)
	if again := wait(); !again.After(seen) {
		t.Errorf("right from %s on, although they were wrong after that", again)
	}
}

func TestProcessesAreThoseOfWholeNodes(t *testing.T) {
	if err := OfWholeNodes(PerNode, 10*PerNode); err != nil {
		t.Error(err)
	}
	for _, n := range []int{-PerNode, 0, 1, PerNode + 1} {
		if err := OfWholeNodes(PerNode, n); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("%d processes: ", n)) {
			t.Errorf("%d processes: the error is %v", n, err)
		}
	}
}
