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

package tracker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"pgregory.net/rapid"
)

var (
	modelFeatures = []string{"A", "B", "C", "D", "E"}
	modelNodes    = []string{"n1", "n2"}
	// modelProcesses are by component: those of nodes and others.
	modelProcesses = []string{"kubelet.n1", "kubelet.n2", "proxy.n1", "proxy.n2", "comp.a", "comp.b", "server.s"}
	modelConfig    = indexConfig{servers: "server", maxCrashes: 2, crashWindow: 7 * time.Minute, settled: 3 * time.Minute}
)

const (
	modelDecided   = 4 * time.Minute
	modelRetention = 6 * time.Minute
)

// flatIndex is an index that keeps, for each process, what it reports of each feature,
// and scans all of them.
type flatIndex struct {
	now       time.Time
	nodes     map[string]nodeState
	processes map[string]*flatProcess
	left      map[string]*flatLeft
	// alive are the Leases that are.
	alive map[types.NamespacedName]bool
	// born numbers the names of processes, and of reports.
	born int
}

type flatProcess struct {
	report  *v1alpha1.FeatureReport
	crashes []time.Time
	since   map[string]time.Time
}

// flatLeft is what a process takes over from its predecessors.
type flatLeft struct {
	gates   map[string]v1alpha1.ReportedFeature
	since   time.Time
	present bool
}

func (p *flatProcess) gate(feature string) (v1alpha1.ReportedFeature, bool) {
	at := slices.IndexFunc(p.report.Spec.Features, func(g v1alpha1.ReportedFeature) bool { return g.Name == feature })
	if at < 0 {
		return v1alpha1.ReportedFeature{}, false
	}
	return p.report.Spec.Features[at], true
}

// set is index.set, or index.remove for nil.
func (m *flatIndex) set(name string, report *v1alpha1.FeatureReport) {
	old, current := m.processes[name], (*flatProcess)(nil)
	if old == nil && report == nil {
		return
	}
	if report != nil {
		current = &flatProcess{report: report, since: map[string]time.Time{}}
		if old != nil && old.report.UID == report.UID {
			current.crashes = slices.Clone(old.crashes)
			if otherProcess(old.report, report) && !Terminating(old.report) {
				current.crashes = append(current.crashes, m.now)
				current.crashes = current.crashes[max(0, len(current.crashes)-modelConfig.maxCrashes):]
			}
		}
		for _, gate := range report.Spec.Features {
			since := m.now
			if old != nil {
				if before, listed := old.gate(gate.Name); listed && before == gate {
					since = old.since[gate.Name]
				}
			}
			if !gate.Queried && m.now.Sub(since) < modelConfig.settled {
				current.since[gate.Name] = since
			}
		}
	}
	m.keep(name, old, current)
	if delete(m.processes, name); current != nil {
		m.processes[name] = current
	}
}

func (m *flatIndex) keep(name string, old, current *flatProcess) {
	left := m.left[name]
	if left == nil {
		left = &flatLeft{gates: map[string]v1alpha1.ReportedFeature{}}
		m.left[name] = left
	}
	if old == nil || current == nil || otherProcess(old.report, current.report) {
		left.since, left.present = m.now, current != nil
		if old != nil {
			for _, gate := range old.report.Spec.Features {
				if delete(left.gates, gate.Name); gate.Queried {
					left.gates[gate.Name] = gate
				}
			}
		}
	}
	if current != nil {
		for _, gate := range current.report.Spec.Features {
			delete(left.gates, gate.Name)
		}
	}
	if len(left.gates) == 0 {
		delete(m.left, name)
	}
}

// aliveNow is Controller.alive.
func (m *flatIndex) aliveNow(report *v1alpha1.FeatureReport) bool {
	if lease := report.Spec.Liveness.Lease; lease != nil {
		return m.alive[types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}]
	}
	return report.Spec.NodeName == "" || m.nodes[report.Spec.NodeName].ready
}

// pass does what the controller does periodically.
func (m *flatIndex) pass() {
	for _, p := range m.processes {
		p.crashes = slices.DeleteFunc(p.crashes, func(at time.Time) bool { return m.now.Sub(at) >= modelConfig.crashWindow })
		maps.DeleteFunc(p.since, func(_ string, since time.Time) bool { return m.now.Sub(since) >= modelConfig.settled })
	}
	maps.DeleteFunc(m.left, func(name string, left *flatLeft) bool {
		if !left.present {
			return m.now.Sub(left.since) > modelRetention
		}
		return m.now.Sub(left.since) > modelDecided && m.aliveNow(m.processes[name].report)
	})
}

