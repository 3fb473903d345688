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

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"k8s.io/kubernetes-features/test/utils/localcluster/process"
)

// stopGrace is the time that a component may take to end in order.
const stopGrace = 30 * time.Second

// Down ends every process of the cluster, the last one first, and returns when
// all are gone. The data stays.
func (c *Cluster) Down(ctx context.Context) error {
	var names []string
	for _, p := range c.state.Processes {
		names = append(names, p.Name)
	}
	return c.stop(ctx, names)
}

// stop ends components. Those that need kube-apiserver end together before it,
// kube-apiserver before etcd.
func (c *Cluster) stop(ctx context.Context, names []string) error {
	groups := [][]string{nil, nil, nil}
	for _, name := range names {
		switch {
		case name == Etcd || strings.HasPrefix(name, runtimePrefix):
			groups[2] = append(groups[2], name)
		case isServer(name):
			groups[1] = append(groups[1], name)
		default:
			groups[0] = append(groups[0], name)
		}
	}
	for _, group := range groups {
		if err := c.stopTogether(ctx, group); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) stopTogether(ctx context.Context, names []string) error {
	type result struct {
		process process.Process
		killed  bool
		err     error
	}
	results := make(chan result)
	count := 0
	for _, name := range names {
		if p, ok := c.state.find(name); ok {
			count++
			go func() {
				killed, err := p.Stop(ctx, stopGrace)
				results <- result{p, killed, err}
			}()
		}
	}
	var errs []error
	for range count {
		r := <-results
		errs = append(errs, r.err)
		if r.killed {
			c.progress("%s did not end within %s and was killed; the end of %s:\n%s", r.process.Name, stopGrace, r.process.LogFile, r.process.Tail(tailLines))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, name := range names {
		c.state.forget(name)
	}
	return c.state.save(c.config.DataDir)
}

// Stop ends components in order.
func (c *Cluster) Stop(ctx context.Context, names ...string) error {
	return c.stop(ctx, names)
}

// Kill ends a component at once, as a crash would.
func (c *Cluster) Kill(ctx context.Context, name string) error {
	p, ok := c.state.find(name)
	if !ok {
		return fmt.Errorf("component %s does not run", name)
	}
	return p.Kill(ctx)
}

// Signal sends a component a signal, for example SIGSTOP: a process that is
// paused as that of a machine that is moved.
func (c *Cluster) Signal(name string, signal unix.Signal) error {
	p, ok := c.state.find(name)
	if !ok {
		return fmt.Errorf("component %s does not run", name)
	}
	return p.Signal(signal)
}
