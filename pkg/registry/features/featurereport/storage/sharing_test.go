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

package storage

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/pkg/apis/features"
)

// TestReportsShareEqualLists when they are read, and what one of them is
// changed to is its own.
func TestReportsShareEqualLists(t *testing.T) {
	r := newREST(t)
	with := func(ctx context.Context, component, name string, enabled bool) {
		made := report(component, name, name, "")
		made.Spec.Features = []features.ReportedFeature{{Name: "A", Enabled: enabled, Queried: true}, {Name: "B", Queried: true}}
		created(ctx, t, r, made)
	}
	with(node(t, "n1"), "kubelet", "n1", true)
	with(node(t, "n2"), "kubelet", "n2", true)
	with(in(t, "agent"), "agent", "n1", false)
	one, two, other := read(t, r, "kubelet.n1"), read(t, r, "kubelet.n2"), read(t, r, "agent.n1")
	if &one.Spec.Features[0] != &two.Spec.Features[0] {
		t.Error("equal lists are not shared")
	}
	if &one.Spec.Features[0] == &other.Spec.Features[0] {
		t.Error("different lists are shared")
	}
	if cap(one.Spec.Features) != len(one.Spec.Features) {
		t.Error("who appends to a shared list changes others")
	}
	want := two.DeepCopy()
	changed := read(t, r, "kubelet.n1").DeepCopy()
	changed.Spec.Features[0].Enabled = false
	_, err := update(node(t, "n1"), r, changed, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, r, "kubelet.n1"); got.Spec.Features[0].Enabled {
		t.Error("the change was lost")
	}
	if diff := cmp.Diff(want, read(t, r, "kubelet.n2")); diff != "" {
		t.Errorf("another report changed, too (-want +got):\n%s", diff)
	}
}
