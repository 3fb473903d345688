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
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/kubernetes-features/test/utils/localcluster/process"
)

const (
	// mostHeap and mostOwn are what the memory of a process may grow by, in
	// bytes an hour. An hour of reports of crashed processes is kept, so nothing that
	// is meant to be there grows in the second half of a long run.
	mostHeap, mostOwn = 8 << 20, 24 << 20
	// settling is the time that a process that has started may grow, leastJudged what has
	// to be left of its life after that to say something of the rest.
	settling, leastJudged = 10 * time.Minute, 15 * time.Minute
	// leastLife is the time that a process other than the server that stays has to live
	// to be judged.
	leastLife = 30 * time.Minute
	// heapAtRest bounds the heaps at rest in the end: one and a half of those at rest
	// before, and this. That of the server is 112 MiB before, and up to 130 after five
	// minutes: only what leaks a lot is found. In a short run nothing else is; after a long
	// one it is all that judges components that crashed too often to have a trend.
	heapAtRest = 16 << 20
)

// memory has the memory of all processes over time. It is safe for concurrent use.
type memory struct {
	w      *world
	period time.Duration
	cancel context.CancelFunc
	done   chan struct{}

	mu sync.Mutex
	// since is the time at which the second half began; zero before.
	since time.Time
	// lives are the samples of each process, by component, in the order of lives.
	lives map[string][]*life
	// heaps are those at rest after the run, for people.
	heaps []string
}

// life is one process of a component.
type life struct {
	process process.Process
	samples []sample
}

// sample is what a process held at a time, in bytes.
type sample struct {
	at time.Time
	// resident is all memory that the kernel counts, own what of it is the process's own:
	// the rest are pages of files, above all of the executable, which come as its code is
	// used and go when the kernel needs them. heap is what is in use after a collection of
	// garbage, 0 for processes that did not tell.
	resident, own, heap float64
}

func newMemory(w *world) *memory {
	m := &memory{w: w, period: 5 * time.Second, lives: map[string][]*life{}}
	if w.long() {
		m.period = 15 * time.Second
	}
	return m
}

// begin says that the second half begins.
func (m *memory) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.since = time.Now()
}

// follow takes samples until end.
func (m *memory) follow() {
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(m.w.t.Context())
	m.done = make(chan struct{})
	go func() {
		defer close(m.done)
		for ctx.Err() == nil {
			m.take(ctx)
			hold(ctx, m.period)
		}
	}()
}

func (m *memory) end() {
	m.cancel()
	<-m.done
}

// take takes one sample of each process that lives.
func (m *memory) take(ctx context.Context) {
	m.w.hands.Lock()
	processes := append([]process.Process(nil), m.w.cluster.Processes()...)
	m.w.hands.Unlock()
	for _, p := range processes {
		resident, own, err := residentSize(p.PID)
		if err != nil {
			continue
		}
		s := sample{at: time.Now(), resident: resident, own: own}
		if p.Name == m.w.kept().name || m.w.long() && slices.Contains(m.w.tellers(), p.Name) {
			s.heap = m.heapOf(ctx, p)
		}
		m.add(p, s)
	}
}

// heapOf is the heap of a process, 0 for one that does not say: it restarts just now, or
// is frozen, and is asked again later.
func (m *memory) heapOf(ctx context.Context, p process.Process) float64 {
	ctx, cancel := context.WithTimeout(ctx, m.period)
	defer cancel()
	client, err := m.w.monitoring(p)
	if err != nil {
		return 0
	}
	heap, err := heapInUse(ctx, client)
	if err != nil {
		return 0
	}
	return float64(heap)
}

func (m *memory) add(p process.Process, s sample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	lives := m.lives[p.Name]
	if len(lives) == 0 || lives[len(lives)-1].process != p {
		lives = append(lives, &life{process: p})
		m.lives[p.Name] = lives
	}
	last := lives[len(lives)-1]
	last.samples = append(last.samples, s)
}

var residentLines = regexp.MustCompile(`(?m)^(VmRSS|RssAnon):\s+(\d+) kB$`)

// residentSize is the resident memory of a process, and its own part of it (proc(5)).
func residentSize(pid int) (resident, own float64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	said := map[string]float64{}
	for _, match := range residentLines.FindAllSubmatch(status, -1) {
		kib, err := strconv.ParseFloat(string(match[2]), 64)
		if err != nil {
			return 0, 0, err
		}
		said[string(match[1])] = kib * 1024
	}
	if len(said) != 2 {
		return 0, 0, fmt.Errorf("/proc/%d/status does not say VmRSS and RssAnon", pid)
	}
	return said["VmRSS"], said["RssAnon"], nil
}

var heapLine = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)

// heapInUse collects garbage and returns how many bytes are in use after it.
func heapInUse(ctx context.Context, client rest.Interface) (uint64, error) {
	data, err := client.Get().AbsPath("/debug/pprof/heap").Param("gc", "1").Param("debug", "1").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the heap's profile: %w", err)
	}
	match := heapLine.FindSubmatch(data)
	if match == nil {
		return 0, fmt.Errorf("the heap's profile does not say HeapAlloc")
	}
	return strconv.ParseUint(string(match[1]), 10, 64)
}