// shown returns what gather sees of a feature, a line for each process.
func (m *flatIndex) shown(feature string) []string {
	var lines []string
	for name, p := range m.processes {
		if gate, listed := p.gate(feature); listed {
			spec := &p.report.Spec
			usual := spec.Liveness.Lease == nil && m.nodes[spec.NodeName].ready && len(p.crashes) == 0 && p.since[feature].IsZero() && spec.Component != "server"
			lines = append(lines, sayingLine(usual, name, spec.BinaryVersion, gate, p.since[feature], p.crashes))
		}
	}
	for name, left := range m.left {
		if gate, ok := left.gates[feature]; ok && left.present {
			gate.Explicit = false
			lines = append(lines, heirLine(name, gate, left.since))
		} else if ok {
			lines = append(lines, leftLine(name, gate, left.since))
		}
	}
	slices.Sort(lines)
	return lines
}

// shownBy returns the same for an index.
func shownBy(x *index, feature string) []string {
	var lines []string
	crowds, others := x.of(feature)
	for _, c := range crowds {
		for _, name := range c.names {
			lines = append(lines, sayingLine(true, c.component+"."+name, c.version, *c.gate, time.Time{}, nil))
		}
	}
	for _, e := range others {
		lines = append(lines, sayingLine(false, e.report.Name, e.report.Spec.BinaryVersion, *e.gate, e.since, e.crashes))
	}
	for _, h := range x.replacementsOf(feature) {
		lines = append(lines, heirLine(h.report.Name, *h.gate, h.replacedAt))
	}
	for _, d := range x.notReturnedOf(feature) {
		lines = append(lines, leftLine(d.report, *d.gate, d.at))
	}
	slices.Sort(lines)
	return lines
}

func sayingLine(usual bool, name, version string, gate v1alpha1.ReportedFeature, since time.Time, crashes []time.Time) string {
	line := fmt.Sprintf("%s %s says %+v", name, version, gate)
	if !since.IsZero() {
		line += fmt.Sprintf(" since %s", since.Sub(start))
	}
	for _, at := range crashes {
		line += fmt.Sprintf(", crashed at %s", at.Sub(start))
	}
	if usual {
		line += ", like others"
	}
	return line
}

func heirLine(name string, gate v1alpha1.ReportedFeature, since time.Time) string {
	return fmt.Sprintf("%s keeps %+v since %s", name, gate, since.Sub(start))
}

func leftLine(name string, gate v1alpha1.ReportedFeature, since time.Time) string {
	return fmt.Sprintf("%s has left %+v at %s", name, gate, since.Sub(start))
}

// draw makes the next report of a process. One that continues lists what it has listed,
// and does not take back that it queried.
func (m *flatIndex) draw(t *rapid.T, name string, continues bool) *v1alpha1.FeatureReport {
	component, instance, _ := strings.Cut(name, ".")
	r, old := report(component, instance), m.processes[name]
	listed := rapid.SliceOfDistinct(rapid.SampledFrom(modelFeatures), rapid.ID).Draw(t, "features")
	for _, feature := range modelFeatures {
		gate, before := v1alpha1.ReportedFeature{}, false
		if continues {
			gate, before = old.gate(feature)
		}
		if !before && !slices.Contains(listed, feature) {
			continue
		}
		gate.Name = feature
		if says := rapid.IntRange(0, 9).Draw(t, feature); !before || says < 8 {
			gate.Enabled, gate.Queried, gate.Explicit = says&1 != 0, gate.Queried || says&2 != 0, says&4 != 0
		}
		r.Spec.Features = append(r.Spec.Features, gate)
	}
	r.Spec.BinaryVersion = rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, "version")
	if component == kubelet || component == "proxy" {
		r.Spec.NodeName = instance
	}
	if component == "comp" && rapid.Bool().Draw(t, "lease") || component == "server" {
		r.Spec.Liveness.Lease = &v1alpha1.LeaseReference{Namespace: "leases", Name: rapid.SampledFrom([]string{name, "other"}).Draw(t, "which")}
	}
	m.born++
	process, uid := fmt.Sprint("process-", m.born), types.UID(fmt.Sprint("uid-", m.born))
	if old != nil && (continues || rapid.IntRange(0, 3).Draw(t, "uid") > 0) {
		uid = old.report.UID
	}
	if continues {
		process = old.report.Spec.Process
	}
	r.UID, r.Spec.Process = uid, process
	if continues && rapid.IntRange(0, 5).Draw(t, "ends") == 0 {
		r.Annotations = map[string]string{v1alpha1.AnnotationTerminating: "true"}
	}
	return r
}

