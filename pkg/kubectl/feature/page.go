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
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// page is the data of the page of "report", in its order.
type page struct {
	// Cluster is the context's name, Version that of kube-apiserver. Namespace is ""
	// for all.
	Cluster, Version, Namespace string
	// Written is the time of writing, in UTC.
	Written time.Time
	// Reports counts those of living and crashed processes; Unread has the reason why
	// they could not be read. Reporters names the processes, Missing those with
	// missing reports.
	Reports            int64
	Unread             string
	Reporters, Missing []string
	// Observed is nil for a cluster with the API. For others the processes counted above
	// were observed.
	Observed *pageObserved

	Tiles []pageTile
	// Troubles are groups in the order of troubleKinds, those with entries only.
	Troubles []pageGroup
	// Moving are features with a transition under way.
	Moving []pageFeature
	Stages []pageStage
	// Changed are features whose configured value is not the default.
	Changed []pageFeature

	// Several is true when features are of more than one namespace.
	Several    bool
	States     []v1alpha1.FeatureState
	Kinds      []troubleKind
	Components []pageComponent
	// Features has all, those first that need attention.
	Features []pageFeature
}

// Columns is the number of the matrix's columns.
func (p page) Columns() int {
	columns := len(p.Components) + 5
	if p.Several {
		columns++
	}
	return columns
}

// pageTile is a number that leads to the features that it counts.
type pageTile struct {
	Symbol, Label string
	// Link is the fragment of the page's address that shows them.
	Link, Class string
	Count       int64
}

// pageStage counts the features of a stage.
type pageStage struct {
	Stage               string
	On, Off, Move, None int64
}

// pageComponent is a column of the matrix.
type pageComponent struct {
	Name    string
	Reports int64
}

// pageFeature is a line of the matrix, and what stands behind it.
type pageFeature struct {
	// ID is that of its details, within the page; Key is the one in addresses.
	ID, Key                              string
	Namespace, Name, Stage, State, Since string
	Symbol                               string
	Value, Configured, Source, Default   string
	Control, StoredVersion               string
	Progress                             string
	Moving, NotDefault, Locked           bool
	// Why is the message of the condition Progressing, Begun the reason for the
	// transition.
	Why, Begun string
	Tasks      []pageTask
	Rollout    string
	Troubles   []troubleKind
	Conditions []metav1.Condition
	Uses       []pageUse
	// Differing has the users of another value.
	Differing []string
	// From says where the values were observed, and Processes which ones; both are empty
	// for a cluster with the API.
	From      string
	Processes []pageProcesses
	// Cells are the users by component, in the order of the page's components.
	Cells []pageCell
}

// Marks are the keys of filters.
func (f pageFeature) Marks() string {
	var marks []string
	for _, t := range f.Troubles {
		marks = append(marks, t.Key)
	}
	if len(marks) > 0 {
		marks = append(marks, "attention")
	}
	if f.Moving {
		marks = append(marks, "moving")
	}
	if f.NotDefault {
		marks = append(marks, "notdefault")
	}
	return strings.Join(marks, " ")
}

// pageTask is a task that is left.
type pageTask struct {
	Name, Message, Tried string
	Done, Total          int64
}

// pageUse is a line of status.uses.
type pageUse struct {
	v1alpha1.FeatureUse
	Value    string
	Examples string
	Differs  bool
}

// pageCell has the values of the instances of one component.
type pageCell struct {
	Title   string
	Differs bool
	Parts   []cellPart
}

// cellPart is recognized by its symbol and text; its class only adds a color.
type cellPart struct {
	Symbol, Text, Class string
}

// pageOf prepares what the page shows.
func pageOf(features []v1alpha1.Feature, all reported) page {
	p := page{Written: time.Now().UTC(), Unread: all.unread, Missing: (&found{features: features}).missing(), Kinds: troubleKinds}
	byComponent := p.countReports(all.reports)
	if all.observed != nil {
		p.Observed, p.Kinds = pageObservedOf(all.observed), observedKinds()
	}
	p.Components = componentsOf(features, byComponent)
	for i := range features {
		p.Several = p.Several || features[i].Namespace != features[0].Namespace
		if state := pageState(&features[i]); state != "" && !slices.Contains(p.States, state) {
			p.States = append(p.States, state)
		}
		f := pageFeatureOf(&features[i], p.Kinds, p.Components)
		if all.observed != nil {
			f.observe(all.observed, &features[i], p.Components)
		}
		f.ID = fmt.Sprintf("f%d", i)
		p.Features = append(p.Features, f)
		if f.Moving {
			p.Moving = append(p.Moving, f)
		}
		if f.NotDefault {
			p.Changed = append(p.Changed, f)
		}
	}
	slices.SortFunc(p.States, func(a, b v1alpha1.FeatureState) int {
		return cmp.Compare(slices.Index(pageStates, a), slices.Index(pageStates, b))
	})
	p.Troubles = groupsOf(features, p.Features, p.Kinds)
	p.Stages = stagesOf(features)
	p.Tiles = p.tiles()
	slices.SortStableFunc(p.Features, func(a, b pageFeature) int { return cmp.Compare(a.urgency(), b.urgency()) })
	return p
}

