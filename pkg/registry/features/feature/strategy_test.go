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

package feature

import (
	"cmp"
	"maps"
	"strings"
	"testing"
	"time"

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

// decided makes the rules of a server with this control for all features.
func decided(control v1alpha1.FeatureControl) Strategy {
	return NewStrategy(func(string) v1alpha1.FeatureControl { return control })
}

func TestSpecUpdateKeepsStatus(t *testing.T) {
	s := decided(v1alpha1.ControlDynamic)
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

func TestStatusUpdateKeepsSpec(t *testing.T) {
	s := StatusStrategy{decided(v1alpha1.ControlDynamic)}
	old, changed := feature("ns", nil), feature("ns", ptr.To(true))
	changed.Labels = map[string]string{"a": "b"}
	changed.Status.State = features.StateOff
	s.PrepareForUpdate(t.Context(), changed, old)
	if changed.Spec.Enabled != nil || changed.Labels != nil || changed.Status.State != features.StateOff {
		t.Errorf("updated to %+v", changed)
	}
}

func TestValueIsSettableForDynamicFeatures(t *testing.T) {
	s := NewStrategy(func(name string) v1alpha1.FeatureControl {
		if name == "Dynamic" {
			return v1alpha1.ControlDynamic
		}
		return v1alpha1.ControlCentral
	})
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

// TestRequesterIsRecorded checks that the user who last changed the spec's
// requests is recorded. Other writes, and the annotation in requests, do not
// change that.
func TestRequesterIsRecorded(t *testing.T) {
	s := decided(v1alpha1.ControlDynamic)
	claimed := map[string]string{v1alpha1.AnnotationRequestedBy: "another user", "other": "x"}
	feature := &features.Feature{}
	feature.Annotations = maps.Clone(claimed)
	s.PrepareForCreate(request.WithUser(t.Context(), &user.DefaultInfo{Name: "flow"}), feature)
	if got, ok := feature.Annotations[v1alpha1.AnnotationRequestedBy]; ok {
		t.Errorf("created without a request, requested by %q", got)
	}
	for _, step := range []struct {
		what, who, want string
		change          func(*features.Feature)
	}{
		{"a label", "mallory", "", func(f *features.Feature) { f.Labels = map[string]string{"a": "b"} }},
		{"a value", "alice", "alice", func(f *features.Feature) { f.Spec.Enabled = ptr.To(true) }},
		{"the same", "bob", "alice", func(f *features.Feature) { f.Spec.Enabled = ptr.To(true) }},
		{"the annotation taken away", "bob", "alice", func(f *features.Feature) { f.Annotations = nil }},
		{"a pause", "bob", "bob", func(f *features.Feature) { f.Spec.Paused = true }},
		{"its end", "carol", "carol", func(f *features.Feature) { f.Spec.Paused = false }},
		{"a rollout", "dave", "dave", func(f *features.Feature) { f.Spec.Rollout = &features.FeatureRollout{Percent: ptr.To[int32](1)} }},
		{"a percentage", "erin", "erin", func(f *features.Feature) { f.Spec.Rollout.Percent = ptr.To[int32](100) }},
		{"the rollout written as it is", "mallory", "erin", func(f *features.Feature) { f.Spec.Rollout.Components = []string{} }},
		{"the other value", "frank", "frank", func(f *features.Feature) { f.Spec.Enabled = ptr.To(false) }},
		{"the request taken back", "grace", "grace", func(f *features.Feature) { f.Spec = features.FeatureSpec{} }},
		{"an annotation, after that", "mallory", "grace", func(*features.Feature) {}},
		{"a change without user", "", "", func(f *features.Feature) { f.Spec.Paused = true }},
	} {
		changed := feature.DeepCopy()
		changed.Annotations = maps.Clone(claimed)
		step.change(changed)
		ctx := t.Context()
		if step.who != "" {
			ctx = request.WithUser(ctx, &user.DefaultInfo{Name: step.who})
		}
		s.PrepareForUpdate(ctx, changed, feature)
		if got := changed.Annotations[v1alpha1.AnnotationRequestedBy]; got != step.want {
			t.Errorf("%s: requested by %q, want %q", step.what, got, step.want)
		}
		feature = changed
	}
	if feature.Annotations["other"] != "x" {
		t.Error("another annotation is gone")
	}
	created := &features.Feature{Spec: features.FeatureSpec{Enabled: ptr.To(true)}}
	s.PrepareForCreate(request.WithUser(t.Context(), &user.DefaultInfo{Name: "alice"}), created)
	if got := created.Annotations[v1alpha1.AnnotationRequestedBy]; got != "alice" {
		t.Errorf("created with a request, requested by %q", got)
	}
}

// TestIneffectiveFieldsWarn checks that values and rollouts without effect are
// stored, with a warning.
func TestIneffectiveFieldsWarn(t *testing.T) {
	value := features.FeatureSpec{Enabled: ptr.To(true)}
	rollout := features.FeatureSpec{Rollout: &features.FeatureRollout{Percent: ptr.To[int32](10)}}
	for name, tc := range map[string]struct {
		namespace string
		control   v1alpha1.FeatureControl
		status    features.FeatureControl
		spec      features.FeatureSpec
		says      []string
	}{
		"a value that is taken":                        {control: v1alpha1.ControlDynamic, spec: value},
		"one left over in a central feature":           {control: v1alpha1.ControlCentral, spec: value, says: []string{"spec.enabled: has no effect: feature Gate is Central"}},
		"one left over in a local feature":             {control: v1alpha1.ControlLocal, spec: value, says: []string{"spec.enabled: has no effect: feature Gate is Local"}},
		"before the status says so":                    {control: v1alpha1.ControlDynamic, status: features.ControlLocal, spec: value},
		"a rollout of a local feature":                 {control: v1alpha1.ControlLocal, spec: rollout, says: []string{"spec.rollout: has no effect: feature Gate is Local"}},
		"of a central feature":                         {control: v1alpha1.ControlCentral, spec: rollout},
		"of a dynamic feature":                         {control: v1alpha1.ControlDynamic, spec: rollout},
		"both in a local feature":                      {control: v1alpha1.ControlLocal, spec: features.FeatureSpec{Enabled: value.Enabled, Rollout: rollout.Rollout}, says: []string{"spec.enabled", "spec.rollout"}},
		"a pause of a local feature":                   {control: v1alpha1.ControlLocal, spec: features.FeatureSpec{Paused: true}},
		"a third party's, of which nothing is known":   {namespace: "ns", control: v1alpha1.ControlLocal, spec: value},
		"a third party's local feature":                {namespace: "ns", control: v1alpha1.ControlDynamic, status: features.ControlLocal, spec: value, says: []string{"spec.enabled"}},
		"a third party's dynamic feature":              {namespace: "ns", control: v1alpha1.ControlLocal, status: features.ControlDynamic, spec: value},
		"a rollout of a third party's central feature": {namespace: "ns", control: v1alpha1.ControlLocal, status: features.ControlCentral, spec: rollout},
	} {
		t.Run(name, func(t *testing.T) {
			s := decided(tc.control)
			f := feature(cmp.Or(tc.namespace, metav1.NamespaceSystem), nil)
			f.Spec, f.Status.Control = tc.spec, tc.status
			for verb, warnings := range map[string][]string{"create": s.WarningsOnCreate(t.Context(), f), "update": s.WarningsOnUpdate(t.Context(), f, f)} {
				if len(warnings) != len(tc.says) {
					t.Fatalf("%s: %q, want %d", verb, warnings, len(tc.says))
				}
				for i, warning := range warnings {
					if !strings.HasPrefix(warning, tc.says[i]) {
						t.Errorf("%s: %q, want %q", verb, warning, tc.says[i])
					}
				}
			}
			if warnings := (StatusStrategy{s}).WarningsOnUpdate(t.Context(), f, f); len(warnings) > 0 {
				t.Errorf("who writes the status is told %q", warnings)
			}
		})
	}
}

// TestSelectByControl checks the selector with which components watch dynamic
// features. Only watchers of a control get its features.
func TestSelectByControl(t *testing.T) {
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

// TestMomentIsRoundedAndJudged: fractions of a second are not stored, so that the same
// request changes nothing a second time. One that has passed is named once.
func TestMomentIsRoundedAndJudged(t *testing.T) {
	s := decided(v1alpha1.ControlDynamic)
	at := func(moment time.Time) *features.Feature {
		f := feature("ns", ptr.To(true))
		f.Spec.Rollout = &features.FeatureRollout{At: &metav1.Time{Time: moment}}
		return f
	}
	passed := time.Date(2020, 1, 1, 0, 0, 0, 5e8, time.UTC)
	created := at(passed)
	s.PrepareForCreate(t.Context(), created)
	if warnings := s.WarningsOnCreate(t.Context(), created); len(warnings) != 1 || !strings.HasPrefix(warnings[0], "spec.rollout.at: 2020-01-01T00:00:00Z has passed") {
		t.Errorf("a moment that has passed is created with %q", warnings)
	}
	again := at(passed)
	again.Generation = created.Generation
	s.PrepareForUpdate(t.Context(), again, created)
	if again.Generation != created.Generation {
		t.Errorf("the generation became %d by the same request, and was %d", again.Generation, created.Generation)
	}
	if warnings := s.WarningsOnUpdate(t.Context(), again, created); len(warnings) > 0 {
		t.Errorf("a moment that is there already has %q", warnings)
	}
	distant := at(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))
	if s.PrepareForUpdate(t.Context(), distant, created); distant.Spec.Rollout.At.Year() != 10000 {
		t.Errorf("a moment after all became %s", distant.Spec.Rollout.At)
	}
	later := at(time.Now().Add(time.Hour))
	s.PrepareForUpdate(t.Context(), later, created)
	if warnings := s.WarningsOnUpdate(t.Context(), later, created); len(warnings) > 0 {
		t.Errorf("a moment that is to come has %q", warnings)
	}
	if warnings := s.WarningsOnUpdate(t.Context(), at(passed), later); len(warnings) != 1 {
		t.Errorf("another moment, which has passed, has %q", warnings)
	}
}
