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

package host

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// request is what the first process of the namespaces is told.
type request struct {
	Dir     string   `json:"dir"`
	Dockerd string   `json:"dockerd"`
	Runtime string   `json:"runtime,omitempty"`
	Cgroup  string   `json:"cgroup"`
	Command []string `json:"command"`
	// Input has the command read what the process reads, and Terminal is true where that is
	// the terminal that the command gets.
	Input    bool `json:"input,omitempty"`
	Terminal bool `json:"terminal,omitempty"`
}

// streams are those of the command.
func (r request) streams() streams {
	s := streams{terminal: r.Terminal, out: os.Stdout, err: os.Stderr}
	if r.Input {
		s.in = os.Stdin
	}
	return s
}

// result is what it answers. Its error is one of the daemon, Exit the command's.
type result struct {
	Exit  int    `json:"exit"`
	Error string `json:"error,omitempty"`
}

func (r result) err() error {
	var errs []error
	if r.Exit != 0 {
		errs = append(errs, &ExitError{r.Exit})
	}
	if r.Error != "" {
		errs = append(errs, errors.New(r.Error))
	}
	return errors.Join(errs...)
}

// withOwn runs the command in namespaces with a daemon.
func withOwn(ctx context.Context, o Options, lacking []string) error {
	r, err := newRequest(o, lacking)
	if err != nil {
		return err
	}
	u := undo{Cgroup: r.Cgroup}
	return observed(ctx, o, u, func() error {
		for _, dir := range hiddenDirs {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("cannot make a place for the daemon's files: %w", err)
			}
		}
		return startNamespaces(ctx, o, r)
	})
}

// newRequest refuses what the machine lacks for a daemon.
func newRequest(o Options, lacking []string) (request, error) {
	// Processes in other namespaces may have the same number.
	r := request{Dir: o.Dir, Command: o.Command, Input: o.Stdin != nil, Terminal: o.terminal, Cgroup: fmt.Sprintf("/kubernetes-features-kind-%d-%s", os.Getpid(), rand.Text())}
	var err error
	if r.Dockerd, err = findDockerd(); err != nil || len(lacking) == 0 {
		return r, err
	}
	if _, err := os.Stat(o.Runtime); err != nil {
		return r, fmt.Errorf("the machine withholds %s, and there is no runtime that does without: %w; build build/kind/capless and name it", strings.Join(lacking, ", "), err)
	}
	r.Runtime, err = filepath.Abs(o.Runtime)
	return r, err
}

// findDockerd returns the program of the daemon. It fails where that cannot be started, or
// cannot run containers.
func findDockerd() (string, error) {
	if os.Geteuid() != 0 {
		return "", errors.New("cannot start a Docker daemon: it needs root; run this as root, or start a daemon that \"docker version\" reaches")
	}
	dockerd, err := exec.LookPath("dockerd")
	if err != nil {
		return "", fmt.Errorf("cannot start a Docker daemon: %w; install Debian's docker.io", err)
	}
	for _, program := range []string{"docker", "containerd", "runc", "iptables"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("cannot run containers: %w; install Debian's docker.io and iptables", err)
		}
	}
	return dockerd, nil
}

// startNamespaces starts this program as the first process of new namespaces, and
// returns when all of their processes have ended.
func startNamespaces(ctx context.Context, o Options, r request) error {
	told, err := json.Marshal(r)
	if err != nil {
		return err
	}
	answer, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer answer.Close()
	cmd := exec.Command("/proc/self/exe", initCommand, string(told))
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = o.Env, o.Stdout, o.Stderr, []*os.File{write}
	if o.Stdin != nil {
		cmd.Stdin = o.Stdin
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID,
		// A terminal's signals reach it through ctx only.
		Setpgid: true,
		// All end when this process is killed.
		Pdeathsig: syscall.SIGKILL,
	}
	// The signal is sent when the thread ends that has started the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Start()
	write.Close()
	if err != nil {
		return fmt.Errorf("cannot start a process in new namespaces: %w; the machine has to let root make them (CAP_SYS_ADMIN)", err)
	}
	finished := make(chan struct{})
	defer context.AfterFunc(ctx, func() { terminate(cmd.Process, finished) })()
	ended := cmd.Wait()
	close(finished)
	var got result
	if err := json.NewDecoder(answer).Decode(&got); err != nil {
		if ctx.Err() != nil {
			// The signal came before there was a handler for it.
			return ctx.Err()
		}
		return fmt.Errorf("the namespaces ended without a result: %w; read %s", errors.Join(ended, err), logFile(r.Dir))
	}
	return got.err()
}

// terminate sends SIGTERM until the process has ended: the first process of a
// namespace ignores signals before it has a handler for them.
func terminate(p *os.Process, finished <-chan struct{}) {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		// It fails for a process that has ended.
		_ = p.Signal(syscall.SIGTERM)
		select {
		case <-finished:
			return
		case <-again.C:
		}
	}
}
