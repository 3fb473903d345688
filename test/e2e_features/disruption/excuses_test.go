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

package disruption

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/feature-lifecycle/agent"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// lapses is after which time at the least a server that is frozen is not waited for: it has
// renewed its Lease (agent.LeaseDuration) some 10 seconds before, at most.
const lapses = agent.LeaseDuration - 10*time.Second

// rejoins is how long after its freeze a server may have a feature on that was turned off
// without it: until its Lease is renewed, by which it counts again, and the versions of the
// Feature are seen here, both of which a fault of etcd may delay.
const rejoins = 30 * time.Second

// excuse is the reason why something may be left of a feature that is off: a server had it on that the
// others did not wait for.
type excuse struct {
	why string
	// feature is the one that the server had on while it was off for all others; "" for any
	// that was turned off meanwhile.
	feature     string
	from, until time.Time
}

// excuses are those since the last pause. The zero value has none. It is safe for concurrent
// use.
type excuses struct {
	mu  sync.Mutex
	all []excuse
	// asked are the features of which the rest was asked to be removed since the last pause.
	asked map[string]bool
}

// add notes an excuse that began at from, and ends a while after now.
func (e *excuses) add(why, feature string, from time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, excuse{why, feature, from, time.Now().Add(rejoins)})
}

// of is the excuse of a feature with these versions since the last pause, "" if it has none.
func (e *excuses) of(feature string, versions []framework.FeatureVersion) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	begun, off := turnedOff(versions)
	for _, x := range e.all {
		if x.feature == feature || x.feature == "" && slices.Contains(dynamics, feature) && !off.IsZero() && !begun.After(x.until) && !off.Before(x.from) {
			return x.why
		}
	}
	return ""
}

// first is true when the removal of what is left of a feature is asked for the first time
// since the last pause.
func (e *excuses) first(feature string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asked[feature] {
		return false
	}
	if e.asked == nil {
		e.asked = map[string]bool{}
	}
	e.asked[feature] = true
	return true
}

// end forgets what was excused: nothing was left at a pause.
func (e *excuses) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all, e.asked = nil, nil
}

// turnedOff is the time at which a feature began to be turned off for the last time that it came to be
// off, and when that was; zero if it did not in these versions.
func turnedOff(versions []framework.FeatureVersion) (begun, off time.Time) {
	var since time.Time
	for i, v := range versions[min(1, len(versions)):] {
		before := versions[i]
		switch {
		case v.Status.State == v1alpha1.StateTurningOff && before.Status.State != v1alpha1.StateTurningOff:
			since = v.At
		case v.Status.State == v1alpha1.StateOff && before.Status.State != v1alpha1.StateOff:
			begun, off = since, v.At
			if before.Status.State != v1alpha1.StateTurningOff {
				// A compaction hid how it began.
				begun = before.At
			}
		}
	}
	return begun, off
}

// TestExcusedLeftovers: what is left of a feature is excused if a server was frozen while it was
// turned off for the last time, or disagreed about it, and by nothing else.
func TestExcusedLeftovers(t *testing.T) {
	const on, turning, off, back = v1alpha1.StateOn, v1alpha1.StateTurningOff, v1alpha1.StateOff, v1alpha1.StateTurningOn
	now := time.Now()
	// history has the states with the seconds at which they were stored.
	history := func(stored ...any) []framework.FeatureVersion {
		var versions []framework.FeatureVersion
		for i := 0; i < len(stored); i += 2 {
			v := framework.FeatureVersion{At: now.Add(time.Duration(stored[i].(int)) * time.Second)}
			v.Feature = &v1alpha1.Feature{}
			v.Status.State = stored[i+1].(v1alpha1.FeatureState)
			versions = append(versions, v)
		}
		return versions
	}
	for what, test := range map[string]struct {
		feature  string
		versions []framework.FeatureVersion
		want     string
	}{
		"turned off during the freeze":              {dynamics[0], history(0, on, 110, turning, 120, off), "frozen"},
		"began before the freeze":                   {dynamics[0], history(0, on, 90, turning, 110, off), "frozen"},
		"ended after it":                            {dynamics[0], history(0, on, 150, turning, 250, off, 260, off), "frozen"},
		"began before it is heard of again":         {dynamics[0], history(0, on, 175, turning, 190, off), "frozen"},
		"how it began was not seen":                 {dynamics[0], history(0, on, 250, off), "frozen"},
		"how it began was not seen, on after it":    {dynamics[0], history(0, on, 191, on, 250, off), ""},
		"was being turned off at first":             {dynamics[0], history(0, turning, 150, off), "frozen"},
		"ended before it":                           {dynamics[0], history(0, on, 80, turning, 99, off, 150, off), ""},
		"began after it":                            {dynamics[0], history(0, on, 191, turning, 200, off), ""},
		"off all the time":                          {dynamics[0], history(0, off, 150, off), ""},
		"off, on, and off again after it":           {dynamics[0], history(0, on, 110, turning, 120, off, 130, back, 140, on, 300, turning, 310, off), ""},
		"called off during it, and off after it":    {dynamics[0], history(0, on, 110, turning, 120, back, 130, on, 300, turning, 310, off), ""},
		"the static feature, off during the freeze": {static, history(0, on, 110, turning, 120, off), ""},
	} {
		e := &excuses{all: []excuse{{"frozen", "", now.Add(100 * time.Second), now.Add(190 * time.Second)}}}
		if got := e.of(test.feature, test.versions); got != test.want {
			t.Errorf("%s: excused by %q, want %q", what, got, test.want)
		}
		e.end()
		if got := e.of(test.feature, test.versions); got != "" {
			t.Errorf("%s: excused by %q after a pause, want by nothing", what, got)
		}
	}
	e := &excuses{}
	e.add("disagreed", static, now)
	for feature, want := range map[string]string{static: "disagreed", dynamics[0]: ""} {
		if got := e.of(feature, history(0, off)); got != want {
			t.Errorf("%s: excused by %q, want %q", feature, got, want)
		}
	}
	if !e.first(static) || e.first(static) || !e.first(dynamics[0]) {
		t.Error("the first request for each feature is to count, and no other")
	}
}