// countReports counts processes by component, and names their versions.
func (p *page) countReports(reports []v1alpha1.FeatureReport) map[string]int64 {
	byComponent, byVersion := map[string]int64{}, map[[2]string]int64{}
	for i := range reports {
		if tracker.Terminating(&reports[i]) {
			continue
		}
		spec := &reports[i].Spec
		p.Reports++
		byComponent[spec.Component]++
		byVersion[[2]string{spec.Component, spec.BinaryVersion}]++
	}
	for _, key := range slices.SortedFunc(maps.Keys(byVersion), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		p.Reporters = append(p.Reporters, strings.TrimSpace(number(byVersion[key])+" "+key[0]+" "+key[1]))
	}
	return byComponent
}

// componentsOf returns those that use a feature.
func componentsOf(features []v1alpha1.Feature, reports map[string]int64) []pageComponent {
	names := map[string]bool{}
	for i := range features {
		for _, use := range features[i].Status.Uses {
			names[use.Component] = true
		}
	}
	var components []pageComponent
	for _, name := range slices.Sorted(maps.Keys(names)) {
		components = append(components, pageComponent{Name: name, Reports: reports[name]})
	}
	return components
}

// stagesOf counts features by stage and state.
func stagesOf(features []v1alpha1.Feature) []pageStage {
	var stages []pageStage
	for _, stage := range append(slices.Clone(allStages), "") {
		row := pageStage{Stage: orNone(string(stage))}
		for i := range features {
			switch state := pageState(&features[i]); {
			case features[i].Status.Stage != stage:
			case state == v1alpha1.StateOn:
				row.On++
			case state == v1alpha1.StateOff:
				row.Off++
			case state == "", state == unknownState:
				row.None++
			default:
				row.Move++
			}
		}
		if row.On+row.Off+row.Move+row.None > 0 {
			stages = append(stages, row)
		}
	}
	return stages
}

// tiles returns the numbers at the top, those first that need attention.
func (p *page) tiles() []pageTile {
	marks, states := map[string]int64{}, map[string]int64{}
	for _, f := range p.Features {
		states[f.State]++
		for mark := range strings.FieldsSeq(f.Marks()) {
			marks[mark]++
		}
	}
	tiles := []pageTile{{Label: "features", Link: "only=", Count: int64(len(p.Features))}}
	for _, state := range []v1alpha1.FeatureState{v1alpha1.StateOn, v1alpha1.StateOff} {
		tiles = append(tiles, pageTile{Symbol: symbolOf(state), Label: string(state), Link: "state=" + string(state), Class: transition.OnOff(state == v1alpha1.StateOn), Count: states[string(state)]})
	}
	if p.Observed == nil {
		tiles = append(tiles, pageTile{Symbol: "→", Label: "moving", Link: "only=moving", Class: "moving", Count: marks["moving"]})
	} else {
		tiles = append(tiles, pageTile{Symbol: "?", Label: unknownState, Link: "state=" + url.QueryEscape(unknownState), Class: "plain", Count: states[unknownState]})
	}
	for _, kind := range p.Kinds {
		// Few clusters ever see the last kind.
		if n := marks[kind.Key]; n > 0 || kind.Key != "unclear" {
			tiles = append(tiles, pageTile{Symbol: kind.Symbol, Label: kind.Label, Link: "only=" + kind.Key, Class: kind.Class, Count: n})
		}
	}
	return append(tiles, pageTile{Symbol: "∗", Label: "not the default", Link: "only=notdefault", Class: "plain", Count: marks["notdefault"]})
}

