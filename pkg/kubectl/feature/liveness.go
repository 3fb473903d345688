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
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/utils/ptr"
)

// signs are the signs of life of processes: the Leases and Nodes that their reports
// name. Each list is read once, when a report first asks for it. They are for one
// goroutine.
type signs struct {
	core kubernetes.Interface
	// leases has those that were read, by namespace, nil without permission.
	leases map[string]*leaseList
	// nodesRead is true once they were requested; nodes is nil without permission.
	nodesRead bool
	nodes     map[string]*corev1.Node
}

// leaseList is the Leases of a namespace, as they were at a time.
type leaseList struct {
	now    time.Time
	byName map[string]*coordinationv1.Lease
}

func newSigns(core kubernetes.Interface) *signs {
	return &signs{core: core, leases: map[string]*leaseList{}}
}

// life is the known liveness of a process.
type life struct {
	// alive is nil if unknown; the report is then used as it is.
	alive *bool
	// seen is the last sign of life of a process that is not alive, nil if that
	// is not known.
	seen *metav1.Time
}

func (l life) unreachable() bool { return l.alive != nil && !*l.alive }

// text is printed.
func (l life) text() string {
	switch {
	case l.alive == nil:
		return "unknown"
	case *l.alive:
		return "yes"
	case l.seen == nil:
		return "unreachable"
	default:
		return "unreachable for " + ago(l.seen.Time)
	}
}

// read reads the Leases and Nodes of reports, as far as they were not read before.
// Missing permissions are returned as one sentence each and are no error: reports
// are useful without.
func (s *signs) read(ctx context.Context, reports []*v1alpha1.FeatureReport) (missing []string, err error) {
	var namespaces []string
	onNodes := false
	for _, report := range reports {
		lease := report.Spec.Liveness.Lease
		switch {
		case lease == nil:
			onNodes = onNodes || report.Spec.NodeName != ""
		case !slices.Contains(namespaces, lease.Namespace):
			namespaces = append(namespaces, lease.Namespace)
		}
	}
	slices.Sort(namespaces)
	for _, namespace := range namespaces {
		if err := s.readLeases(ctx, namespace); err != nil {
			return nil, err
		}
		if s.leases[namespace] == nil {
			missing = append(missing, fmt.Sprintf("you may not list Leases in %s, which show whether processes are alive", namespace))
		}
	}
	if !onNodes {
		return missing, nil
	}
	if err := s.readNodes(ctx); err != nil {
		return nil, err
	}
	if s.nodes == nil {
		missing = append(missing, "you may not list Nodes, which show whether their processes are alive")
	}
	return missing, nil
}

func (s *signs) readLeases(ctx context.Context, namespace string) error {
	if _, read := s.leases[namespace]; read {
		return nil
	}
	all := &leaseList{now: time.Now(), byName: map[string]*coordinationv1.Lease{}}
	var leases []coordinationv1.Lease
	err := each(ctx, func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return s.core.CoordinationV1().Leases(namespace).List(ctx, opts)
	}, &leases)
	if apierrors.IsForbidden(err) {
		s.leases[namespace] = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing Leases in %s, which show whether processes are alive: %w", namespace, err)
	}
	for i := range leases {
		all.byName[leases[i].Name] = &leases[i]
	}
	s.leases[namespace] = all
	return nil
}

func (s *signs) readNodes(ctx context.Context) error {
	if s.nodesRead {
		return nil
	}
	var nodes []corev1.Node
	err := each(ctx, func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return s.core.CoreV1().Nodes().List(ctx, opts)
	}, &nodes)
	if apierrors.IsForbidden(err) {
		s.nodesRead = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing Nodes, which show whether their processes are alive: %w", err)
	}
	s.nodes, s.nodesRead = map[string]*corev1.Node{}, true
	for i := range nodes {
		s.nodes[nodes[i].Name] = &nodes[i]
	}
	return nil
}

// of evaluates a process as the server flow does (package lifecycle/tracker). The
// flow watches, and so does not depend on other clocks. This compares the Lease's
// renewTime with the clock of this machine when it was read.
func (s *signs) of(spec *v1alpha1.FeatureReportSpec) life {
	if lease := spec.Liveness.Lease; lease != nil {
		all := s.leases[lease.Namespace]
		if all == nil {
			return life{}
		}
		return ofLease(all.byName[lease.Name], all.now)
	}
	if spec.NodeName == "" || s.nodes == nil {
		return life{}
	}
	return ofNode(s.nodes[spec.NodeName])
}

// ofLease returns the liveness by a Lease, nil for a deleted one.
func ofLease(lease *coordinationv1.Lease, now time.Time) life {
	if lease == nil || lease.Spec.RenewTime == nil {
		return life{alive: ptr.To(false)}
	}
	renewed := lease.Spec.RenewTime.Time
	if now.Before(renewed.Add(tracker.LeaseTimeout(lease.Spec.LeaseDurationSeconds))) {
		return life{alive: ptr.To(true)}
	}
	return life{alive: ptr.To(false), seen: ptr.To(metav1.NewTime(renewed))}
}

// ofNode returns the liveness by a Node, nil for a deleted one.
func ofNode(node *corev1.Node) life {
	if node == nil {
		return life{alive: ptr.To(false)}
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			if c.Status == corev1.ConditionTrue {
				return life{alive: ptr.To(true)}
			}
			return life{alive: ptr.To(false), seen: ptr.To(c.LastTransitionTime)}
		}
	}
	return life{alive: ptr.To(false)}
}
