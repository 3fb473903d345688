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
	"io"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes-features/test/utils/localcluster/process"
)

// Config describes the cluster to run.
type Config struct {
	// DataDir has everything the cluster writes.
	DataDir string
	// BinDir has the binaries.
	BinDir string
	// Nodes is how many nodes a new cluster gets.
	Nodes int
	// RealNodes makes the nodes real kubelets, on a fake container runtime, and
	// real kube-proxies with nftables. That needs root and a network namespace
	// of the caller's own: they change mounts, rules and settings around them.
	RealNodes bool
	// NodeIP is the address of real nodes. Without it a kubelet asks the name
	// service.
	NodeIP string
	// Servers is how many kube-apiservers a new cluster gets, Replicas how many
	// controller managers and schedulers; 0 means 1. Several servers need root.
	Servers, Replicas int
	// FeatureGates are given to all components: A=true,B=false.
	FeatureGates string
	// Control has further options of the control plane.
	Control ControlOptions
	// APIServerPort is kube-apiserver's port; 0 means the one it had, or a free
	// one.
	APIServerPort int
	// Only limits the cluster to these components; empty means all.
	Only []string
	// ExtraArgs are added to a component's arguments.
	ExtraArgs map[string][]string
	// Binaries replaces the binary of a component by another file.
	Binaries map[string]string
	// Throwaway clusters may lose data when the machine crashes, and do not wait
	// for its disk. Processes may crash.
	Throwaway bool
	// DieWithParent kills the processes when this one ends, however it ends.
	DieWithParent bool
	// Progress gets a line for each step; nil means none.
	Progress io.Writer
}

// Cluster is a cluster in a data directory. It is for one goroutine.
type Cluster struct {
	config  Config
	state   *state
	starter *process.Starter
	release func()
	// etcdOf is where servers reach etcd that do not reach it directly.
	etcdOf map[string]string
}

// Open takes hold of a data directory. Close gives it back.
func Open(config Config) (*Cluster, error) {
	var err error
	if config.DataDir, err = filepath.Abs(config.DataDir); err != nil {
		return nil, err
	}
	if config.BinDir, err = filepath.Abs(config.BinDir); err != nil {
		return nil, err
	}
	if config.Progress == nil {
		config.Progress = io.Discard
	}
	release, err := lock(config.DataDir)
	if err != nil {
		return nil, err
	}
	s, err := loadState(config.DataDir)
	if err != nil {
		release()
		return nil, err
	}
	return &Cluster{config: config, state: s, starter: process.NewStarter(config.DieWithParent), release: release}, nil
}

// Close gives the data directory back. The cluster keeps running.
func (c *Cluster) Close() { c.release() }

// Exists is true when the data directory has a cluster, running or not.
func (c *Cluster) Exists() bool { return len(c.state.Ports) > 0 }

// Running returns the components that run, and those that should and do not: an
// interrupted start leaves some that were never started.
func (c *Cluster) Running() (alive, dead []string) {
	alive, dead = c.state.partition()
	if len(c.state.Processes) == 0 {
		return nil, nil
	}
	for _, component := range c.wanted(c.config.Only) {
		if _, ok := c.state.find(component.name); !ok {
			dead = append(dead, component.name)
		}
	}
	return alive, dead
}

// FeatureGates is what the components were started with last.
func (c *Cluster) FeatureGates() string { return c.state.FeatureGates }

// ErrInUse is what errors are when a directory belongs to a cluster that runs, or to
// another process that works on it: nothing was started, and nothing may be ended.
var ErrInUse = errors.New("the data directory is in use")

// inUseError is one with a message of its own.
type inUseError string

func (e inUseError) Error() string { return string(e) }

func (inUseError) Is(target error) bool { return target == ErrInUse }

func inUse(format string, args ...any) error { return inUseError(fmt.Sprintf(format, args...)) }

