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
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	typedv1alpha1 "k8s.io/feature-lifecycle/client/clientset/versioned/typed/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// reports returns the client of reports in the process's namespace.
func (r *Reporter) reports() typedv1alpha1.FeatureReportInterface {
	return r.config.Clients.Features.FeaturesV1alpha1().FeatureReports(r.config.Namespace)
}

// observe returns the spec of the report as it should be now.
func (r *Reporter) observe() *v1alpha1.FeatureReportSpec {
	spec := &v1alpha1.FeatureReportSpec{
		Component:     r.config.Component,
		Instance:      r.config.Instance,
		NodeName:      r.config.NodeName,
		BinaryVersion: r.config.BinaryVersion,
		Features:      features(r.config.Source.Observations(), r.config.ListAll),
		Liveness:      v1alpha1.ReportLiveness{Lease: r.lease()},
		Process:       r.process,
	}
	if v := r.config.Source.EmulationVersion(); v != nil {
		spec.EmulationVersion = fmt.Sprintf("%d.%d", v.Major(), v.Minor())
	}
	return spec
}

// check reads the report and writes it again if it is missing or differs.
func (r *Reporter) check(ctx context.Context) error {
	// Served from the server's cache: thousands of processes send this request.
	current, err := r.reports().Get(ctx, r.name, metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		r.stored = nil
		// As the first time: the server sets the Node as owner, or later checks do.
		return r.write(ctx, r.written, nil)
	}
	if err != nil {
		return err
	}
	var owner *metav1.OwnerReference
	if r.config.NodeName != "" && len(current.OwnerReferences) == 0 {
		if owner, err = r.node(ctx); err != nil {
			return err
		}
	}
	// Another process of this instance may have written last, one that is being replaced
	// for example.
	current.Spec.Username, current.Spec.Process = r.written.Username, r.written.Process
	if len(current.OwnerReferences) > 0 && r.stored != nil && r.stored.UID == current.UID {
		r.stored.OwnerReferences = current.OwnerReferences
	}
	if owner == nil && equality.Semantic.DeepEqual(current.Spec, *r.written) {
		return nil
	}
	return r.write(ctx, r.written, owner)
}

// MarkTerminating sets AnnotationTerminating on the report: the process is about to
// terminate, so that its last Lease is its end and not a crash. It is for processes that
// cannot delete their report at their end, such as a server that serves the API. Run
// continues. MarkTerminating returns once the report was written, or after a short timeout.
func (r *Reporter) MarkTerminating(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	if r.terminating.CompareAndSwap(false, true) {
		r.terminations <- struct{}{}
	}
	select {
	case <-r.terminationMarked:
	case <-ctx.Done():
	}
}

// MarkControllerStopped sets AnnotationControllerStopped on the report: the server flow of
// this process has stopped, so that other servers take its features. It is for servers that
// continue with other work, and is never reverted: another process of the instance starts
// without it. Call it after the server flow has stopped. It does not wait: Run writes it
// soon, and retries until the server accepts it.
func (r *Reporter) MarkControllerStopped() {
	r.controllerStopped.Store(true)
	r.wake()
}

// Retry makes Run retry at once, because the reason for which the server has refused
// reports may have changed. It does not wait.
func (r *Reporter) Retry() {
	r.retries.Store(true)
	r.wake()
}

func (r *Reporter) wake() {
	select {
	case r.wakes <- struct{}{}:
	default:
	}
}

// stopUnwritten returns true while the report lacks AnnotationControllerStopped.
func (r *Reporter) stopUnwritten() bool { return r.controllerStopped.Load() && !r.stopWritten }

// writeTerminating writes the report with AnnotationTerminating.
func (r *Reporter) writeTerminating(ctx context.Context) {
	defer close(r.terminationMarked)
	if r.written == nil {
		return
	}
	if err := r.write(ctx, r.written, nil); err != nil {
		klog.FromContext(ctx).Info("Failed to mark feature report as terminating", "featureReport", klog.KRef(r.config.Namespace, r.name), "err", err)
	}
}

