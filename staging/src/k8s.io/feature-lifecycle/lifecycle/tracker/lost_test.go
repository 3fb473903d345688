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

package tracker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// TestOldestLostProcessForgottenFirst when there are too many.
func TestOldestLostProcessForgottenFirst(t *testing.T) {
	v := lostProcesses{}
	name := func(i int) string { return fmt.Sprintf("kubelet.n%d", i) }
	for i := range maxLost + 2 {
		at := start.Add(time.Duration(i) * time.Second)
		// The last is noted twice, which makes no difference.
		for range 2 {
			v.add(name(i), lostProcess{
				since: at, instance: Instance{Component: kubelet, Name: fmt.Sprintf("n%d", i)},
				gates: map[string]*v1alpha1.ReportedFeature{"A": {Name: "A", Queried: true}},
			}, at)
		}
	}
	found := v.of("A", nil)
	has := func(i int) bool {
		return slices.ContainsFunc(found, func(u Instance) bool { return u.Component+"."+u.Name == name(i) })
	}
	if len(found) != maxLost || has(0) || has(1) || !has(2) || !has(maxLost+1) {
		t.Errorf("%d are remembered, the first %t %t %t, the last %t", len(found), has(0), has(1), has(2), has(maxLost+1))
	}
}
