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
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/utils/ptr"
)

func template(features int) Template {
	t := Template{BinaryVersion: "v1.36.3+feature.1", EmulationVersion: "1.36"}
	for i := range features {
		t.Observations = append(t.Observations, featuregate.Observation{Name: fmt.Sprintf("Feature%d", i), Queried: true})
	}
	return t
}

func TestVariety(t *testing.T) {
	base := template(3)
	varied, err := Variety{Lists: 5, Versions: 2, More: []featuregate.Observation{{Name: "More", Queried: true}, {Name: "Feature1"}}}.Of(base)
	if err != nil {
		t.Fatal(err)
	}
	lists, versions := map[string]bool{}, map[string]int{}
	for _, v := range varied {
		versions[v.BinaryVersion]++
		var list string
		for _, o := range v.Observations {
			list += fmt.Sprintf("%s %t ", o.Name, o.Queried)
		}
		lists[list] = true
		if n := len(v.Observations); n != 4 || !v.Observations[3].Queried {
			t.Errorf("%d features, want 3 and the one that it did not have, which it asked for: %v", n, v.Observations)
		}
	}
	if len(lists) != 5 {
		t.Errorf("%d different lists, want 5", len(lists))
	}
	if diff := cmp.Diff(map[string]int{"v1.36.3+feature.1": 5, "v1.36.2+feature.1": 5}, versions); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	for i, o := range base.Observations {
		if !o.Queried {
			t.Errorf("the template's feature %d was changed", i)
		}
	}
	for name, bad := range map[string]Variety{"more lists than there can be": {Lists: 9}, "versions before the first": {Versions: 5}} {
		if _, err := bad.Of(base); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestUsesAreRight writes uses of a feature and says which are those of three
// processes of two versions.
func TestUsesAreRight(t *testing.T) {
	old, new := template(1), template(1)
	old.BinaryVersion = "v1.36.2+feature.1"
	processes := []*Process{{Component: Kubelet, template: &old}, {Component: Kubelet, template: &new}, {Component: Kubelet, template: &new}}
	off, on := ptr.To(false), ptr.To(true)
	for name, test := range map[string]struct {
		uses  []v1alpha1.FeatureUse
		right bool
	}{
		"all of them": {[]v1alpha1.FeatureUse{
			{Component: Kubelet, Version: old.BinaryVersion, Enabled: off, Count: 1},
			{Component: Kubelet, Version: new.BinaryVersion, Enabled: off, Count: 2},
			{Component: KubeProxy, Version: new.BinaryVersion, Enabled: off, Count: 7},
		}, true},
		"another version": {[]v1alpha1.FeatureUse{
			{Component: Kubelet, Version: old.BinaryVersion, Enabled: off, Count: 2},
			{Component: Kubelet, Version: new.BinaryVersion, Enabled: off, Count: 1},
		}, false},
		"too few": {[]v1alpha1.FeatureUse{{Component: Kubelet, Version: new.BinaryVersion, Enabled: off, Count: 2}}, false},
		"one that is gone": {[]v1alpha1.FeatureUse{
			{Component: Kubelet, Version: old.BinaryVersion, Enabled: off, Count: 1},
			{Component: Kubelet, Version: new.BinaryVersion, Enabled: off, Count: 2},
			{Component: Kubelet, Version: new.BinaryVersion, Enabled: on, Count: 1},
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			feature := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "Feature0"}, Status: v1alpha1.FeatureStatus{Uses: test.uses}}
			u, err := FollowUses(t.Context(), fake.NewClientset(feature), Expected(processes))
			if err != nil {
				t.Fatal(err)
			}
			defer u.Stop()
			if u.right["Feature0"] != test.right {
				t.Errorf("right is %t, want %t", !test.right, test.right)
			}
		})
	}
}