// TestIndexMatchesFlatIndex, whatever comes, changes, crashes and goes, and however much
// time passes.
func TestIndexMatchesFlatIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newIndex(modelConfig)
		m := &flatIndex{now: start, nodes: map[string]nodeState{}, processes: map[string]*flatProcess{}, left: map[string]*flatLeft{}, alive: map[types.NamespacedName]bool{}}
		set := func(t *rapid.T, name string, report *v1alpha1.FeatureReport) {
			before := map[string][]string{}
			for _, feature := range modelFeatures {
				before[feature] = m.shown(feature)
			}
			m.set(name, report)
			changed := x.replace(name, report, m.now)
			for _, feature := range modelFeatures {
				if !slices.Contains(changed, feature) && !slices.Equal(before[feature], m.shown(feature)) {
					t.Fatalf("%s has changed, and only %v are said to have:\n%s", feature, changed, cmp.Diff(before[feature], m.shown(feature)))
				}
			}
		}
		reports := func(continues bool) func(*rapid.T) {
			return func(t *rapid.T) {
				name := rapid.SampledFrom(modelProcesses).Draw(t, "report")
				set(t, name, m.draw(t, name, continues && m.processes[name] != nil))
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"report":         reports(true),
			"takeover":       reports(false),
			"takeover again": reports(false),
			"delete": func(t *rapid.T) {
				set(t, rapid.SampledFrom(modelProcesses).Draw(t, "report"), nil)
			},
			"node": func(t *rapid.T) {
				name := rapid.SampledFrom(modelNodes).Draw(t, "node")
				state, there := nodeState{ready: rapid.IntRange(0, 2).Draw(t, "ready") > 0, kubelet: rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, "kubelet")}, rapid.IntRange(0, 4).Draw(t, "there") > 0
				if m.nodes[name] = state; there {
					x.setNode(name, state)
				} else {
					delete(m.nodes, name)
					x.deleteNode(name)
				}
			},
			"lease": func(t *rapid.T) {
				name := rapid.SampledFrom(append([]string{"other"}, modelProcesses...)).Draw(t, "lease")
				m.alive[types.NamespacedName{Namespace: "leases", Name: name}] = rapid.Bool().Draw(t, "alive")
			},
			"time passes": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 4).Draw(t, "minutes")) * time.Minute)
				m.pass()
				x.dropNotReturned(m.now.Add(-modelRetention))
				x.dropDecided(m.now.Add(-modelDecided), m.aliveNow)
				x.settle(m.now)
			},
			"": func(t *rapid.T) { checkIndex(t, x, m) },
		})
	})
}

// checkIndex compares an index with a flat one.
func checkIndex(t *rapid.T, x *index, m *flatIndex) {
	byLease, byNode, counts := map[types.NamespacedName][]string{}, map[string][]string{}, map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(m.processes)) {
		p := m.processes[name]
		spec := &p.report.Spec
		counts[spec.Component]++
		if lease := spec.Liveness.Lease; lease != nil {
			key := types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}
			byLease[key] = append(byLease[key], name)
		} else if spec.NodeName != "" {
			byNode[spec.NodeName] = append(byNode[spec.NodeName], name)
		}
		own := map[string]bool{}
		for _, gate := range spec.Features {
			own[gate.Name] = true
			if e, listed := x.reported(name, gate.Name); !listed || *e.gate != gate || !e.since.Equal(p.since[gate.Name]) || !slices.Equal(e.crashes, p.crashes) {
				t.Fatalf("%s says %+v of %s, want %+v since %s, crashes at %v", name, e, gate.Name, gate, p.since[gate.Name], p.crashes)
			}
		}
		if left := m.left[name]; left != nil {
			for feature := range left.gates {
				own[feature] = true
			}
		}
		same(t, "features of "+name, slices.Sorted(maps.Keys(own)), x.featuresOf([]*v1alpha1.FeatureReport{p.report}))
	}
	for _, feature := range modelFeatures {
		same(t, feature, m.shown(feature), shownBy(x, feature))
	}
	for _, key := range slices.Concat(slices.Collect(maps.Keys(byLease)), []types.NamespacedName{{Namespace: "leases", Name: "unknown"}}) {
		same(t, "processes of "+key.Name, byLease[key], namesOf(x.naming(key)))
	}
	var missing []string
	for _, node := range modelNodes {
		same(t, "processes on "+node, byNode[node], namesOf(x.onNode(node)))
		if _, there := m.nodes[node]; there && m.processes[kubelet+"."+node] == nil {
			missing = append(missing, node)
		}
	}
	got := x.missingKubelets()
	same(t, "missing kubelets", missing, got)
	if diff := cmp.Diff(counts, x.counts()); diff != "" {
		t.Fatalf("processes of components (-want +got):\n%s", diff)
	}
}

func same(t *rapid.T, what string, want, got []string) {
	if !slices.Equal(want, got) {
		t.Fatalf("%s (-want +got):\n%s", what, cmp.Diff(want, got))
	}
}

func namesOf(reports []*v1alpha1.FeatureReport) []string {
	var names []string
	for _, r := range reports {
		names = append(names, r.Name)
	}
	return names
}
