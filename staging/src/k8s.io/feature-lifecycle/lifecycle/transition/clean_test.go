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

package transition

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

func TestMayClean(t *testing.T) {
	removes := Declared{OnDisable: []string{"ClearA"}, Removes: true}
	for name, tc := range map[string]struct {
		servers []tracker.Server
		says    string
	}{
		"servers agree on off": {[]tracker.Server{server("a", false)}, ""},
		"servers disagree":     {[]tracker.Server{server("a", false), server("b", true)}, "on in b"},
		"a server is starting": {[]tracker.Server{server("a", false), {ID: "b", Starting: true}}, "not reported"},
		"servers agree on on":  {[]tracker.Server{server("a", true)}, "on"},
		"versions are mixed":   {[]tracker.Server{server("a", false), emulating(server("b", false), "1.35")}, "versions"},
	} {
		err := MayClean(feature(v1alpha1.StateOff), View{Servers: tc.servers, Declared: removes})
		if (err == nil) != (tc.says == "") || (err != nil && !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: got %v, want it to say %q", name, err, tc.says)
		}
	}
	paused := feature(v1alpha1.StateOff)
	paused.Spec.Paused = true
	for says, f := range map[string]*v1alpha1.Feature{
		"no state yet":               feature(""),
		"the feature is On":          feature(v1alpha1.StateOn),
		"the feature is TurningOff":  feature(v1alpha1.StateTurningOff, "ClearA"),
		"the feature is Downgrading": feature(v1alpha1.StateDowngrading, "ClearA"),
		"set it to false first":      paused,
	} {
		if err := MayClean(f, View{Servers: []tracker.Server{server("a", false)}, Declared: removes}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s, paused %t: got %v, want it to say %q", f.Status.State, f.Spec.Paused, err, says)
		}
	}
	misdeclared := feature(v1alpha1.StateOff)
	misdeclared.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionClean, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonMisdeclared, Message: "there is no resource widgets"}}
	for says, tc := range map[string]struct {
		feature  *v1alpha1.Feature
		declared Declared
	}{
		"declares nothing that could be removed": {feature(v1alpha1.StateOff), Declared{}},
		"delete or replace those":                {feature(v1alpha1.StateOff), Declared{OnDisable: []string{"ClearA"}}},
		"there is no resource widgets":           {misdeclared, removes},
	} {
		if err := MayClean(tc.feature, View{Servers: []tracker.Server{server("a", false)}, Declared: tc.declared}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want it to say %q", err, says)
		}
	}
}
