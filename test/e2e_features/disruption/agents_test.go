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
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// addAgent starts an agent; with a name, it takes the place of one that crashed.
func (p *population) addAgent(random *rand.Rand, instance string) error {
	if instance == "" {
		instance = p.name("agent")
	}
	process, err := p.simulate(random, agent, instance, "")
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
func (p *population) churnReporters(ctx context.Context, random *rand.Rand) error {
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
			if err := p.addAgent(random, crashed[len(agent)+1:]); err != nil {
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
