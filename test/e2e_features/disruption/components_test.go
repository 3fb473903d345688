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
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/kubernetes-features/test/utils/localcluster/process"
)

// faults are those that the test does to components. It is safe for concurrent use.
type faults struct {
	mu sync.Mutex
	// active is how many a component has now: it may be frozen and killed.
	active map[string]int
	// ended is the time at which the last of a component ended.
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
// one scheduler, so they have no lock to lose (localcluster.Cluster's --leader-elect=false),
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
		explained := w.faults.explain(localcluster.APIServer, time.Now(), serverGrace) || w.faults.explain(localcluster.Etcd, time.Now(), etcdGrace)
		if name == localcluster.ControllerManager && explained && lostServer.MatchString(lastLife(log)) {
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
	return w.handle(ctx, func() error {
		for name := range w.down {
			return fmt.Errorf("%s was ended and not started again", name)
		}
		return nil
	})
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

// victims are the components that freeze: servers only when none may be configured
// differently until end is called.
func (w *world) victims() (names []string, end func()) {
	names, end = []string{localcluster.ControllerManager, localcluster.Scheduler}, func() {}
	if w.turn.TryRLock() {
		end = w.turn.RUnlock
		for _, s := range w.servers[1:] {
			// More often than others, since they matter most.
			names = append(names, s.name, s.name, s.name)
		}
	}
	for i := range nodes {
		names = append(names, localcluster.Kubelet(localcluster.NodeName(i+1)), localcluster.Proxy(localcluster.NodeName(i+1)))
	}
	return names, end
}

// mortal are those of the victims that crash. From a third of a run on some do not, so that
// there are long lives whose memory says something.
func (w *world) mortal(victims []string) []string {
	if !w.spares.Load() {
		return victims
	}
	first := localcluster.NodeName(1)
	return slices.DeleteFunc(victims, func(name string) bool {
		return name == localcluster.Scheduler || name == localcluster.Kubelet(first) || name == localcluster.Proxy(first)
	})
}

// crash kills one component or two and starts them again later: mostly soon, as a
// supervisor does, sometimes when all others have noticed.
func (w *world) crash(ctx context.Context, random *rand.Rand) error {
	victims, end := w.victims()
	defer end()
	victims = w.mortal(victims)
	names := []string{victims[random.IntN(len(victims))], victims[random.IntN(len(victims))]}
	names = slices.Compact(names[:1+random.IntN(2)])
	defer w.faults.begin(names...)()
	for _, name := range names {
		if err := w.kill(ctx, name); err != nil {
			return err
		}
		w.stats.count("crashes of " + kind(name))
	}
	dead := between(random, 0, 8*time.Second)
	if random.IntN(10) == 0 {
		dead = between(random, 45*time.Second, time.Minute)
	}
	hold(ctx, dead)
	return w.start(ctx, names...)
}

// kind is the component without its number and node.
func kind(name string) string {
	for i, c := range name {
		if c == '/' || c == '-' && i+1 < len(name) && name[i+1] >= '0' && name[i+1] <= '9' {
			return name[:i]
		}
	}
	return name
}

// handle does something to processes with the hands, if none has ended by itself.
func (w *world) handle(ctx context.Context, do func() error) error {
	w.hands.Lock()
	defer w.hands.Unlock()
	if err := w.intact(ctx); err != nil {
		return err
	}
	return do()
}

func (w *world) kill(ctx context.Context, name string) error {
	return w.handle(ctx, func() error { return w.killLocked(ctx, name) })
}

func (w *world) killLocked(ctx context.Context, name string) error {
	w.down[name] = true
	return w.cluster.Kill(ctx, name)
}

// start starts those that were killed: a flip may have restarted them.
func (w *world) start(ctx context.Context, names ...string) error {
	return w.handle(ctx, func() error { return w.startLocked(ctx, names...) })
}

func (w *world) startLocked(ctx context.Context, names ...string) error {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !w.down[name] })
	if len(names) == 0 {
		return nil
	}
	if err := w.cluster.Start(ctx, names...); err != nil {
		return err
	}
	for _, name := range names {
		delete(w.down, name)
	}
	return nil
}

// freeze stops a component's process for a while.
func (w *world) freeze(ctx context.Context, random *rand.Rand) error {
	victims, end := w.victims()
	defer end()
	victims = append(victims, localcluster.Etcd)
	name := victims[random.IntN(len(victims))]
	long := between(random, time.Second, 15*time.Second)
	switch {
	case name == localcluster.Etcd:
		long = between(random, time.Second, 5*time.Second)
	case random.IntN(10) == 0:
		// Others take over what it leads.
		long = between(random, 45*time.Second, time.Minute)
	}
	begun := time.Now()
	p, err := w.stop(ctx, name)
	if err != nil || p.PID == 0 {
		return err
	}
	defer w.faults.begin(name)()
	w.stats.count("freezes of " + kind(name))
	hold(ctx, long)
	if kind(name) == localcluster.APIServer && long >= lapses {
		// It may come back to a feature that was turned off meanwhile.
		w.excuses.add("a kube-apiserver was frozen while it was turned off", "", begun)
	}
	// Do not wait for the hands here: their holder may wait for this process.
	if err := p.Signal(unix.SIGCONT); err == nil || p.Alive() {
		return err
	}
	// It was killed meanwhile.
	return w.handle(ctx, func() error { return nil })
}

// stop stops the process of a component as it stands, unless it was killed.
func (w *world) stop(ctx context.Context, name string) (p process.Process, err error) {
	err = w.handle(ctx, func() error {
		if w.down[name] {
			return nil
		}
		processes := w.cluster.Processes()
		p = processes[slices.IndexFunc(processes, func(p process.Process) bool { return p.Name == name })]
		return p.Signal(unix.SIGSTOP)
	})
	return p, err
}

// killEtcd kills the database and starts it again. Nothing is started
// meanwhile: without it nothing would get ready.
func (w *world) killEtcd(ctx context.Context, random *rand.Rand) error {
	return w.handle(ctx, func() error {
		defer w.faults.begin(localcluster.Etcd)()
		if err := w.killLocked(ctx, localcluster.Etcd); err != nil {
			return err
		}
		w.stats.count("crashes of etcd")
		hold(ctx, between(random, 0, 5*time.Second))
		return w.startLocked(ctx, localcluster.Etcd)
	})
}

// compact forgets the past, up to the present or a little before it. A client
// that did not keep up has to read everything again.
func (w *world) compact(ctx context.Context, random *rand.Rand) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	present, err := w.etcd.Get(ctx, "revision")
	if err != nil {
		w.stats.count("compactions that etcd was away for")
		return nil
	}
	revision := present.Header.Revision - random.Int64N(2)*random.Int64N(500)
	if revision <= 1 {
		return nil
	}
	if _, err = w.etcd.Compact(ctx, revision, clientv3.WithCompactPhysical()); err != nil {
		// Etcd died, or it has forgotten that much already.
		w.stats.count("compactions without effect")
		return nil
	}
	w.stats.count("compactions")
	return nil
}

// defragment has etcd rewrite its file, which blocks everything.
func (w *world) defragment(ctx context.Context, _ *rand.Rand) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := w.etcd.Defragment(ctx, w.cluster.EtcdEndpoint()); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("defragmenting etcd: %w", err)
		}
		w.stats.count("defragmentations that etcd was away for")
		return nil
	}
	w.stats.count("defragmentations")
	return nil
}
