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

package report

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// check looks whether the report is still there and writes it again if not.
func (r *Reporter) check(ctx context.Context) error {
	// Served from the server's cache: thousands of processes ask this.
	current, err := r.config.Features.FeaturesV1alpha1().FeatureReports(r.config.Namespace).Get(ctx, r.name, metav1.GetOptions{ResourceVersion: "0"})
	r.lastCheck = r.config.Clock.Now()
	if apierrors.IsNotFound(err) {
		r.stored = nil
		owner, err := r.owner(ctx)
		if err != nil {
			return err
		}
		return r.write(ctx, r.written, owner)
	}
	if err != nil {
		return err
	}
	if r.config.NodeName != "" && len(current.OwnerReferences) == 0 {
		owner, err := r.owner(ctx)
		if err != nil || owner == nil {
			return err
		}
		return r.write(ctx, r.written, owner)
	}
	return nil
}

// write creates the report or replaces its spec, whatever is there.
func (r *Reporter) write(ctx context.Context, spec *v1alpha1.FeatureReportSpec, owner *metav1.OwnerReference) error {
	client := r.config.Features.FeaturesV1alpha1().FeatureReports(r.config.Namespace)
	// A conflict means that somebody changed the object since it was read.
	for range 5 {
		report := &v1alpha1.FeatureReport{ObjectMeta: metav1.ObjectMeta{Namespace: r.config.Namespace, Name: r.name}}
		if r.stored != nil {
			report = r.stored.DeepCopy()
		}
		username := report.Spec.Username
		report.Spec = *spec.DeepCopy()
		report.Spec.Username = username
		if owner != nil {
			report.OwnerReferences = []metav1.OwnerReference{*owner}
		}
		var err error
		if r.stored == nil {
			report, err = client.Create(ctx, report, metav1.CreateOptions{})
		} else {
			report, err = client.Update(ctx, report, metav1.UpdateOptions{})
		}
		switch {
		case err == nil:
			r.stored = report
			return nil
		case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
			// An earlier process of this instance left its report, or somebody
			// else wrote metadata.
			if r.stored, err = client.Get(ctx, r.name, metav1.GetOptions{}); err != nil {
				r.stored = nil
				if !apierrors.IsNotFound(err) {
					return err
				}
			}
		case apierrors.IsNotFound(err) && r.stored != nil:
			r.stored = nil
		default:
			return err
		}
	}
	return fmt.Errorf("report %s keeps being changed by somebody else", r.name)
}

// errNoNode: the Node of a node component does not exist yet.
var errNoNode = errors.New("node does not exist yet")

// owner returns the reference that makes the report go with its Node. It is nil
// for processes without a node and for nodes that do not appear.
func (r *Reporter) owner(ctx context.Context) (*metav1.OwnerReference, error) {
	if r.config.NodeName == "" {
		return nil, nil
	}
	node, err := r.config.Kube.CoreV1().Nodes().Get(ctx, r.config.NodeName, metav1.GetOptions{})
	switch {
	case err == nil:
		return &metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}, nil
	case apierrors.IsNotFound(err):
		if r.config.Clock.Since(r.begun) < nodePatience {
			return nil, errNoNode
		}
		return nil, nil
	case apierrors.IsForbidden(err):
		return nil, nil
	default:
		return nil, fmt.Errorf("reading node %s: %w", r.config.NodeName, err)
	}
}

// Remove takes the report and the reporter's own Lease away, in bounded time.
// Call it when the process ends in order.
func (r *Reporter) Remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	err := r.config.Features.FeaturesV1alpha1().FeatureReports(r.config.Namespace).Delete(ctx, r.name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	if lease := r.lease(); lease != nil && r.config.Lease == nil {
		leaseErr := r.config.Kube.CoordinationV1().Leases(lease.Namespace).Delete(ctx, lease.Name, metav1.DeleteOptions{})
		if leaseErr != nil && !apierrors.IsNotFound(leaseErr) {
			err = errors.Join(err, leaseErr)
		}
	}
	if err != nil {
		return fmt.Errorf("removing feature report %s/%s: %w", r.config.Namespace, r.name, err)
	}
	return nil
}
