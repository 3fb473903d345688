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
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// observe builds the report as it should be now.
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

// check looks whether the report is still there and writes it again if not.
func (r *Reporter) check(ctx context.Context) error {
	// Served from the server's cache: thousands of processes ask this.
	current, err := r.config.Features.FeaturesV1alpha1().FeatureReports(r.config.Namespace).Get(ctx, r.name, metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		r.stored = nil
		// As the first time: the server knows the Node, or later checks look for it.
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
	// Another process of this instance, one that is being replaced say, may have
	// written last.
	current.Spec.Username, current.Spec.Process = r.written.Username, r.written.Process
	if len(current.OwnerReferences) > 0 && r.stored != nil && r.stored.UID == current.UID {
		r.stored.OwnerReferences = current.OwnerReferences
	}
	if owner == nil && equality.Semantic.DeepEqual(current.Spec, *r.written) {
		return nil
	}
	return r.write(ctx, r.written, owner)
}

// End says in the report that the process is about to end: its last Lease will
// be its end and not a crash. It is for processes that cannot take their report
// away when they have ended, as a server that serves the API. Run goes on. End
// returns once the report was written, or soon.
func (r *Reporter) End(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	if r.ending.CompareAndSwap(false, true) {
		r.ends <- struct{}{}
	}
	select {
	case <-r.ended:
	case <-ctx.Done():
	}
}

// FlowEnded says in the report that this process runs the server flow of its namespace no
// more, so that other servers look after what it did. It is for servers that go on with
// other work after that, and is not taken back: another process of the instance begins
// anew. Call it when the flow has ended. It does not wait: Run writes it soon, again and
// again if the server does not take it.
func (r *Reporter) FlowEnded() {
	r.flowEnded.Store(true)
	select {
	case r.wakes <- struct{}{}:
	default:
	}
}

// Retry has a server asked again at once that has refused reports: something has changed.
// It does not wait.
func (r *Reporter) Retry() {
	r.retries.Store(true)
	select {
	case r.wakes <- struct{}{}:
	default:
	}
}

// flowEndUnknown is true while a report is there that does not say that the flow has ended.
func (r *Reporter) flowEndUnknown() bool { return r.flowEnded.Load() && !r.flowEndWritten }

func (r *Reporter) markEnding(ctx context.Context) {
	defer close(r.ended)
	if r.written == nil {
		return
	}
	if err := r.write(ctx, r.written, nil); err != nil {
		klog.FromContext(ctx).Info("The feature report does not say that the process ends", "featureReport", klog.KRef(r.config.Namespace, r.name), "err", err)
	}
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
		flowEnded := r.flowEnded.Load()
		annotate(report, v1alpha1.AnnotationTerminating, r.ending.Load())
		annotate(report, v1alpha1.AnnotationControllerStopped, flowEnded)
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
			r.stored, r.flowEndWritten = report, flowEnded
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

// annotate says something of the process that is true, or takes back what an earlier
// process of the instance has said.
func annotate(report *v1alpha1.FeatureReport, annotation string, is bool) {
	if is {
		metav1.SetMetaDataAnnotation(&report.ObjectMeta, annotation, "true")
	} else {
		delete(report.Annotations, annotation)
	}
}

// errNoNode: the Node of a node component does not exist yet.
var errNoNode = errors.New("node does not exist yet")

// ownerless is true while the Node of a node component is to become the owner of
// the report. The server makes it that when it knows the Node; a process that starts
// before its Node is there has to see to it.
func (r *Reporter) ownerless() bool {
	return r.config.NodeName != "" && r.stored != nil && len(r.stored.OwnerReferences) == 0 && r.config.Clock.Since(r.begun) < nodePatience
}

// node returns the reference that makes the report go with its Node. It is nil
// for processes without a node and for nodes that do not appear.
func (r *Reporter) node(ctx context.Context) (*metav1.OwnerReference, error) {
	if r.config.NodeName == "" {
		return nil, nil
	}
	// From the server's cache: thousands of processes may start at once, and one that
	// does not know the Node yet is asked again.
	node, err := r.config.Kube.CoreV1().Nodes().Get(ctx, r.config.NodeName, metav1.GetOptions{ResourceVersion: "0"})
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
// Call it when the process ends in order and Run has returned. A report that
// another process of this instance has taken over stays.
func (r *Reporter) Remove(ctx context.Context) error {
	if !r.attempted {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	err := r.remove(ctx)
	for failures := 1; apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err); failures++ {
		// A report that stays looks like that of a process that has crashed.
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
	client := r.config.Features.FeaturesV1alpha1().FeatureReports(r.config.Namespace)
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
		// The Lease first: one that no report names stays for an hour.
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
	client := r.config.Kube.CoordinationV1().Leases(r.config.LeaseNamespace)
	lease, err := client.Get(ctx, r.name, metav1.GetOptions{})
	if err == nil && ptr.Deref(lease.Spec.HolderIdentity, "") == r.process {
		err = client.Delete(ctx, r.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion}})
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return err
	}
	return nil
}
