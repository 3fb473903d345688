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

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/kubernetes-features/pkg/kubectl/observe"
)

// pageObserved is what the page of a cluster without the API has besides its processes.
type pageObserved struct {
	// Text is what is shown, and what is not known of it.
	Text string
	// Servers counts the kube-apiservers that were observed.
	Servers int64
	// Nodes is the number of Nodes, and Asked how many of them were asked.
	Nodes, Asked int64
	// Gaps are what was not observed, why, and what is missing.
	Gaps []string
}

// pageProcesses are processes of one component and version that have the same value.
type pageProcesses struct {
	Component, Version, Value, Set string
	// Count is their number, 0 for nodes that join.
	Count   int64
	Differs bool
	// From says where the value was observed, and Names has examples.
	From, Names string
}

// pageStates are the states in their order on the page, also those of an observed cluster.
var pageStates = append(slices.Clone(allStates), unknownState)

// pageState is the state of a feature. Where there is none to observe, the value of
// kube-apiservers takes its place.
func pageState(f *v1alpha1.Feature) v1alpha1.FeatureState {
	if !isObserved(f) {
		return f.Status.State
	}
	switch value, known := expectedValue(f); {
	case !known:
		return unknownState
	case value:
		return v1alpha1.StateOn
	}
	return v1alpha1.StateOff
}

