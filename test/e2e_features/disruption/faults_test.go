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
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"k8s.io/kubernetes-features/cmd/local-up/cluster"
	"k8s.io/kubernetes-features/test/integration/framework"
)

// faults are those that the test does to components. It is safe for concurrent use.
type faults struct {
	mu sync.Mutex
	// active is how many a component has now: it may be frozen and killed.
	active map[string]int
	// ended is when the last of a component ended.
	ended map[string]time.Time
}

func newFaults() *faults { return &faults{active: map[string]int{}, ended: map[string]time.Time{}} }

// begin says that faults of components begin. What it returns says that they have
// ended: the components are ready again.
func (f *faults) begin(components ...string) (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range components {
		f.active[name]++
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, name := range components {
			f.active[name]--
			f.ended[name] = time.Now()
		}
	}
}

// explain is true when a component has a fault now, had one after a moment, or had
// one that ended at most a grace before it.
func (f *faults) explain(component string, moment time.Time, grace time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	ended, ok := f.ended[component]
	return f.active[component] > 0 || ok && ended.Add(grace).After(moment)
}

// linesOfDead is how much of the log of a component is shown that ended by itself.
const linesOfDead = 40

// lostServer is what the controller manager says before it ends because its server went
// away while it made its controllers, which it does after it says that it is well
// (upstream's cmd/kube-controller-manager/app/controllermanager.go), or had just
// come: such a server forbids everything until it has read its roles, and may tell it of
// no resource (pkg/controller/namespace/deletion, initOpCache).
var lostServer = regexp.MustCompile(`"Error building controller(s| context)".*(connection refused|connection reset|EOF|failed to wait for apiserver|is forbidden: User \\"system:kube-controller-manager\\")|` +
	`"Unable to get any supported resources from server"`)

// intact checks that no component has ended but those that the test itself ended and
// has not started again yet. Nothing else may end: there is one controller manager and
// one scheduler, so they have no lock to lose (cluster.Cluster's --leader-elect=false),
// and no other component ends by itself when servers or etcd are away. But for a controller
// manager that was still about to make its controllers: that one is started again, as a
// supervisor does, while a fault of its server or of etcd explains it. The caller has the
// hands.
func (w *world) intact(ctx context.Context) error {
	var errs []error
	_, dead := w.cluster.Running()
	for _, name := range dead {
		if w.down[name] {
			continue
		}
		log := w.cluster.Log(name, linesOfDead)
		explained := w.faults.explain(cluster.APIServer, time.Now(), serverGrace) || w.faults.explain(cluster.Etcd, time.Now(), etcdGrace)
		if name == cluster.ControllerManager && explained && lostServer.MatchString(lastLife(log)) {
			w.stats.count("starts of the controller manager that lost its server")
			end := w.faults.begin(name)
			if err := w.cluster.Start(ctx, name); err != nil {
				errs = append(errs, fmt.Errorf("starting %s again, whose server went away while it started: %w", name, err))
			}
			end()
			continue
		}
		errs = append(errs, fmt.Errorf("%s has ended by itself; the end of its log:\n%s", name, log))
	}
	return errors.Join(errs...)
}

// lastLife is what a log has of the last life of a component: the lines after the last
// one that says how it was started.
func lastLife(log string) string {
	if i := strings.LastIndex(log, "\n--- "); i >= 0 {
		return log[i:]
	}
	return log
}

// whole checks that all components run: no fault is under way.
func (w *world) whole(ctx context.Context) error {
	w.hands.Lock()
	defer w.hands.Unlock()
	for name := range w.down {
		return fmt.Errorf("%s was ended and not started again", name)
	}
	return w.intact(ctx)
}

// readLogs looks for panics in all that components logged in all their lives. One
// that was caught ends nothing, and after others the component may have been killed.
func (w *world) readLogs() {
	w.hands.Lock()
	defer w.hands.Unlock()
	for _, p := range w.cluster.Processes() {
		lines, err := framework.Panics(p)
		if err != nil {
			w.t.Errorf("looking for panics: %v", err)
		}
		if len(lines) > 0 {
			w.t.Errorf("%s logs %d lines of panics, the first: %s", p.Name, len(lines), lines[0])
		}
	}
}
