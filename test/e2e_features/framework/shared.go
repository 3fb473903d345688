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

package framework

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"

	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// Shared is one cluster for the tests of a package that neither start nor end its
// processes, and that leave behind what other tests do not see. Each of them is
// selected and run by itself all the same. The first test that needs the cluster
// starts it.
type Shared struct {
	config   localcluster.Config
	progress progress

	mu    sync.Mutex
	dir   string
	local *localcluster.Cluster
	err   error
}

// NewShared makes one that has not started. Config needs neither directories nor
// DieWithParent.
func NewShared(config localcluster.Config) *Shared { return &Shared{config: config} }

// Run runs the tests of a package and ends the cluster, for TestMain. It returns
// the exit code.
func (s *Shared) Run(m *testing.M) int {
	code := m.Run()
	if err := s.end(); err != nil {
		fmt.Fprintln(os.Stderr, "ending the cluster that the tests share:", err)
		return max(code, 1)
	}
	return code
}

// Cluster returns the cluster with clients for one test.
func (s *Shared) Cluster(t testing.TB) *Cluster {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.local == nil && s.err == nil {
		s.err = s.start(t)
	}
	if s.err != nil {
		t.Fatalf("starting the cluster that the tests share: %v", s.err)
	}
	c := &Cluster{Cluster: s.local, t: t}
	t.Cleanup(func() {
		if t.Failed() {
			c.showLogs()
		}
	})
	c.connect(c.Kubeconfig("admin"))
	return c
}

// start needs the lock.
func (s *Shared) start(t testing.TB) error {
	t.Helper()
	var err error
	if s.dir, err = os.MkdirTemp("", "kf"); err != nil {
		return err
	}
	s.progress.to(t.Output())
	defer s.progress.to(io.Discard)
	s.config.DataDir, s.config.BinDir = s.dir, BinDir(t)
	s.config.DieWithParent, s.config.Throwaway, s.config.Progress = true, true, &s.progress
	if s.local, err = localcluster.Open(s.config); err != nil {
		return err
	}
	return s.local.Up(t.Context())
}

func (s *Shared) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if s.local != nil {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		errs = append(errs, s.local.Down(ctx))
		s.local.Close()
	}
	if s.dir != "" {
		errs = append(errs, unmount(s.dir), os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// progress passes on what a cluster says of its start to the test that started
// it. Nothing may be written to a test that has ended.
type progress struct {
	mu     sync.Mutex
	output io.Writer
}

func (p *progress) to(output io.Writer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.output = output
}

// Write implements io.Writer.
func (p *progress) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.Write(data)
}