// observedKinds are the issues that can be observed.
func observedKinds() []troubleKind {
	var kinds []troubleKind
	for _, kind := range troubleKinds {
		if kind.Key == "differing" {
			kind.Title, kind.Meaning = "Processes differ", "a process has another value than kube-apiserver, or kube-apiservers disagree"
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// pageObservedOf prepares what the page says of a whole cluster.
func pageObservedOf(c *observe.Cluster) *pageObserved {
	o := &pageObserved{Text: observedText(c), Nodes: int64(c.Nodes), Asked: int64(c.Asked), Gaps: gapTexts(c)}
	for _, p := range c.Processes {
		if p.Component == observe.APIServer {
			o.Servers++
		}
	}
	return o
}

// observe adds which processes have a feature, and where that was observed. Conditions are
// left out: those of an observed feature only repeat what its processes show.
func (f *pageFeature) observe(c *observe.Cluster, feature *v1alpha1.Feature, components []pageComponent) {
	f.From, f.Control, f.StoredVersion, f.Conditions = c.From(feature.Name), controlOf(feature), unknownState, nil
	if feature.Status.Configured == nil {
		f.Source = unknownState
	}
	if feature.Status.Default == nil {
		f.Default = unknownState
	}
	all := observedProcesses(c, feature)
	f.Processes, f.Differing = processGroups(all), differingProcesses(all)
	for i, component := range components {
		var titles []string
		for _, p := range f.Processes {
			if p.Component == component.Name {
				titles = append(titles, p.text())
			}
		}
		f.Cells[i].Title = strings.Join(titles, "\n")
	}
	for _, j := range joiningOf(c, feature) {
		f.Processes = append(f.Processes, pageProcesses{
			Component: j.Component, Version: "–", Value: valueOf(&j.Enabled), Set: "explicitly", Differs: j.Differs, From: j.Observed, Names: nodesThatJoin,
		})
	}
}

// differingProcesses names the first of those that differ.
func differingProcesses(all []process) []string {
	differing := slices.DeleteFunc(slices.Clone(all), func(p process) bool { return !p.Differs })
	var names []string
	for _, p := range differing[:min(maxDiffering, len(differing))] {
		name := strings.TrimSpace(p.Component + "/" + p.Instance + " " + p.Version)
		names = append(names, fmt.Sprintf("%s: %s, set: %s%s", name, transition.OnOff(p.Enabled), p.set(), observedBy(p.Observed)))
	}
	if more := len(differing) - maxDiffering; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return names
}

// processGroups are processes of one component and version with the same value, in their
// order.
func processGroups(all []process) []pageProcesses {
	var groups []pageProcesses
	names, sources := map[int][]string{}, map[int][]string{}
	for _, p := range all {
		value, set, version := valueOf(&p.Enabled), p.set(), cmp.Or(p.Version, unknownState)
		at := slices.IndexFunc(groups, func(g pageProcesses) bool {
			return g.Component == p.Component && g.Version == version && g.Value == value && g.Set == set
		})
		if at < 0 {
			at = len(groups)
			groups = append(groups, pageProcesses{Component: p.Component, Version: version, Value: value, Set: set, Differs: p.Differs})
		}
		groups[at].Count++
		names[at] = append(names[at], p.Instance)
		if p.Observed != "" && !slices.Contains(sources[at], p.Observed) {
			sources[at] = append(sources[at], p.Observed)
		}
	}
	for i := range groups {
		groups[i].Names, groups[i].From = shortNames(names[i]), shortNames(sources[i])
	}
	return groups
}

// text is a line about processes.
func (p pageProcesses) text() string {
	who := p.Component
	if p.Version != unknownState {
		who += " " + p.Version
	}
	return fmt.Sprintf("%s of %s: %s, set: %s%s (%s)", number(p.Count), who, p.Value, p.Set, observedBy(p.From), p.Names)
}

// observedSection adds what was observed of a cluster without the API, and what was not.
func observedSection(p *page) part {
	if p.Observed == nil {
		return group()
	}
	return group(element("section", attribute("aria-labelledby", "observed"), text("\n"),
		element("h2", attribute("id", "observed"), text("What was observed")), text("\n"),
		paragraph(p.Observed.Text),
		when(len(p.Observed.Gaps) > 0, element("ul", class("cards"), parts(p.Observed.Gaps, func(gap string) part {
			return group(text("\n"), element("li", class("card moving"), dim("Not observed:"), text(" "+gap)))
		}), text("\n")), text("\n"))), text("\n"))
}

// observedTroubles adds which processes differ. What only servers with the API find is not
// known, which is another thing than that there is none.
func observedTroubles(p *page) part {
	differ := parts(p.Troubles, troubleGroup)
	switch {
	case p.Observed.Servers == 0:
		differ = notKnownOf("which processes differ: no kube-apiserver was observed, whose values they are compared with.")
	case len(p.Troubles) == 0:
		differ = well("No process that was observed has another value than kube-apiserver.")
	}
	return group(differ, notKnownOf("whether a feature is blocked, dangles, or is paused."))
}

// notKnownOf adds a sentence about what cannot be observed.
func notKnownOf(what string) part {
	return group(element("p", class("dim"), text("Not known: "+what)), text("\n"))
}

// observedFacts adds where the page's values come from.
func observedFacts(p *page) part {
	observed := number(p.Reports) + " processes"
	if p.Reports == 1 {
		observed = "1 process"
	}
	if len(p.Reporters) > 0 {
		observed += ": " + strings.Join(p.Reporters, ", ")
	}
	return group(
		fact("API", text("none")),
		fact("Observed of", text(observed)),
		when(p.Observed.Asked < p.Observed.Nodes, fact("Nodes asked", text(number(p.Observed.Asked)+" of "+number(p.Observed.Nodes)))),
	)
}

// observedDetails adds the value of a feature, and the processes that have it.
func observedDetails(f pageFeature) part {
	heads := []string{"Component", "Version", "Value", "Processes", "Set", "Observed by", "For example"}
	return dialog(f,
		element("dl", observedFeatureFacts(f)), text("\n"),
		when(len(f.Processes) > 0, smallTable("Processes", heads, parts(f.Processes, processesRow))))
}

func observedFeatureFacts(f pageFeature) part {
	stage := f.Stage + ", default: " + f.Default
	if f.Locked {
		stage += ", locked"
	}
	return group(
		definition("Value of kube-apiserver", f.Symbol+" "+f.State), definition("Configured", f.Configured), definition("Observed by", f.From), definition("State", unknownState),
		definition("Stage", stage), definition("Control", f.Control), definition("Namespace", f.Namespace), definition("Stored version", f.StoredVersion))
}

// processesRow adds a line of processes with the same value.
func processesRow(p pageProcesses) part {
	value, processes := p.Value, "–"
	if p.Differs {
		value = "≠ " + p.Value + ", differs"
	}
	if p.Count > 0 {
		processes = number(p.Count)
	}
	return element("tr", when(p.Differs, class("differ")),
		cell(p.Component), cell(p.Version), cell(value), cell(processes), cell(p.Set), cell(p.From), cell(p.Names))
}