// symbolOf returns a state's symbol, which does not depend on color.
func symbolOf(state v1alpha1.FeatureState) string {
	switch state {
	case v1alpha1.StateOn:
		return "✓"
	case v1alpha1.StateOff:
		return "–"
	case "", unknownState:
		return "?"
	default:
		return "→"
	}
}

// pageFeatureOf returns the page's data of a feature.
func pageFeatureOf(f *v1alpha1.Feature, kinds []troubleKind, components []pageComponent) pageFeature {
	status, state := &f.Status, pageState(f)
	row := pageFeature{
		Key: f.Name, Namespace: f.Namespace, Name: f.Name, Stage: orNone(string(status.Stage)), State: orNone(string(state)),
		Symbol: symbolOf(state), Since: ago(since(f).Time), Configured: configuredOf(f), Default: valueOf(status.Default),
		Value: none, Source: none, Control: controlOf(f), StoredVersion: orNone(status.Version), Progress: transition.Shorten(transition.Progress(status), transition.MaxProgress),
		Moving: status.Transition != nil, NotDefault: notDefault(status), Locked: status.LockedToDefault, Conditions: status.Conditions,
	}
	if f.Namespace != metav1.NamespaceSystem {
		row.Key = f.Namespace + "/" + f.Name
	}
	if status.Configured != nil {
		row.Value, row.Source = valueOf(&status.Configured.Value), string(status.Configured.Source)
	}
	if status.Transition != nil {
		row.Begun = begun(status.Transition)
	}
	// The first task has the same message as the condition, if any.
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing); c != nil && (len(status.Tasks) == 0 || !strings.HasPrefix(c.Message, status.Tasks[0].Name)) {
		row.Why = c.Message
	}
	for i := range status.Tasks {
		task := &status.Tasks[i]
		tried := ""
		if task.Attempts > 0 {
			tried = "tried " + count(int64(task.Attempts), "time")
			if task.LastAttemptTime != nil {
				tried += ", last " + ago(task.LastAttemptTime.Time) + " ago"
			}
		}
		row.Tasks = append(row.Tasks, pageTask{task.Name, task.Message, tried, min(task.Done, task.Total), task.Total})
	}
	row.Rollout = rolloutOf(f)
	for _, kind := range kinds {
		if len(kind.find(status)) > 0 {
			row.Troubles = append(row.Troubles, kind)
		}
	}
	value, known := expectedValue(f)
	row.Differing = differing(f)
	for _, use := range status.Uses {
		row.Uses = append(row.Uses, pageUse{use, valueOf(use.Enabled), strings.Join(use.Examples, ", "), differs(use, value, known)})
	}
	for _, component := range components {
		row.Cells = append(row.Cells, cellOf(f, component.Name))
	}
	return row
}

// differs is true for live users of another value than that of the state.
func differs(use v1alpha1.FeatureUse, value, known bool) bool {
	return known && use.Enabled != nil && *use.Enabled != value && use.Count > 0
}

// cellOf returns the values of the instances of a component, those that differ
// first.
func cellOf(f *v1alpha1.Feature, component string) pageCell {
	value, known := expectedValue(f)
	live := map[bool]int64{}
	var missing, stale int64
	var cell pageCell
	var titles []string
	for _, use := range f.Status.Uses {
		if use.Component != component {
			continue
		}
		titles = append(titles, planned(use))
		if use.Enabled == nil {
			missing += int64(max(use.Expected, use.Count+use.Stale))
			continue
		}
		live[*use.Enabled] += int64(use.Count)
		stale += int64(use.Stale)
	}
	for _, enabled := range []bool{!value, value} {
		n := live[enabled]
		if n == 0 {
			continue
		}
		part := cellPart{"✓", number(n) + " " + transition.OnOff(enabled), transition.OnOff(enabled)}
		if !enabled {
			part.Symbol = "–"
		}
		if known && enabled != value {
			part.Symbol, part.Class, cell.Differs = "≠", "differs", true
		}
		cell.Parts = append(cell.Parts, part)
	}
	if stale > 0 {
		cell.Parts = append(cell.Parts, cellPart{"~", number(stale) + " unreachable", "dim"})
	}
	if missing > 0 {
		cell.Parts = append(cell.Parts, cellPart{"?", number(missing) + " missing", "dim"})
	}
	cell.Title = strings.Join(titles, "\n")
	return cell
}

// number formats one with separators of thousands: 12,345.
func number[N ~int | ~int32 | ~int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
