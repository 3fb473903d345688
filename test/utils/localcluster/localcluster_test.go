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
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/test/utils/localcluster/process"
)

func open(t *testing.T, change func(*Config)) *Cluster {
	t.Helper()
	config := Config{DataDir: t.TempDir(), BinDir: t.TempDir(), Nodes: 1}
	if change != nil {
		change(&config)
	}
	c, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// says checks that an error says everything.
func says(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the message does not say %q: %v", text, err)
		}
	}
}

func self(t *testing.T) process.Process {
	t.Helper()
	p, err := process.NewStarter(true).Start(process.Spec{Name: APIServer, Path: "/bin/sleep", Args: []string{"1000"}, LogFile: filepath.Join(t.TempDir(), "log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return p
}

func TestMessagesOfUp(t *testing.T) {
	t.Run("missing binaries", func(t *testing.T) {
		says(t, open(t, nil).Up(t.Context()), "make all", "kube-apiserver")
	})
	t.Run("a cluster that runs", func(t *testing.T) {
		c := open(t, func(config *Config) { config.Only = []string{APIServer} })
		c.state.remember(self(t))
		says(t, c.Up(t.Context()), "running already", c.Command("down"), c.Command("restart"), "admin.kubeconfig")
	})
	t.Run("a cluster that is half dead", func(t *testing.T) {
		c := open(t, nil)
		c.state.remember(self(t))
		c.state.remember(process.Process{Name: Scheduler, PID: 1 << 22, StartTime: 1})
		says(t, c.Up(t.Context()), "half dead", "kube-apiserver run", "kube-scheduler", "do not", c.Command("down"))
		says(t, c.RemoveData(), c.Command("down"))
	})
	t.Run("a cluster whose start was interrupted", func(t *testing.T) {
		c := open(t, nil)
		c.state.remember(self(t))
		says(t, c.Up(t.Context()), "half dead", "kube-scheduler", "do not")
	})
	t.Run("another number of nodes", func(t *testing.T) {
		c := open(t, nil)
		c.state.Nodes, c.state.Ports = 3, map[string]int{Etcd: 1}
		says(t, c.Up(t.Context()), "3 nodes", "--nodes=3")
	})
	t.Run("a port in use", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		port := listener.Addr().(*net.TCPAddr).Port
		c := open(t, func(config *Config) { config.APIServerPort = port })
		c.state.Nodes = 1
		says(t, c.choosePorts(), "kube-apiserver", "--apiserver-port")
	})
	t.Run("a component that dies", func(t *testing.T) {
		bin := t.TempDir()
		if err := os.WriteFile(filepath.Join(bin, "local-up"), []byte("#!/bin/sh\necho no disk left; exit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		says(t, open(t, func(config *Config) { config.BinDir = bin; config.Only = []string{Etcd} }).Up(t.Context()), "etcd died", "no disk left")
	})
}

func TestMessagesOfOpen(t *testing.T) {
	c := open(t, nil)
	_, err := Open(c.config)
	says(t, err, "another local-up")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(Config{DataDir: file})
	says(t, err, "--data-dir")
	dir := t.TempDir()
	if err := os.WriteFile(stateFile(dir), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(Config{DataDir: dir})
	says(t, err, "damaged", dir)
}

func TestRestartNeedsACluster(t *testing.T) {
	c := open(t, nil)
	says(t, c.Restart(t.Context(), nil), c.DataDir(), c.Command("up"))
	c = open(t, nil)
	c.state.Nodes, c.state.Ports = 1, map[string]int{Etcd: 1}
	says(t, c.Restart(t.Context(), nil, "kube-nothing"), "kube-nothing")
}

func TestStateSurvives(t *testing.T) {
	dir := t.TempDir()
	want := &state{Nodes: 2, FeatureGates: "A=true", Ports: map[string]int{Etcd: 5}, Processes: []process.Process{{Name: "a", PID: 1, StartTime: 2, LogFile: "l"}}}
	if err := want.save(dir); err != nil {
		t.Fatal(err)
	}
	got, err := loadState(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected state (-want +got):\n%s", diff)
	}
	got.remember(process.Process{Name: "a", PID: 3})
	got.remember(process.Process{Name: "b"})
	got.forget("b")
	if p, ok := got.find("a"); !ok || p.PID != 3 || len(got.Processes) != 1 {
		t.Errorf("processes %+v", got.Processes)
	}
}

func TestPortsAreKept(t *testing.T) {
	c := open(t, nil)
	c.state.Nodes = 2
	if err := c.choosePorts(); err != nil {
		t.Fatal(err)
	}
	first := c.state.Ports
	seen := map[int]bool{}
	for name, port := range first {
		if port == 0 || seen[port] {
			t.Errorf("port %d of %s", port, name)
		}
		seen[port] = true
	}
	if _, ok := first[Kubelet("node-2")]; !ok {
		t.Errorf("the second kubelet has no port: %v", first)
	}
	if err := c.choosePorts(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, c.state.Ports); diff != "" {
		t.Errorf("ports changed (-before +after):\n%s", diff)
	}
}

func TestArguments(t *testing.T) {
	c := open(t, func(config *Config) { config.ExtraArgs = map[string][]string{Scheduler: {"--extra"}} })
	c.state.Nodes, c.state.FeatureGates = 2, "A=true"
	gates, bound := map[string]bool{}, map[string]bool{}
	var names []string
	for _, component := range c.components() {
		names = append(names, component.name)
		gates[component.name] = slices.Contains(component.args, "--feature-gates=A=true")
		bound[component.name] = slices.Contains(component.args, "--bind-address=127.0.0.1")
		if component.name == Scheduler && !slices.Contains(component.args, "--extra") {
			t.Errorf("extra arguments are missing: %v", component.args)
		}
	}
	want := []string{Etcd, APIServer, ControllerManager, Scheduler, "kubelet/node-1", "kube-proxy/node-1", "kubelet/node-2", "kube-proxy/node-2"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("unexpected components (-want +got):\n%s", diff)
	}
	for _, name := range want {
		if gates[name] != (name != Etcd) {
			t.Errorf("%s gets --feature-gates: %t", name, gates[name])
		}
	}
	for _, name := range []string{APIServer, ControllerManager, Scheduler} {
		if !bound[name] {
			t.Errorf("%s does not listen on loopback", name)
		}
	}
}

// TestDataOutlivesTheMachine: etcd waits for the disk, unless the cluster is thrown away.
func TestDataOutlivesTheMachine(t *testing.T) {
	for _, throwaway := range []bool{false, true} {
		c := open(t, func(config *Config) { config.Throwaway = throwaway })
		if etcd := c.components()[0]; slices.Contains(etcd.args, "--unsafe-no-fsync=true") != throwaway {
			t.Errorf("throwaway is %t, and etcd gets %v", throwaway, etcd.args)
		}
	}
}

func TestEveryComponentHasItsOwnIdentity(t *testing.T) {
	c := open(t, nil)
	c.state.Nodes = 2
	users := map[string]string{}
	for _, i := range c.identities() {
		users[i.name] = i.user
	}
	want := map[string]string{
		"admin": "kubernetes-admin", ControllerManager: "system:kube-controller-manager", Scheduler: "system:kube-scheduler",
		"kubelet/node-1": "system:node:node-1", "kubelet/node-2": "system:node:node-2", "kube-proxy/node-1": "system:kube-proxy", "kube-proxy/node-2": "system:kube-proxy",
	}
	if diff := cmp.Diff(want, users); diff != "" {
		t.Errorf("unexpected identities (-want +got):\n%s", diff)
	}
}
