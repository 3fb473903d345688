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

package agent

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// send writes what differs: changed values alone where a confirmation says everything, and
// else the whole report.
func (r *Reporter) send(ctx context.Context, spec *v1alpha1.FeatureReportSpec, d difference) error {
	if confirmation := r.confirmation(spec, d); confirmation != nil {
		answer, err := r.reports().CreateConfirmation(ctx, r.name, confirmation, metav1.CreateOptions{})
		switch {
		case err == nil:
			r.stored.ResourceVersion, r.stored.Spec.Features = answer.ResourceVersion, spec.Features
			return nil
		case apierrors.IsConflict(err):
			// The report is not what this process wrote last.
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
			// An older server has no confirmations, and its roles do not permit them. Others
			// of the cluster may.
			r.confirmAfter = r.config.Clock.Now().Add(checkPeriod)
		default:
			return err
		}
	}
	return r.write(ctx, spec, nil)
}

// confirmation returns what to send when values alone differ, nil if the whole report is to
// be written. Only processes on nodes confirm: there are thousands of them that get a value
// together. Others are few, and need one permission less.
func (r *Reporter) confirmation(spec *v1alpha1.FeatureReportSpec, d difference) *v1alpha1.FeatureConfirmation {
	if r.config.NodeName == "" || r.config.ListAll || r.stored == nil || r.written == nil || d.other || len(d.values) == 0 || r.stopUnwritten() || r.ownerless() || r.config.Clock.Now().Before(r.confirmAfter) {
		return nil
	}
	confirmation := &v1alpha1.FeatureConfirmation{Spec: v1alpha1.FeatureConfirmationSpec{Process: r.process}}
	changed := make(map[string]bool, len(d.values))
	for _, name := range d.values {
		changed[name] = true
	}
	for _, f := range spec.Features {
		if changed[f.Name] {
			confirmation.Spec.Values = append(confirmation.Spec.Values, v1alpha1.ConfirmedValue{Name: f.Name, Enabled: f.Enabled, Overridden: f.Overridden, SwitchTime: f.SwitchTime})
		}
	}
	return confirmation
}