func (s sample) ofHeap() float64     { return s.heap }
func (s sample) ofResident() float64 { return s.resident }
func (s sample) ofOwn() float64      { return s.own }

// judged is something that is judged.
type judged struct {
	what  string
	trend trend
	limit float64
}

// verdict is that of the trend, with figures.
func (j judged) verdict() (says string, ok bool) {
	says, ok = j.trend.verdict(j.limit)
	return fmt.Sprintf("%s: %s, the limit is %s/h", says, j.trend, mib(j.limit)), ok
}

// settled are the samples of a life in the second half, but not those of its beginning.
func (m *memory) settled(l *life) []sample {
	if m.since.IsZero() {
		return nil
	}
	from := m.since
	if grown := l.samples[0].at.Add(settling); m.w.long() && grown.After(from) {
		from = grown
	}
	first := slices.IndexFunc(l.samples, func(s sample) bool { return s.at.After(from) })
	if first < 0 {
		return nil
	}
	return l.samples[first:]
}

// span is how long there are samples.
func span(samples []sample) time.Duration {
	if len(samples) == 0 {
		return 0
	}
	return samples[len(samples)-1].at.Sub(samples[0].at)
}

// judged is all that is judged: heap and own resident memory of the server that stays, and of
// each other component that has a life which is long enough. The others are named.
func (m *memory) judged() (all []judged, short []string) {
	kept := m.w.kept().name
	judge := func(name string, samples []sample) {
		told := slices.DeleteFunc(slices.Clone(samples), func(s sample) bool { return s.heap == 0 })
		if name == kept || span(told) >= leastJudged {
			all = append(all, judged{"the heap of " + name, fit(told, sample.ofHeap), mostHeap})
		}
		all = append(all, judged{"the own resident memory of " + name, fit(samples, sample.ofOwn), mostOwn})
	}
	// It is judged however little is known of it, so that nothing of it goes unseen.
	var last []sample
	if lives := m.lives[kept]; len(lives) > 0 {
		last = m.settled(lives[len(lives)-1])
	}
	judge(kept, last)
	for _, name := range sortedKeys(m.lives) {
		switch samples := m.longest(name); {
		case name == kept:
		case span(samples) < leastJudged:
			short = append(short, name)
		default:
			judge(name, samples)
		}
	}
	return all, short
}

// longest is what there is to judge of the longest of a component's lives, if that is long.
func (m *memory) longest(name string) (longest []sample) {
	for _, l := range m.lives[name] {
		if samples := m.settled(l); span(l.samples) >= leastLife && span(samples) > span(longest) {
			longest = samples
		}
	}
	return longest
}

// judge checks that memory is flat: by its trends after a long run, and by the heaps at
// rest of all that tell after any.
func (m *memory) judge(before, after *snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.w.long() {
		all, _ := m.judged()
		for _, j := range all {
			if says, ok := j.verdict(); !ok {
				m.w.t.Errorf("%s is not known to be flat: %s", j.what, says)
			}
		}
	}
	for _, name := range sortedKeys(after.processes) {
		was, is := float64(before.processes[name].heap), float64(after.processes[name].heap)
		most := 1.5*was + heapAtRest
		if is > most {
			m.w.t.Errorf("the heap of %s is %s at rest, more than %s; before the faults it was %s", name, mib(is), mib(most), mib(was))
		}
		if is > 0 {
			m.heaps = append(m.heaps, fmt.Sprintf("%s %s, was %s", name, mib(is), mib(was)))
		}
	}
}

// table shows lives and slopes.
func (m *memory) table(row func(what, format string, args ...any)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range sortedKeys(m.lives) {
		lives := m.lives[name]
		most, longest := 0.0, lives[0]
		for _, l := range lives {
			for _, s := range l.samples {
				most = max(most, s.resident)
			}
			if len(l.samples) > len(longest.samples) {
				longest = l
			}
		}
		text := fmt.Sprintf("%d lives, at most %s resident", len(lives), mib(most))
		if t := fit(longest.samples, sample.ofResident); t.over >= 10*time.Minute {
			text += "; the longest: " + t.String()
		}
		row("memory of "+name, "%s", text)
	}
	for _, heap := range m.heaps {
		row("heap at rest", "%s (a loose bound: half more and %s)", heap, mib(heapAtRest))
	}
	all, short := m.judged()
	for _, name := range short {
		row("second half: "+name, "no trend: none of its processes lived for %s", leastLife)
	}
	if lives := m.lives[m.w.kept().name]; len(lives) > 0 {
		if samples := m.settled(lives[len(lives)-1]); len(samples) > 0 {
			row("second half: all resident memory of "+m.w.kept().name, "not judged, since pages of files are in it: %s", fit(samples, sample.ofResident))
		}
	}
	for _, j := range all {
		if m.w.long() {
			says, _ := j.verdict()
			row("second half: "+j.what, "%s", says)
		} else {
			row("second half: "+j.what, "not judged, too short: %s", j.trend)
		}
	}
}

func mib(bytes float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", bytes/(1<<20)), ".0") + " MiB"
}
