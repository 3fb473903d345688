//go:build linux

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

package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Nodes is how many nodes the demonstration needs: one that has the field, and one
// that never does.
const Nodes = 2

// owners ask that resizes preempt no Pod on a node.
var owners = []string{"demo/autoscaler", "demo/team-a"}

// untouched returns the name of the node that never has the field: the last one.
func untouched(nodes map[string]*corev1.Node) string {
	return slices.Max(slices.Collect(maps.Keys(nodes)))
}

// protect sets the field of all nodes but one. Each has another value.
func (s *story) protect(ctx context.Context) error {
	nodes, err := s.settled(ctx)
	if err != nil {
		return err
	}
	if len(nodes) < Nodes {
		return fmt.Errorf("the cluster has %d nodes, and the demonstration needs %d: start it with --nodes=%d", len(nodes), Nodes, Nodes)
	}
	for i, name := range slices.Sorted(maps.Keys(nodes)) {
		if name == untouched(nodes) {
			continue
		}
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{
			"podPreemptionPolicy": corev1.NodePodPreemptionPolicy{DisableResizePreemption: owners[:1+i%len(owners)]},
		}})
		if err != nil {
			return err
		}
		if _, err := s.kube.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("setting %s of Node %s: %w", field, name, err)
		}
	}
	return nil
}

// settled waits until all nodes are Ready and have no taint, which a restart of their
// kubelets may bring for a moment, and returns them.
func (s *story) settled(ctx context.Context) (map[string]*corev1.Node, error) {
	var nodes map[string]*corev1.Node
	missing := "there are none"
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		list, err := s.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		nodes = map[string]*corev1.Node{}
		for i := range list.Items {
			node := &list.Items[i]
			if !ready(node) || len(node.Spec.Taints) > 0 {
				missing = fmt.Sprintf("Node %s is not Ready, or has taints: %v", node.Name, node.Spec.Taints)
				return false, nil
			}
			nodes[node.Name] = node
		}
		return len(nodes) > 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for the nodes: %w (%s)", err, missing)
	}
	return nodes, nil
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// policy returns the field of a node as text, "" if it does not have it.
func policy(node *corev1.Node) string {
	if node.Spec.PodPreemptionPolicy == nil {
		return ""
	}
	return strings.Join(node.Spec.PodPreemptionPolicy.DisableResizePreemption, ", ")
}

// describeUse prints the stored fields of the nodes, and checks them.
func (s *story) describeUse(nodes map[string]*corev1.Node) error {
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		value := policy(nodes[name])
		switch {
		case name == untouched(nodes) && value != "":
			return fmt.Errorf("node %s has %s although nothing set it", name, field)
		case name != untouched(nodes) && value == "":
			return fmt.Errorf("node %s does not have %s; is the gate on?", name, field)
		}
		s.say("%-7s disableResizePreemption %s", name, orNone(value))
	}
	return nil
}

func orNone(text string) string {
	if text == "" {
		return "(not set)"
	}
	return text
}

// compare checks that the field is gone and that nothing else changed.
func (s *story) compare(before, after map[string]*corev1.Node) error {
	if diff := cmp.Diff(keys(before), keys(after)); diff != "" {
		return fmt.Errorf("nodes came or went (-before +after):\n%s", diff)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was, is := before[name], after[name]
		if value := policy(is); value != "" || is.Spec.PodPreemptionPolicy != nil {
			return fmt.Errorf("node %s still has %s: %s", name, field, value)
		}
		if diff := cmp.Diff(rest(was), rest(is)); diff != "" {
			return fmt.Errorf("node %s changed elsewhere (-before +after):\n%s", name, diff)
		}
		if name == untouched(before) {
			if added := managers(is).Difference(managers(was)); len(added) > 0 {
				return fmt.Errorf("node %s never had the field and was written by %s", name, strings.Join(added.UnsortedList(), " "))
			}
			s.say("%-7s never had the field, and is as it was", name)
			continue
		}
		s.say("%-7s disableResizePreemption %s is gone, all else is as it was", name, policy(was))
	}
	return nil
}

// rest is what has to stay as it was: everything but the field and what follows
// from any write. The kubelets' status is theirs.
func rest(node *corev1.Node) *corev1.Node {
	node = node.DeepCopy()
	node.Spec.PodPreemptionPolicy = nil
	node.ResourceVersion, node.Generation, node.ManagedFields = "", 0, nil
	node.Status = corev1.NodeStatus{}
	return node
}

// managers returns the names of those who wrote the node, its status aside.
func managers(node *corev1.Node) sets.Set[string] {
	names := sets.New[string]()
	for _, entry := range node.ManagedFields {
		if entry.Subresource == "" {
			names.Insert(entry.Manager)
		}
	}
	return names
}

func keys(nodes map[string]*corev1.Node) sets.Set[string] { return sets.KeySet(nodes) }