// write creates the report or replaces the spec of the stored one.
func (r *Reporter) write(ctx context.Context, spec *v1alpha1.FeatureReportSpec, owner *metav1.OwnerReference) error {
	client := r.reports()
	// A conflict means that another client changed the object since it was read.
	for range 5 {
		report := &v1alpha1.FeatureReport{ObjectMeta: metav1.ObjectMeta{Namespace: r.config.Namespace, Name: r.name}}
		if r.stored != nil {
			report = r.stored.DeepCopy()
		}
		username := report.Spec.Username
		report.Spec = *spec.DeepCopy()
		report.Spec.Username = username
		stopped := r.controllerStopped.Load()
		annotate(report, v1alpha1.AnnotationTerminating, r.terminating.Load())
		annotate(report, v1alpha1.AnnotationControllerStopped, stopped)
		if owner = cmp.Or(owner, r.owner); owner != nil {
			report.OwnerReferences = []metav1.OwnerReference{*owner}
		}
		var err error
		r.attempted = true
		if r.stored == nil {
			report, err = client.Create(ctx, report, metav1.CreateOptions{})
		} else {
			report, err = client.Update(ctx, report, metav1.UpdateOptions{})
		}
		switch {
		case err == nil:
			r.stored, r.stopWritten = report, stopped
			return nil
		case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
			// An earlier process of this instance left its report, or another client
			// wrote metadata.
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
	return fmt.Errorf("report %s: another client keeps changing it", r.name)
}

// annotate sets an annotation that holds for this process, or removes the one of an earlier
// process of the instance.
func annotate(report *v1alpha1.FeatureReport, annotation string, is bool) {
	if is {
		metav1.SetMetaDataAnnotation(&report.ObjectMeta, annotation, "true")
	} else {
		delete(report.Annotations, annotation)
	}
}

// errNoNode means that the Node of a node component does not exist yet.
var errNoNode = errors.New("node does not exist yet")

// ownerless returns true while the Node of a node component is to become the owner of the
// report. The server sets it if the Node exists. A process that starts before its Node
// exists has to set it itself.
func (r *Reporter) ownerless() bool {
	return r.config.NodeName != "" && r.stored != nil && len(r.stored.OwnerReferences) == 0 && r.config.Clock.Since(r.begun) < nodeTimeout
}

// node returns the owner reference of the Node, with which the report is deleted. It is
// nil for processes without a node and for nodes that do not appear in time.
func (r *Reporter) node(ctx context.Context) (*metav1.OwnerReference, error) {
	if r.config.NodeName == "" {
		return nil, nil
	}
	// Served from the server's cache: thousands of processes may start at once. A cache
	// without the Node is read again later.
	node, err := r.config.Clients.Kube.CoreV1().Nodes().Get(ctx, r.config.NodeName, metav1.GetOptions{ResourceVersion: "0"})
	switch {
	case err == nil:
		return &metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}, nil
	case apierrors.IsNotFound(err):
		if r.config.Clock.Since(r.begun) < nodeTimeout {
			return nil, errNoNode
		}
		return nil, nil
	case apierrors.IsForbidden(err):
		return nil, nil
	default:
		return nil, fmt.Errorf("reading node %s: %w", r.config.NodeName, err)
	}
}

// Remove deletes the report and the reporter's own Lease, in bounded time. Call it when the
// process ends in order, after Run has returned. A report that another process of this
// instance has taken over stays.
func (r *Reporter) Remove(ctx context.Context) error {
	if !r.attempted {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	err := r.remove(ctx)
	for failures := 1; apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err); failures++ {
		// A report that stays looks like the report of a crashed process.
		timer := r.config.Clock.NewTimer(backoff.Delay(failures, removeBackoff, removeTimeout))
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("removing feature report %s/%s: %w", r.config.Namespace, r.name, err)
		case <-timer.C():
		}
		err = r.remove(ctx)
	}
	if err != nil {
		return fmt.Errorf("removing feature report %s/%s: %w", r.config.Namespace, r.name, err)
	}
	return nil
}

func (r *Reporter) remove(ctx context.Context) error {
	client := r.reports()
	for {
		current, err := client.Get(ctx, r.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return r.removeLease(ctx)
		}
		if err != nil {
			return err
		}
		if current.Spec.Process != r.process {
			return nil
		}
		// The Lease comes first: without a report it would stay for an hour.
		if err := r.removeLease(ctx); err != nil {
			return err
		}
		err = client.Delete(ctx, r.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &current.UID, ResourceVersion: &current.ResourceVersion}})
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}

// removeLease deletes the Lease if this process renewed it last.
func (r *Reporter) removeLease(ctx context.Context) error {
	if r.config.LeaseNamespace == "" {
		return nil
	}
	client := r.config.Clients.Kube.CoordinationV1().Leases(r.config.LeaseNamespace)
	lease, err := client.Get(ctx, r.name, metav1.GetOptions{})
	if err == nil && ptr.Deref(lease.Spec.HolderIdentity, "") == r.process {
		err = client.Delete(ctx, r.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion}})
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return err
	}
	return nil
}