// Up starts the cluster and returns when it is ready. Data of an earlier run is
// kept. The error is ErrInUse if it runs, or a part of it.
func (c *Cluster) Up(ctx context.Context) error {
	alive, dead := c.Running()
	switch {
	case len(alive) > 0 && len(dead) > 0:
		return inUse("the cluster in %s is half dead: %s run, %s do not; end it with \"%s\" and look at the logs in %s",
			c.config.DataDir, strings.Join(alive, ", "), strings.Join(dead, ", "), c.Command("down"), c.logDir())
	case len(alive) > 0:
		return inUse("the cluster in %s is running already; use it with --kubeconfig %s, restart it with \"%s\", or end it with \"%s\"",
			c.config.DataDir, quoted(c.Kubeconfig("admin")), c.Command("restart"), c.Command("down"))
	}
	if c.Exists() && c.config.Nodes != c.state.Nodes {
		return fmt.Errorf("the cluster in %s has %d nodes, not %d; use --nodes=%d, or remove the directory for a new cluster",
			c.config.DataDir, c.state.Nodes, c.config.Nodes, c.state.Nodes)
	}
	c.state.Nodes, c.state.RealNodes = c.config.Nodes, c.config.RealNodes
	c.state.NodeIP = c.config.NodeIP
	c.state.Servers, c.state.Replicas = c.config.Servers, c.config.Replicas
	c.state.FeatureGates = c.config.FeatureGates
	c.state.Control = c.config.Control
	c.state.Processes = nil
	if err := c.prepare(); err != nil {
		return err
	}
	return c.start(ctx, c.wanted(c.config.Only))
}

