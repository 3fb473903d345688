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
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/kubernetes-features/pkg/apis/features"
	"k8s.io/kubernetes-features/pkg/apis/features/validation"
)

// ConfirmationREST serves the subresource confirmation: it stores values in a report of
// which nothing else has changed, for its creator alone. What is sent, decoded, validated
// and answered is a few values instead of a list of all. No managed fields are computed,
// which reports do not keep.
type ConfirmationREST struct {
	reports *REST
}

var _ rest.NamedCreater = &ConfirmationREST{}

// New makes an empty confirmation.
func (r *ConfirmationREST) New() runtime.Object { return &features.FeatureConfirmation{} }

// Destroy does nothing: the storage belongs to the reports.
func (r *ConfirmationREST) Destroy() {}

// Create stores the values, and answers with the resource version of the report. It
// returns NotFound without the report, Forbidden for other identities, and Conflict for a
// report that another process has written since, or that lacks a value: the process writes
// the whole report then.
func (r *ConfirmationREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	confirmation, ok := obj.(*features.FeatureConfirmation)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected a FeatureConfirmation, got %T", obj))
	}
	if confirmation.Name != "" && confirmation.Name != name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("metadata.name is %q, the URL names report %q; leave it out or make them equal", confirmation.Name, name))
	}
	if errs := validation.ValidateFeatureConfirmation(confirmation); len(errs) > 0 {
		return nil, apierrors.NewInvalid(features.Kind("FeatureConfirmation"), name, errs)
	}
	if validate != nil {
		if err := validate(ctx, confirmation.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	key, err := r.reports.KeyFunc(ctx, name)
	if err != nil {
		return nil, err
	}
	report := &features.FeatureReport{}
	confirm := storage.SimpleUpdate(func(stored runtime.Object) (runtime.Object, error) {
		return confirmed(ctx, stored.(*features.FeatureReport), confirmation)
	})
	isDryRun := options != nil && dryrun.IsDryRun(options.DryRun)
	if err := r.reports.Storage.GuaranteedUpdate(ctx, key, report, false, nil, confirm, isDryRun, nil); err != nil {
		return nil, storeerr.InterpretUpdateError(err, features.Resource("featurereports"), name)
	}
	return &features.FeatureConfirmation{
		ObjectMeta: metav1.ObjectMeta{Namespace: report.Namespace, Name: report.Name, ResourceVersion: report.ResourceVersion},
		Spec:       confirmation.Spec,
	}, nil
}

// confirmed returns a report with the values of a confirmation. The list of the stored one
// is shared (sharing), and is not changed.
func confirmed(ctx context.Context, report *features.FeatureReport, confirmation *features.FeatureConfirmation) (*features.FeatureReport, error) {
	user, err := requester(ctx, report)
	if err != nil {
		return nil, err
	}
	if !createdBy(user, report) {
		return nil, notCreator(report, user)
	}
	spec := &confirmation.Spec
	if report.Spec.Process != spec.Process {
		return nil, incomplete(report, "process %q has written the report since, not %q", report.Spec.Process, spec.Process)
	}
	var list []features.ReportedFeature
	for _, value := range spec.Values {
		at := slices.IndexFunc(report.Spec.Features, func(f features.ReportedFeature) bool { return f.Name == value.Name })
		if at < 0 {
			return nil, incomplete(report, "the report does not list %s", value.Name)
		}
		if before := report.Spec.Features[at]; before.Enabled == value.Enabled && before.Overridden == value.Overridden && before.SwitchTime == value.SwitchTime {
			continue
		}
		if list == nil {
			list = slices.Clone(report.Spec.Features)
		}
		list[at].Enabled, list[at].Overridden, list[at].SwitchTime = value.Enabled, value.Overridden, value.SwitchTime
	}
	if list != nil {
		report.Spec.Features = list
		report.Generation++
	}
	return report, nil
}

// incomplete is the error for a confirmation that does not say everything.
func incomplete(report *features.FeatureReport, format string, args ...any) error {
	return apierrors.NewConflict(features.Resource("featurereports"), report.Name, fmt.Errorf(format+"; write the whole report", args...))
}
