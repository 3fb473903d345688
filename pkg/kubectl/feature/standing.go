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
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
	"k8s.io/kubernetes-features/pkg/kubectl/observe"
)

// standing is which processes of a cluster have a gate on, as far as that is known.
type standing struct {
	// known is true if a kube-apiserver has the gate.
	known bool
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
	case !s.known:
		return "no kube-apiserver has the gate"
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
	s := standing{known: true}
	if status.State != v1alpha1.StateOff {
		s.on = append(s.on, fmt.Sprintf("the cluster (state %s)", cmp.Or(string(status.State), "unknown")))
	}
	if c := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionUsesMatch); c != nil && c.Status != metav1.ConditionTrue {
		s.unseen = append(s.unseen, "users: "+c.Message)
	}
	return s
}

// observedStanding is the one of a gate in an observed cluster.
func observedStanding(c *observe.Cluster, h *history.History, gate string, assumed []string) standing {
	var s standing
	minor := ""
	for i := range c.Processes {
		p := &c.Processes[i]
		v, ok := p.Gates[gate]
		if p.Component == observe.APIServer {
			s.known, minor = s.known || ok, cmp.Or(minor, p.Minor())
		}
		if v.Enabled {
			s.on = append(s.on, p.Component+"/"+p.Instance)
		}
	}
	for _, setting := range c.Settings {
		if setting.Gate == gate && setting.Enabled {
			s.on = append(s.on, fmt.Sprintf("nodes that join (%s of %s)", setting.Source, setting.Component))
		}
	}
	for _, g := range c.Gaps {
		if hasGate(h, gate, g.Component, minor) && !slices.Contains(assumed, g.Component) {
			s.unseen = append(s.unseen, gapText(g))
		}
	}
	if c.Asked < c.Nodes && hasGate(h, gate, observe.Kubelet, minor) {
		s.unseen = append(s.unseen, fmt.Sprintf("kubelet: %d of %d nodes were asked", c.Asked, c.Nodes))
	}
	return s
}

// hasGate is false for a component of which the history says that its version, or the one of
// servers, does not have a gate.
func hasGate(h *history.History, gate, component, minor string) bool {
	if !slices.Contains(h.Versions(), minor) {
		return true
	}
	g, ok := h.Gate(gate)
	if !ok {
		return true
	}
	_, has := g.At(component, minor)
	return has
}
