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
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/feature-lifecycle/agent"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

const (
	// fewestNodes, mostNodes and so on bound what is there at a time.
	fewestNodes, mostNodes   = 15, 40
	fewestAgents, mostAgents = 50, 120
	// agentComponent is the component of simulated processes without a node.
	agentComponent = "soak-agent"
	// soaked is the label of all that a run makes.
	soaked = "soak.features.k8s.io/run"
	// renewPeriod is how often nodes renew their Leases, as kubelets do.
	renewPeriod = 10 * time.Second
)

// onNode are the components of simulated nodes. Every node has a kubelet: one that
// does not report would be missed.
var onNode = []string{"kubelet", "kube-proxy", "soak-node-agent"}

// population are the simulated nodes and processes. It is safe for concurrent use.
type population struct {
	w       *world
	version string
	// ctx lasts as long as there is anybody; running are their goroutines.
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu sync.Mutex
	// number makes names.
	number int
	nodes  map[string]*node
	agents map[string]*simulated
	// gone are the reports of agents that did not end in order, and since when.
	// The server flow keeps them for an hour.
	gone map[string]time.Time
	// latest is what the Features are that they follow.
	latest map[string]*v1alpha1.Feature
}

// populate makes the first nodes, agents and objects.
func (w *world) populate() {
	w.t.Helper()
	p := &population{w: w, version: w.cluster.Version(), nodes: map[string]*node{}, agents: map[string]*simulated{}, gone: map[string]time.Time{}, latest: map[string]*v1alpha1.Feature{}}
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(w.t.Context()))
	w.t.Cleanup(p.close)
	w.people, w.objects = p, &objects{w: w, names: map[string]bool{}}
	random := rand.New(rand.NewPCG(w.seed, 0))
	for _, name := range dynamics {
		p.running.Go(func() { p.follow(name) })
	}
	p.running.Go(p.beat)
	for range fewestNodes {
		if err := p.addNode(w.t.Context(), random); err != nil {
			w.t.Fatal(err)
		}
	}
	for range fewestAgents {
		if err := p.addAgent(random, ""); err != nil {
			w.t.Fatal(err)
		}
	}
	w.said("%d nodes and %d agents", len(p.nodes), len(p.agents))
}

// close ends those that are left.
func (p *population) close() {
	p.cancel()
	p.running.Wait()
}

// follow tells all processes what a Feature has for them. All of one feature hear of
// it from here: hundreds of watches in one process would show nothing more.
func (p *population) follow(name string) {
	history := p.w.history(name)
	for mark := max(history.Mark()-1, 0); ; {
		if _, err := history.Await(p.ctx, mark, "changed", func(framework.FeatureVersion) bool { return true }); err != nil {
			if p.ctx.Err() != nil {
				return
			}
			continue
		}
		mark = history.Mark()
		feature := history.Last().Feature
		p.mu.Lock()
		p.latest[name] = feature
		for _, s := range p.processesLocked() {
			if s.source.feature == name {
				s.source.follow(feature)
			}
		}
		p.mu.Unlock()
	}
}

func (p *population) processesLocked() []*simulated {
	all := slices.Collect(maps.Values(p.agents))
	for _, n := range p.nodes {
		all = append(all, n.processes...)
	}
	return all
}

// simulate starts a process that reports to one of the servers.
func (p *population) simulate(random *rand.Rand, component, instance, nodeName string) (*simulated, error) {
	feature, s := dynamics[random.IntN(len(dynamics))], p.w.any(random)
	process := &simulated{source: newSource(feature, component, instance), report: component + "." + instance, server: s.name, log: &tail{}, done: make(chan struct{})}
	config := agent.ReporterConfig{
		Namespace: systemNS, Component: component, Instance: instance, NodeName: nodeName, BinaryVersion: p.version,
		Source: process.source, Clients: agent.Clients{Features: s.features, Kube: s.kube}, Peers: process.source.peers,
	}
	if nodeName == "" {
		config.LeaseNamespace = v1alpha1.LeaseNamespace
		me := s.agent(instance)
		config.Clients = agent.Clients{Features: me.features, Kube: me.kube}
	}
	p.mu.Lock()
	if latest := p.latest[feature]; latest != nil {
		process.source.follow(latest)
	}
	p.mu.Unlock()
	var err error
	if process.reporter, err = agent.NewReporter(config); err != nil {
		return nil, err
	}
	var ctx context.Context
	ctx, process.cancel = context.WithCancel(p.ctx)
	// What it says of servers that are away is of interest only if the run fails.
	ctx = klog.NewContext(ctx, textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(process.log))))
	p.running.Go(func() {
		defer close(process.done)
		process.reporter.Run(ctx)
	})
	p.w.stats.count("reporters started")
	return process, nil
}

