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
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes-features/pkg/apis/features"
)

func confirmation(process string, values ...features.ConfirmedValue) *features.FeatureConfirmation {
	return &features.FeatureConfirmation{Spec: features.FeatureConfirmationSpec{Process: process, Values: values}}
}

func confirm(ctx context.Context, r *REST, name string, c *features.FeatureConfirmation, dryRun ...string) (*features.FeatureConfirmation, error) {
	obj, err := r.Confirmation().Create(ctx, name, c, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
	if err != nil {
		return nil, err
	}
	return obj.(*features.FeatureConfirmation), nil
}

// confirmable is the report of a kubelet that has not confirmed anything.
func confirmable(t *testing.T, r *REST) *features.FeatureReport {
	t.Helper()
	of := report("kubelet", "n1", "n1", "")
	of.Spec.Process = "p1"
	of.Spec.Features = []features.ReportedFeature{{Name: "A", Queried: true, Stage: features.StageBeta}, {Name: "B", Enabled: true, Queried: true}, {Name: "C", Explicit: true}}
	return created(node(t, "n1"), t, r, of)
}

// TestConfirmationIsStoredInTheReport: the values, and nothing else, at the version that
// the answer has; a repeated one writes nothing.
func TestConfirmationIsStoredInTheReport(t *testing.T) {
	r := newREST(t)
	want := confirmable(t, r)
	values := confirmation("p1", features.ConfirmedValue{Name: "B"}, features.ConfirmedValue{Name: "A", Enabled: true, Overridden: true, SwitchTime: "2026-11-30T12:00:00Z"})
	if _, err := confirm(node(t, "n1"), r, want.Name, values, metav1.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, read(t, r, want.Name)); diff != "" {
		t.Errorf("a dry run has changed the report (-want +got):\n%s", diff)
	}
	answer, err := confirm(node(t, "n1"), r, want.Name, values)
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, r, want.Name)
	if answer.ResourceVersion != got.ResourceVersion || got.ResourceVersion == want.ResourceVersion || answer.Name != want.Name || answer.Namespace != want.Namespace {
		t.Errorf("the answer is %+v, and the report has the version %s", answer.ObjectMeta, got.ResourceVersion)
	}
	want.Spec.Features[0].Enabled, want.Spec.Features[0].Overridden, want.Spec.Features[1].Enabled = true, true, false
	want.Spec.Features[0].SwitchTime = "2026-11-30T12:00:00Z"
	want.Generation, want.ResourceVersion = 2, got.ResourceVersion
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the report (-want +got):\n%s", diff)
	}
	if answer, err = confirm(node(t, "n1"), r, want.Name, values); err != nil || answer.ResourceVersion != want.ResourceVersion {
		t.Errorf("repeated: %+v, %v; want that nothing is written", answer, err)
	}
}

// TestConfirmationsThatAreRefused change nothing.
func TestConfirmationsThatAreRefused(t *testing.T) {
	r := newREST(t)
	want := confirmable(t, r)
	a := features.ConfirmedValue{Name: "A", Enabled: true}
	misnamed := confirmation("p1", a)
	misnamed.Name = "kubelet.n2"
	for name, tc := range map[string]struct {
		of   string
		ctx  context.Context
		body *features.FeatureConfirmation
		is   func(error) bool
		says string
	}{
		"another node":           {want.Name, node(t, "n2"), confirmation("p1", a), apierrors.IsForbidden, `only "system:node:n1"`},
		"who may touch metadata": {want.Name, in(t, "gc"), confirmation("p1", a), apierrors.IsForbidden, `only "system:node:n1"`},
		"a user without name":    {want.Name, in(t, ""), confirmation("p1", a), apierrors.IsForbidden, `only "system:node:n1"`},
		"another process":        {want.Name, node(t, "n1"), confirmation("p2", a), apierrors.IsConflict, "write the whole report"},
		"a gate that is missing": {want.Name, node(t, "n1"), confirmation("p1", a, features.ConfirmedValue{Name: "D"}), apierrors.IsConflict, "does not list D"},
		"a report that is none":  {"kubelet.n2", node(t, "n2"), confirmation("p1", a), apierrors.IsNotFound, "kubelet.n2"},
		"no process":             {want.Name, node(t, "n1"), confirmation("", a), apierrors.IsInvalid, "spec.process: Required"},
		"no values":              {want.Name, node(t, "n1"), confirmation("p1"), apierrors.IsInvalid, "spec.values: Required"},
		"a gate twice":           {want.Name, node(t, "n1"), confirmation("p1", a, a), apierrors.IsInvalid, `spec.values[1].name: Duplicate value: "A"`},
		"a moment in words":      {want.Name, node(t, "n1"), confirmation("p1", features.ConfirmedValue{Name: "A", SwitchTime: "noon"}), apierrors.IsInvalid, "spec.values[0].switchTime: Invalid value"},
		"another name":           {want.Name, node(t, "n1"), misnamed, apierrors.IsBadRequest, `the URL names report "kubelet.n1"`},
	} {
		if _, err := confirm(tc.ctx, r, tc.of, tc.body); !tc.is(err) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %v, want %q", name, err, tc.says)
		}
	}
	if diff := cmp.Diff(want, read(t, r, want.Name)); diff != "" {
		t.Errorf("the report has changed (-want +got):\n%s", diff)
	}
}
