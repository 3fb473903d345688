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
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// objectsDocument is the output of leftovers and of list --in-use, as json and yaml.
type objectsDocument struct {
	metav1.TypeMeta `json:",inline"`
	// Features are sorted by name.
	Features []featureObjects `json:"features"`
}

// featureObjects is what the objects of a cluster have of one gate.
type featureObjects struct {
	Name string `json:"name"`
	// InUse is true if the gate is on, so that nothing of it is left over.
	InUse bool `json:"inUse"`
	// Stateless has the reason why the gate stores nothing.
	Stateless string `json:"stateless,omitempty"`
	// NotExamined has the reason why nothing is known of its objects.
	NotExamined string `json:"notExamined,omitempty"`
	// Unobserved are processes that may have the gate on, with what is missing.
	Unobserved []string `json:"unobserved,omitempty"`
	// Objects are those that have something of it. For a gate that is on, each object counts
	// once, and otherwise for each task that finds something in it.
	Objects []foundObjects `json:"objects"`
	// Unseen are the reasons why others may have something.
	Unseen []unseenObjects `json:"unseen,omitempty"`
}

// foundObjects are those in which one task found something.
type foundObjects struct {
	v1alpha1.ResourceLeftovers `json:",inline"`
	// Task is the task of the gate that handles them, if one does.
	Task string `json:"task,omitempty"`
	// RemovedBy says what removes it.
	RemovedBy string `json:"removedBy,omitempty"`
	// Retained has the reason why it stays.
	Retained string `json:"retained,omitempty"`
}

// unseenObjects could not be examined.
type unseenObjects struct {
	Resources []string `json:"resources"`
	Field     string   `json:"field,omitempty"`
	Reason    string   `json:"reason"`
	Next      string   `json:"next,omitempty"`
}

// newObjectsDocument is the document of what was found. Server is true for a cluster whose
// servers have the API.
func newObjectsDocument(results []gateObjects, inUse, server bool) *objectsDocument {
	doc := &objectsDocument{TypeMeta: metav1.TypeMeta{APIVersion: "objects.features.k8s.io/v1alpha1", Kind: "FeatureObjects"}, Features: []featureObjects{}}
	for i := range results {
		g := &results[i]
		f := featureObjects{Name: string(g.entry.Name), InUse: inUse, Stateless: g.entry.Stateless, Unobserved: g.unobserved, Objects: []foundObjects{}}
		for _, l := range g.found {
			f.Objects = append(f.Objects, foundObjects{ResourceLeftovers: l})
		}
		for _, t := range g.tasks {
			for _, l := range t.found {
				f.Objects = append(f.Objects, foundObjects{ResourceLeftovers: l, Task: t.task.Name, RemovedBy: removedBy(f.Name, t.task, server)})
			}
		}
		for _, r := range g.retained {
			by := "nothing; it stays"
			if r.with != "" {
				by = cleanCommand(r.with, server)
			}
			f.Objects = append(f.Objects, foundObjects{ResourceLeftovers: r.found, RemovedBy: by, Retained: r.why})
		}
		for _, u := range g.unseen {
			f.Unseen = append(f.Unseen, unseenObjects{Resources: names(u.resources), Field: u.path, Reason: u.err.Error(), Next: gaps{u}.next()})
		}
		doc.Features = append(doc.Features, f)
	}
	return doc
}

// removedBy is what removes what a task finds.
func removedBy(gate string, t task.Task, server bool) string {
	switch {
	case t.Waits:
		return "their owners, who delete or replace them"
	case server || t.Try != nil:
		return cleanCommand(gate, server)
	default:
		return "servers with this system"
	}
}

// cleanCommand is the command that removes what a gate left.
func cleanCommand(gate string, server bool) string {
	if server {
		return "kubectl feature clean " + gate
	}
	return "kubectl feature clean " + gate + " --client"
}

// add adds gates of which nothing is known, and sorts all.
func (d *objectsDocument) add(gates []notExamined, inUse bool) {
	for _, g := range gates {
		d.Features = append(d.Features, featureObjects{Name: g.name, InUse: inUse, NotExamined: g.why, Objects: []foundObjects{}})
	}
	slices.SortStableFunc(d.Features, func(a, b featureObjects) int { return cmp.Compare(a.Name, b.Name) })
}

// notExamined is a gate of whose objects nothing is known.
type notExamined struct{ name, why string }

// printUnseen writes what could not be examined, each once.
func printUnseen(w io.Writer, results []gateObjects) error {
	type line struct{ what, next string }
	var lines []line
	var notServed gaps
	gates := map[line][]string{}
	for i := range results {
		for _, u := range results[i].unseen {
			if errors.Is(u.err, task.ErrNotServed) {
				notServed = append(notServed, u)
				continue
			}
			l := line{gaps{u}.String(), gaps{u}.next()}
			if !slices.Contains(lines, l) {
				lines = append(lines, l)
			}
			gates[l] = append(gates[l], string(results[i].entry.Name))
		}
	}
	for _, l := range lines {
		text := fmt.Sprintf("Not examined (%s): %s", shortNames(slices.Compact(gates[l])), strings.TrimPrefix(l.what, "looking for "))
		if l.next != "" {
			text += "; " + l.next
		}
		if _, err := fmt.Fprintln(w, printable(text)); err != nil {
			return err
		}
	}
	if len(notServed) == 0 {
		return nil
	}
	// These are APIs of gates that are off, so nearly every cluster has some.
	_, err := fmt.Fprintf(w, "Not examined, since the API does not serve it: %s; serve what is to be examined (--runtime-config of kube-apiserver), and repeat the command\n", printable(unique(notServed.resources())))
	return err
}

// resources are those of all gaps.
func (g gaps) resources() []string {
	var all []string
	for _, gap := range g {
		all = append(all, names(gap.resources)...)
	}
	return all
}
