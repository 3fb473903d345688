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

package feature

import (
	"context"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	pkgfields "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/apis/features"
	"k8s.io/utils/ptr"
)

func feature(namespace string, enabled *bool) *features.Feature {
	return &features.Feature{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "Gate", ResourceVersion: "1", Generation: 3},
		Spec:       features.FeatureSpec{Enabled: enabled},
		Status:     features.FeatureStatus{State: features.StateOn},
	}
}

func TestSpecWritesLeaveTheStatusAlone(t *testing.T) {
	s := NewStrategy(func(string) bool { return true })
	created := feature("ns", nil)
	s.PrepareForCreate(t.Context(), created)
	if created.Status.State != "" || created.Generation != 1 {
		t.Errorf("created with state %q, generation %d", created.Status.State, created.Generation)
	}
	old, changed := feature("ns", nil), feature("ns", ptr.To(true))
	changed.Status.State = features.StateOff
	s.PrepareForUpdate(t.Context(), changed, old)
	if changed.Status.State != features.StateOn || changed.Generation != 4 {
		t.Errorf("updated to state %q, generation %d", changed.Status.State, changed.Generation)
	}
	same := feature("ns", nil)
	s.PrepareForUpdate(t.Context(), same, old)
	if same.Generation != 3 {
		t.Errorf("generation %d although spec is the same", same.Generation)
	}
}

func TestStatusWritesLeaveTheSpecAlone(t *testing.T) {
	s := StatusStrategy{NewStrategy(func(string) bool { return true })}
	old, changed := feature("ns", nil), feature("ns", ptr.To(true))
	changed.Labels = map[string]string{"a": "b"}
	changed.Status.State = features.StateOff
	s.PrepareForUpdate(t.Context(), changed, old)
	if changed.Spec.Enabled != nil || changed.Labels != nil || changed.Status.State != features.StateOff {
		t.Errorf("updated to %+v", changed)
	}
}

func TestWhoseValueTheAPISets(t *testing.T) {
	s := NewStrategy(func(name string) bool { return name == "Dynamic" })
	dynamic := feature(metav1.NamespaceSystem, ptr.To(true))
	dynamic.Name = "Dynamic"
	for name, tc := range map[string]struct {
		feature, old *features.Feature
		refused      bool
	}{
		"a dynamic feature":                {feature: dynamic},
		"another feature of Kubernetes":    {feature: feature(metav1.NamespaceSystem, ptr.To(true)), refused: true},
		"to off":                           {feature: feature(metav1.NamespaceSystem, ptr.To(false)), refused: true},
		"a third party's feature":          {feature: feature("example", ptr.To(true))},
		"no value":                         {feature: feature(metav1.NamespaceSystem, nil)},
		"a value that was there":           {feature: feature(metav1.NamespaceSystem, ptr.To(true)), old: feature(metav1.NamespaceSystem, ptr.To(true))},
		"another than was there":           {feature: feature(metav1.NamespaceSystem, ptr.To(false)), old: feature(metav1.NamespaceSystem, ptr.To(true)), refused: true},
		"one that was there is taken away": {feature: feature(metav1.NamespaceSystem, nil), old: feature(metav1.NamespaceSystem, ptr.To(true))},
	} {
		t.Run(name, func(t *testing.T) {
			errs := s.Validate(t.Context(), tc.feature)
			if tc.old != nil {
				errs = s.ValidateUpdate(t.Context(), tc.feature, tc.old)
			}
			if (len(errs) > 0) != tc.refused {
				t.Fatalf("got %v, want refused %t", errs, tc.refused)
			}
			for _, err := range errs {
				for _, text := range []string{"--feature-gates=Gate=", "--dynamic-features"} {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("the message does not say %q: %v", text, err)
					}
				}
			}
		})
	}
}

func TestSelectableFields(t *testing.T) {
	_, fields, err := GetAttrs(feature("ns", nil))
	if err != nil || fields["status.state"] != "On" || fields["metadata.name"] != "Gate" || fields["metadata.namespace"] != "ns" {
		t.Errorf("fields %v, %v", fields, err)
	}
	if _, _, err := GetAttrs(&features.FeatureReport{}); err == nil {
		t.Error("another kind has fields")
	}
}

// TestTheRequesterIsKept: whoever set spec.enabled, whatever else is written by
// whom, and whatever requests say.
func TestTheRequesterIsKept(t *testing.T) {
	s := NewStrategy(func(string) bool { return true })
	by := func(name string) context.Context {
		return request.WithUser(t.Context(), &user.DefaultInfo{Name: name})
	}
	claimed := map[string]string{v1alpha1.AnnotationRequestedBy: "somebody else", "other": "x"}
	created := &features.Feature{Spec: features.FeatureSpec{Enabled: ptr.To(true)}}
	created.Annotations = maps.Clone(claimed)
	s.PrepareForCreate(by("alice"), created)
	expect := func(f *features.Feature, want string) {
		t.Helper()
		if got := f.Annotations[v1alpha1.AnnotationRequestedBy]; got != want {
			t.Errorf("requested by %q, want %q", got, want)
		}
	}
	expect(created, "alice")
	paused := created.DeepCopy()
	paused.Spec.Paused = true
	paused.Annotations = maps.Clone(claimed)
	s.PrepareForUpdate(by("bob"), paused, created)
	expect(paused, "alice")
	off := paused.DeepCopy()
	off.Spec.Enabled = ptr.To(false)
	s.PrepareForUpdate(by("bob"), off, paused)
	expect(off, "bob")
	unset := off.DeepCopy()
	unset.Spec.Enabled = nil
	s.PrepareForUpdate(by("carol"), unset, off)
	expect(unset, "")
	if unset.Annotations["other"] != "x" {
		t.Error("another annotation is gone")
	}
}

// TestSelectingByControl: components that follow dynamic features watch with this
// selector, and only watchers of a control are told of its features.
func TestSelectingByControl(t *testing.T) {
	for control, selected := range map[features.FeatureControl]bool{
		features.ControlDynamic: true, features.ControlCentral: false, features.ControlLocal: false, "": false,
	} {
		f := &features.Feature{Status: features.FeatureStatus{Control: control}}
		predicate := Match(labels.Everything(), pkgfields.OneTermEqualSelector("status.control", "Dynamic"))
		if got, err := predicate.Matches(f); err != nil || got != selected {
			t.Errorf("%q: selected %t, %v", control, got, err)
		}
		// The watch cache keeps watchers by fields that are in both places and
		// that a selector pins (k8s.io/apiserver/pkg/storage/cacher).
		for _, field := range predicate.IndexFields {
			value, pinned := predicate.Field.RequiresExactMatch(field)
			if got := TriggerFuncs()[field](f) == value; !pinned || got != selected {
				t.Errorf("%q: %s is pinned: %t, told: %t", control, field, pinned, got)
			}
		}
		told := Match(labels.Everything(), pkgfields.ParseSelectorOrDie("status.control!=,status.control!=Local"))
		if got, err := told.Matches(f); err != nil || got != (control == features.ControlDynamic || control == features.ControlCentral) {
			t.Errorf("%q says something: %t, %v", control, got, err)
		}
	}
	if len(TriggerFuncs()) != 1 || len(Match(labels.Everything(), pkgfields.Everything()).IndexFields) != 1 {
		t.Error("the watch cache keeps watchers by one field")
	}
}
