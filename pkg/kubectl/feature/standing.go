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
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
	"k8s.io/kubernetes-features/pkg/kubectl/observe"
)

// standing is which processes of a cluster have a gate on, as far as that is known.
type standing struct {
	// servers is true if a kube-apiserver was observed, and known if one has the gate.
	servers, known bool
	// on are those that have it on, and nodes that would have it on once they join.
	on []string
	// unseen are those of which it is not known, each with what is missing.
	unseen []string
}

// off is true if the gate is off wherever it is.
func (s standing) off() bool { return s.known && len(s.on)+len(s.unseen) == 0 }

// problem is why the gate does not count as off, "" if it does.
func (s standing) problem() string {
	switch {
	case !s.servers:
		return "its value is not known: no kube-apiserver was observed"
	case !s.known:
		return "no kube-apiserver that was observed has the gate"
	case len(s.on) > 0:
		return "it is on in " + shortNames(s.on)
	case len(s.unseen) > 0:
		return "whether it is off is not known of " + strings.Join(s.unseen, "; ")
	}
	return ""
}

// shortNames joins the first few of some names.
func shortNames(names []string) string {
	if n := len(names); n > maxInstances {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxInstances], ", "), n-maxInstances)
	}
	return strings.Join(names, ", ")
}

// standingOf is that of a feature. assumed are components that the user knows to have gates
// off that they do not show.
func standingOf(client versioned.Interface, f *v1alpha1.Feature, assumed []string) standing {
	if c := observedOf(client); c != nil {
		return observedStanding(c, history.Load(), f.Name, assumed)
	}
	status := &f.Status
	s := standing{servers: true, known: true}
	if status.State != v1alpha1.StateOff {
		s.on = append(s.on, fmt.Sprintf("the cluster (state %s)", cmp.Or(string(status.State), "unknown")))
	}
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionUsesMatch); c != nil && c.Status != metav1.ConditionTrue {
		s.unseen = append(s.unseen, "users: "+c.Message)
	}
	return s
}

// observedStanding is the one of a gate in an observed cluster.
func observedStanding(c *observe.Cluster, h *history.History, gate string, assumed []string) standing {
	var s standing
	var minors []string
	for i := range c.Processes {
		p := &c.Processes[i]
		v, ok := p.Gates[gate]
		if p.Component == observe.APIServer {
			s.servers, s.known = true, s.known || ok
			minors = append(minors, p.Minor())
		}
		if v.Enabled {
			s.on = append(s.on, p.Component+"/"+p.Instance)
		}
	}
	for _, component := range slices.Sorted(maps.Keys(c.Joins)) {
		for _, minor := range slices.Compact(slices.Sorted(slices.Values(minors))) {
			if v, known := c.JoinsWith(h, component, gate, minor); known && v.Enabled {
				s.on = append(s.on, fmt.Sprintf("nodes that join (%s: %s)", component, v.Source))
			}
		}
	}
	for _, g := range c.Gaps {
		if hasGate(h, gate, g.Component, minors) && !slices.Contains(assumed, g.Component) {
			s.unseen = append(s.unseen, gapText(g))
		}
	}
	if c.Asked < c.Nodes && hasGate(h, gate, observe.Kubelet, minors) {
		s.unseen = append(s.unseen, fmt.Sprintf("kubelet: %d of %d nodes were asked", c.Asked, c.Nodes))
	}
	return s
}

// hasGate is false for a component of which the history says that it does not have a gate in
// any of the minor versions that servers have.
func hasGate(h *history.History, gate, component string, minors []string) bool {
	g, ok := h.Gate(gate)
	if !ok || len(minors) == 0 {
		return true
	}
	return slices.ContainsFunc(minors, func(minor string) bool {
		_, has := g.At(component, minor)
		return has || !slices.Contains(h.Versions(), minor)
	})
}
