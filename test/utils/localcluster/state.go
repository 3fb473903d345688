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
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"k8s.io/kubernetes-features/test/utils/localcluster/process"
)

// state is what a cluster's data directory knows of the cluster.
type state struct {
	// Nodes is the number of nodes the cluster has.
	Nodes int `json:"nodes"`
	// RealNodes is true when they are real kubelets and kube-proxies.
	RealNodes bool `json:"realNodes,omitempty"`
	// NodeIP is the address of real nodes.
	NodeIP string `json:"nodeIP,omitempty"`
	// Servers is how many kube-apiservers there are, Replicas how many
	// controller managers and schedulers; 0 means 1.
	Servers  int `json:"servers,omitempty"`
	Replicas int `json:"replicas,omitempty"`
	// FeatureGates is what all components were started with last.
	FeatureGates string `json:"featureGates"`
	// Control has the latest options of the control plane.
	Control ControlOptions `json:"control,omitzero"`
	// Ports are the ports of the components, kept across restarts.
	Ports map[string]int `json:"ports"`
	// Processes are those that were started last and not stopped, in order of
	// their start.
	Processes []process.Process `json:"processes"`
}

func (s *state) servers() int  { return max(s.Servers, 1) }
func (s *state) replicas() int { return max(s.Replicas, 1) }

func stateFile(dir string) string { return filepath.Join(dir, "state.json") }

// loadState reads the state, an empty one when there is none.
func loadState(dir string) (*state, error) {
	s := &state{Ports: map[string]int{}}
	data, err := os.ReadFile(stateFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("%s is damaged (%w); end the cluster's processes, remove %s and start again", stateFile(dir), err, dir)
	}
	return s, nil
}

// save writes the state so that a crash leaves the old or the new one.
func (s *state) save(dir string) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	temporary := stateFile(dir) + ".new"
	if err := os.WriteFile(temporary, data, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, stateFile(dir))
}

// find returns the process of a component, and whether there is one.
func (s *state) find(name string) (process.Process, bool) {
	for _, p := range s.Processes {
		if p.Name == name {
			return p, true
		}
	}
	return process.Process{}, false
}

// remember puts a process in the place of the one of the same name.
func (s *state) remember(p process.Process) {
	s.forget(p.Name)
	s.Processes = append(s.Processes, p)
}

func (s *state) forget(name string) {
	kept := s.Processes[:0]
	for _, p := range s.Processes {
		if p.Name != name {
			kept = append(kept, p)
		}
	}
	s.Processes = kept
}

// partition separates the processes that run from those that do not.
func (s *state) partition() (alive, dead []string) {
	for _, p := range s.Processes {
		if p.Alive() {
			alive = append(alive, p.Name)
		} else {
			dead = append(dead, p.Name)
		}
	}
	return alive, dead
}

// lock keeps other commands away from the data directory until it is released.
func lock(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("the data directory cannot be used: %w; choose another with --data-dir", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("the data directory cannot be written: %w; choose another with --data-dir", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, inUse("another local-up is working on %s; wait for it to end", dir)
		}
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return func() { file.Close() }, nil
}