// evidence is what is asked of every server when a run has failed: what it does, and how
// it sees the cluster, which is what its cache has.
var evidence = map[string]string{
	"goroutines.txt": "/debug/pprof/goroutine?debug=2",
	"metrics.txt":    "/metrics",
	"features.json":  "/apis/features.k8s.io/v1alpha1/features?resourceVersion=0",
	"reports.json":   "/apis/features.k8s.io/v1alpha1/featurereports?resourceVersion=0",
	"leases.json":    "/apis/coordination.k8s.io/v1/leases?resourceVersion=0",
	"nodes.json":     "/api/v1/nodes?resourceVersion=0",
}

// keepEvidence stores what may tell why a run has failed, before the cluster goes: whole
// logs, what servers say, and what simulated processes said last.
func (w *world) keepEvidence() {
	if !w.t.Failed() {
		return
	}
	dir := filepath.Join(framework.Root(w.t), "_output", "soak-failed")
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		w.t.Error(err)
		return
	}
	// The test's context may have ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), time.Minute)
	defer cancel()
	keep := func(name string, content []byte, err error) {
		if err != nil {
			content = []byte(err.Error())
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			w.t.Error(err)
		}
	}
	for _, s := range w.servers {
		for name, path := range evidence {
			content, err := ask(ctx, s, path)
			keep(s.name+"-"+name, content, err)
		}
	}
	for _, p := range w.cluster.Processes() {
		content, err := os.ReadFile(p.LogFile)
		keep(strings.ReplaceAll(p.Name, "/", "-")+".log", content, err)
	}
	if w.people != nil {
		keep("reporters.txt", []byte(w.people.lastWords()), nil)
	}
	if w.recording != nil {
		content, err := os.ReadFile(w.recording.file.Name())
		keep(filepath.Base(w.recording.file.Name()), content, err)
	}
	w.said("logs, what servers say and what reporters said last are in %s", dir)
}

// ask returns what a server answers to a path.
func ask(ctx context.Context, s server, path string) ([]byte, error) {
	return s.kube.CoreV1().RESTClient().Get().RequestURI(path).SetHeader("Accept", "application/json, */*").DoRaw(ctx)
}

// tail is the end of what is written to it. It is safe for concurrent use.
type tail struct {
	mu    sync.Mutex
	lines []string
}

// mostLines is how many lines of each simulated process are kept.
const mostLines = 10

// Write is for a logger, which writes a line at a time.
func (l *tail) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	if len(l.lines) > mostLines {
		l.lines = slices.Delete(l.lines, 0, len(l.lines)-mostLines)
	}
	return len(line), nil
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "")
}

// lastWords are the last lines of the logs of all simulated processes, by report.
func (p *population) lastWords() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, process := range p.processesLocked() {
		all = append(all, "--- "+process.report+" by "+process.server+"\n"+process.log.String())
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

// TestTailKeepsTheEnd, and no more.
func TestTailKeepsTheEnd(t *testing.T) {
	var l tail
	for i := range 3 * mostLines {
		if _, err := l.Write([]byte{byte('a' + i%26), '\n'}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := l.String(), "u\nv\nw\nx\ny\nz\na\nb\nc\nd\n"; got != want {
		t.Errorf("kept %q, want %q", got, want)
	}
}
