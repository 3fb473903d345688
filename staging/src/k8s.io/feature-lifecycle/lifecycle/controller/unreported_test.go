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
	"fmt"
	"slices"
	"testing"

	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

// silentKubelets are some, of which the first are upgraded.
func silentKubelets(n, upgraded int) []tracker.Instance {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("n%06d", i))
	}
	var silent []tracker.Instance
	for version, names := range map[string][]string{"v2": names[:upgraded], "v1": names[upgraded:]} {
		if len(names) > 0 {
			silent = append(silent, tracker.GroupOf(tracker.Instance{Component: kubelet, Version: version}, names))
		}
	}
	return silent
}

// TestAnUpgradeOfWhoIsSilentIsNoticed, of one after the other now and then.
func TestAnUpgradeOfWhoIsSilentIsNoticed(t *testing.T) {
	for _, test := range []struct {
		what string
		// upgraded are how many of 30 are each time.
		upgraded []int
		want     []bool
	}{
		{"one", []int{0, 1, 1, 1}, []bool{true, false, true, false}},
		{"one after the other", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 8}, []bool{true, false, false, false, false, false, true, false, false, true}},
	} {
		var u unreported
		for i, n := range test.upgraded {
			if got := u.changed(silentKubelets(30, n)); got != test.want[i] {
				t.Errorf("%s: %d are upgraded: noticed %t, want %t", test.what, n, got, test.want[i])
			}
		}
	}
	var u unreported
	u.changed(silentKubelets(30, 0))
	if !u.changed(slices.Concat(silentKubelets(30, 1), []tracker.Instance{{Component: kubelet, Name: "z"}})) {
		t.Error("another one is silent, too, and that is not noticed at once")
	}
	if u.changed([]tracker.Instance{{Component: kubelet, Name: "z", Starting: true}}); len(u.versions) > 0 {
		t.Errorf("who may be starting is taken for silent: %v", u.versions)
	}
}

// TestWhoIsSilentIsNoticed: every change is, and while very many report, the last.
func TestWhoIsSilentIsNoticed(t *testing.T) {
	const many = manyReports + 1
	for _, test := range []struct {
		what string
		// silent are how many are silent each time.
		silent []int
		want   []bool
	}{
		{"nobody", []int{0, 0}, []bool{false, false}},
		{"some come and go", []int{5, 5, 4, 9, 0, 0}, []bool{true, false, true, true, true, false}},
		{"very many report, the last of them", []int{10 * many, 8 * many, 6 * many, 0, 0}, []bool{true, false, false, true, false}},
		{"very many report, and some do not", []int{10 * many, 6 * many, 3, 3, 3}, []bool{true, false, false, true, false}},
		{"very many report, then few", []int{10 * many, 6 * many, 6*many - 1, 6*many - 1}, []bool{true, false, true, false}},
		{"others fall silent meanwhile", []int{10 * many, 6 * many, 6*many + 1}, []bool{true, false, true}},
		{"it takes long", []int{20 * many, 18 * many, 16 * many, 14 * many, 12 * many, 10 * many, 8 * many, 6 * many}, []bool{true, false, false, false, false, false, true, false}},
	} {
		var u unreported
		for i, n := range test.silent {
			if got := u.changed(silentKubelets(n, 0)); got != test.want[i] {
				t.Errorf("%s: %d are silent: noticed %t, want %t", test.what, n, got, test.want[i])
			}
		}
	}
}
