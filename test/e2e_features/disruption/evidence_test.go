//go:build linux

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

	"k8s.io/kubernetes-features/test/integration/framework"
)

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
	for _, process := range p.everybodyLocked() {
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
