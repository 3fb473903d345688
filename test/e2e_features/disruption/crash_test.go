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
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"k8s.io/kubernetes-features/cmd/local-up/cluster"
	"k8s.io/kubernetes-features/cmd/local-up/process"
)

// victims are the components that freeze: servers only when none may be configured
// differently until end is called.
func (w *world) victims() (names []string, end func()) {
	names, end = []string{cluster.ControllerManager, cluster.Scheduler}, func() {}
	if w.turn.TryRLock() {
		end = w.turn.RUnlock
		for _, s := range w.servers[1:] {
			// More often than others, since they matter most.
			names = append(names, s.name, s.name, s.name)
		}
	}
	for i := range nodes {
		names = append(names, cluster.Kubelet(cluster.NodeName(i+1)), cluster.Proxy(cluster.NodeName(i+1)))
	}
	return names, end
}

// mortal are those of the victims that crash. From a third of a run on some do not, so that
// there are long lives whose memory says something.
func (w *world) mortal(victims []string) []string {
	if !w.spares.Load() {
		return victims
	}
	first := cluster.NodeName(1)
	return slices.DeleteFunc(victims, func(name string) bool {
		return name == cluster.Scheduler || name == cluster.Kubelet(first) || name == cluster.Proxy(first)
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

func (w *world) kill(ctx context.Context, name string) error {
	w.hands.Lock()
	defer w.hands.Unlock()
	if err := w.intact(ctx); err != nil {
		return err
	}
	w.down[name] = true
	return w.cluster.Kill(ctx, name)
}

// start starts those that were killed: a flip may have restarted them.
func (w *world) start(ctx context.Context, names ...string) error {
	w.hands.Lock()
	defer w.hands.Unlock()
	if err := w.intact(ctx); err != nil {
		return err
	}
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
	victims = append(victims, cluster.Etcd)
	name := victims[random.IntN(len(victims))]
	long := between(random, time.Second, 15*time.Second)
	switch {
	case name == cluster.Etcd:
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
	if kind(name) == cluster.APIServer && long >= lapses {
		// It may come back to a feature that was turned off meanwhile.
		w.excuses.add("a kube-apiserver was frozen while it was turned off", "", begun)
	}
	// Do not wait for the hands here: their holder may wait for this process.
	if err := p.Signal(unix.SIGCONT); err == nil || p.Alive() {
		return err
	}
	// It was killed meanwhile.
	w.hands.Lock()
	defer w.hands.Unlock()
	return w.intact(ctx)
}

// stop stops the process of a component as it stands, unless it was killed.
func (w *world) stop(ctx context.Context, name string) (process.Process, error) {
	w.hands.Lock()
	defer w.hands.Unlock()
	if err := w.intact(ctx); err != nil || w.down[name] {
		return process.Process{}, err
	}
	processes := w.cluster.Processes()
	p := processes[slices.IndexFunc(processes, func(p process.Process) bool { return p.Name == name })]
	return p, p.Signal(unix.SIGSTOP)
}

// killEtcd kills the database and starts it again. Nothing is started
// meanwhile: without it nothing would get ready.
func (w *world) killEtcd(ctx context.Context, random *rand.Rand) error {
	w.hands.Lock()
	defer w.hands.Unlock()
	if err := w.intact(ctx); err != nil {
		return err
	}
	defer w.faults.begin(cluster.Etcd)()
	w.down[cluster.Etcd] = true
	if err := w.cluster.Kill(ctx, cluster.Etcd); err != nil {
		return err
	}
	w.stats.count("crashes of etcd")
	hold(ctx, between(random, 0, 5*time.Second))
	if err := w.cluster.Start(ctx, cluster.Etcd); err != nil {
		return err
	}
	delete(w.down, cluster.Etcd)
	return nil
}

// compact forgets the past, up to the present or a little before it. Who did not
// keep up has to read everything again.
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