// prepare makes sure that everything is there that processes need.
func (c *Cluster) prepare() error {
	var missing []string
	for _, component := range c.wanted(c.config.Only) {
		if _, err := os.Stat(c.binary(component)); err != nil {
			missing = append(missing, c.binary(component))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("binaries are missing; build them with \"make all\": %s", strings.Join(missing, ", "))
	}
	if err := c.choosePorts(); err != nil {
		return err
	}
	if err := c.certify(); err != nil {
		return err
	}
	for i := range c.state.Nodes {
		node := NodeName(i + 1)
		if err := os.MkdirAll(c.nodeDir(node), 0o755); err != nil {
			return err
		}
		if c.state.RealNodes {
			if err := c.configureRealNode(node); err != nil {
				return err
			}
		}
	}
	return c.state.save(c.config.DataDir)
}

// wanted are the components of the given names, all of them for none, in the
// order of their start.
func (c *Cluster) wanted(names []string) []component {
	all := c.components()
	if len(names) == 0 {
		return all
	}
	var result []component
	for _, component := range all {
		for _, name := range names {
			if component.name == name {
				result = append(result, component)
			}
		}
	}
	return result
}

func (c *Cluster) binary(component component) string {
	if other := c.config.Binaries[component.name]; other != "" {
		return other
	}
	return filepath.Join(c.config.BinDir, component.binary)
}

func (c *Cluster) nodeDir(node string) string { return filepath.Join(c.config.DataDir, "nodes", node) }

func (c *Cluster) logDir() string { return filepath.Join(c.config.DataDir, "logs") }

// start starts components in their order and waits until they are ready. The
// ones that need kube-apiserver start together once it is.
func (c *Cluster) start(ctx context.Context, components []component) error {
	if _, set := c.state.Control.split(c.state.FeatureGates); len(set) > 0 {
		c.progress("not dynamic, since a feature gate sets them: %s", strings.Join(set, ", "))
	}
	var started []component
	for _, component := range components {
		if err := c.launch(component); err != nil {
			return err
		}
		if component.name == Etcd || isServer(component.name) || strings.HasPrefix(component.name, runtimePrefix) {
			if err := c.waitReady(ctx, component); err != nil {
				return err
			}
			continue
		}
		started = append(started, component)
	}
	return c.waitAllReady(ctx, started)
}

func (c *Cluster) waitAllReady(ctx context.Context, components []component) error {
	for _, component := range components {
		if err := c.waitReady(ctx, component); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) launch(component component) error {
	p, err := c.starter.Start(process.Spec{
		Name:     component.name,
		Path:     c.binary(component),
		Args:     component.args,
		Env:      component.env,
		Dir:      c.config.DataDir,
		Hostname: component.hostname,
		LogFile:  filepath.Join(c.logDir(), strings.ReplaceAll(component.name, "/", "-")+".log"),
	})
	if err != nil {
		return err
	}
	c.state.remember(p)
	return c.state.save(c.config.DataDir)
}

// Restart ends and starts components, all but etcd if none are named. Gates, if
// not nil, are what they are started with from now on.
func (c *Cluster) Restart(ctx context.Context, gates *string, names ...string) error {
	if !c.Exists() {
		return c.noCluster()
	}
	if gates != nil {
		c.state.FeatureGates = *gates
	}
	if len(names) == 0 {
		for _, component := range c.wanted(c.config.Only) {
			if component.name != Etcd {
				names = append(names, component.name)
			}
		}
	}
	components := c.wanted(names)
	if len(components) != len(names) {
		return fmt.Errorf("the cluster has no component of that name: %s", strings.Join(names, ", "))
	}
	if err := c.stop(ctx, names); err != nil {
		return err
	}
	c.progress("stopped %s", strings.Join(names, ", "))
	if etcd, ok := c.state.find(Etcd); (!ok || !etcd.Alive()) && len(c.wanted([]string{Etcd})) > 0 {
		components = append(c.wanted([]string{Etcd}), components...)
	}
	return c.start(ctx, components)
}

// Start starts components that do not run, in the order of their start.
func (c *Cluster) Start(ctx context.Context, names ...string) error {
	return c.start(ctx, c.wanted(names))
}

// RestartTogether is Restart for servers that start at the same time, which is
// quicker than one after the other where several are to change.
func (c *Cluster) RestartTogether(ctx context.Context, gates string, names ...string) error {
	c.state.FeatureGates = gates
	if err := c.stop(ctx, names); err != nil {
		return err
	}
	components := c.wanted(names)
	for _, component := range components {
		if err := c.launch(component); err != nil {
			return err
		}
	}
	return c.waitAllReady(ctx, components)
}

// RemoveData removes everything the cluster wrote. No process may run.
func (c *Cluster) RemoveData() error {
	if alive, _ := c.Running(); len(alive) > 0 {
		return fmt.Errorf("the cluster in %s runs: %s; end it first, with \"%s\"", c.config.DataDir, strings.Join(alive, ", "), c.Command("down"))
	}
	// The lock is held on a file in the directory, which therefore stays.
	for _, name := range []string{"etcd", "kubeconfig", "logs", "nodes", "pki", "admin.kubeconfig", "state.json"} {
		if err := os.RemoveAll(filepath.Join(c.config.DataDir, name)); err != nil {
			return err
		}
	}
	c.state = &state{Ports: map[string]int{}}
	return nil
}

// SetArgs replaces the extra arguments of a component, for its next start.
func (c *Cluster) SetArgs(name string, args ...string) {
	if c.config.ExtraArgs == nil {
		c.config.ExtraArgs = map[string][]string{}
	}
	c.config.ExtraArgs[name] = args
}

// SetEtcd makes a kube-apiserver reach etcd at another URL, from its next start:
// something that stands between them.
func (c *Cluster) SetEtcd(server, url string) {
	if c.etcdOf == nil {
		c.etcdOf = map[string]string{}
	}
	c.etcdOf[server] = url
}

// Log returns the last lines of a component's log.
func (c *Cluster) Log(name string, lines int) string {
	p, ok := c.state.find(name)
	if !ok {
		p.LogFile = filepath.Join(c.logDir(), strings.ReplaceAll(name, "/", "-")+".log")
	}
	return p.Tail(lines)
}

// Processes are the processes of the cluster, in the order of their start.
func (c *Cluster) Processes() []process.Process { return c.state.Processes }

// RESTConfig returns how a component, or "admin", reaches the server.
func (c *Cluster) RESTConfig(name string) (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", c.Kubeconfig(name))
}

func (c *Cluster) progress(format string, args ...any) {
	fmt.Fprintf(c.config.Progress, "  "+format+"\n", args...)
}