func (p *population) name(prefix string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number++
	return fmt.Sprintf("%s-%05d", prefix, p.number)
}

// tellLocked is for what changed while a process was not among all yet.
func (p *population) tellLocked(process *simulated) {
	if latest := p.latest[process.source.feature]; latest != nil {
		process.source.follow(latest)
	}
}

// pick returns one of a map's keys.
func pick[V any](random *rand.Rand, from map[string]V) string {
	keys := slices.Sorted(maps.Keys(from))
	if len(keys) == 0 {
		return ""
	}
	return keys[random.IntN(len(keys))]
}

// depopulate takes everything away that was added: agents end in order, nodes and
// objects are deleted.
func (w *world) depopulate() {
	w.t.Helper()
	p, random := w.people, rand.New(rand.NewPCG(w.seed, 2))
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	p.mu.Lock()
	agents, all := maps.Clone(p.agents), slices.Collect(maps.Values(p.nodes))
	p.mu.Unlock()
	for name, process := range agents {
		p.forget(name)
		process.crash()
		// The removal has a short bound of its own, for processes that end.
		must(w.t, w.until("ending "+process.report, func(ctx context.Context) (string, error) {
			if err := process.reporter.Remove(ctx); err != nil {
				return err.Error(), nil
			}
			return "", nil
		}))
		w.stats.count("reporters ended in order")
	}
	for _, n := range all {
		must(w.t, p.removeNode(w.t.Context(), random, n, true))
	}
	must(w.t, w.objects.removeAll(w.t.Context(), random))
	p.close()
	for _, s := range w.servers {
		closeIdle(s)
	}
}

// explained are the reports that have a reason to be left, with it: those of
// agents that crashed within the last hour (Remove of agent.Reporter was not called).
func (p *population) explained(now time.Time) map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := map[string]bool{}
	for name, since := range p.gone {
		if now.Sub(since) < retention {
			names[name] = true
		}
	}
	return names
}

// addAgent starts an agent; with a name, it takes the place of one that crashed.
func (p *population) addAgent(random *rand.Rand, instance string) error {
	if instance == "" {
		instance = p.name("agent")
	}
	process, err := p.simulate(random, agentComponent, instance, "")
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.agents[instance] = process
	process.before = p.gone[process.report]
	delete(p.gone, process.report)
	p.tellLocked(process)
	return nil
}

// churnReporters starts some agents, ends some in order, and crashes others, some
// of which come back under their names.
func (w *world) churnReporters(ctx context.Context, random *rand.Rand) error {
	p := w.people
	for range 1 + random.IntN(5) {
		p.mu.Lock()
		count, crashed := len(p.agents), pick(random, p.gone)
		name := pick(random, p.agents)
		process := p.agents[name]
		p.mu.Unlock()
		switch what := random.IntN(10); {
		case count < fewestAgents || what < 4 && count < mostAgents:
			if err := p.addAgent(random, ""); err != nil {
				return err
			}
		case what < 6 && crashed != "":
			if err := p.addAgent(random, crashed[len(agentComponent)+1:]); err != nil {
				return err
			}
			p.w.stats.count("reporters back under their names")
		case what < 9:
			p.forget(name)
			if err := process.end(ctx); err != nil {
				// Its server is away. What it leaves, a crash leaves too.
				p.crashed(process)
				p.w.stats.count("reporters ended without a server")
			} else {
				p.ended(ctx, process)
			}
		default:
			p.forget(name)
			process.crash()
			p.crashed(process)
			p.w.stats.count("reporters crashed")
		}
	}
	return nil
}

func (p *population) forget(agent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.agents, agent)
}

// ended is for an agent that ended in order. One that came back under its name and
// ended before it reported took nothing away: what the one before left is still there.
func (p *population) ended(ctx context.Context, process *simulated) {
	p.w.stats.count("reporters ended in order")
	if process.before.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	response, err := p.w.etcd.Get(ctx, reportsKey+process.report, clientv3.WithCountOnly())
	// If etcd is away it may be there.
	if err != nil || response.Count > 0 {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.gone[process.report] = process.before
		p.w.stats.count("reporters ended before they took over")
	}
}

func (p *population) crashed(process *simulated) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone[process.report] = time.Now()
}
