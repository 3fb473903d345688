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

// Package process starts, recognizes and ends the processes of a local cluster.
// Processes may outlive the command that started them, so a process is known by
// its id together with its start time: a reused id is never signaled. Linux
// only; no root.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a process that was started at some time, perhaps by another
// command. The zero value is no process.
type Process struct {
	// Name is the component, for example kube-apiserver.
	Name string `json:"name"`
	// PID is its id.
	PID int `json:"pid"`
	// StartTime is the time at which it started, in clock ticks since the machine did
	// (proc(5), field 22 of stat).
	StartTime uint64 `json:"startTime"`
	// LogFile has what it printed.
	LogFile string `json:"logFile"`
}

// Spec describes the process to start.
type Spec struct {
	// Name is the component.
	Name string
	// Path and Args are the command.
	Path string
	Args []string
	// Env is added to this process's environment.
	Env []string
	// Dir is the working directory.
	Dir string
	// Hostname is the name of the host that the process finds itself on, ""
	// for this machine's. Another one needs root.
	Hostname string
	// LogFile gets what the process prints, after what is there.
	LogFile string
}

// Starter starts processes.
type Starter struct {
	// requests are served by a goroutine that keeps its thread, see NewStarter.
	requests chan func()
}

// NewStarter makes a starter. With dieWithParent the processes are killed when
// this process ends in whatever way; otherwise they outlive it. The kernel ties
// that to the thread that started them, so one thread starts them all and is
// kept for as long as this process lives.
func NewStarter(dieWithParent bool) *Starter {
	if !dieWithParent {
		return &Starter{}
	}
	s := &Starter{requests: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for request := range s.requests {
			request()
		}
	}()
	return s
}

// Start starts a process in a session of its own.
func (s *Starter) Start(spec Spec) (Process, error) {
	if s.requests == nil {
		return startOnHost(spec, 0)
	}
	var process Process
	var err error
	done := make(chan struct{})
	s.requests <- func() {
		defer close(done)
		process, err = startOnHost(spec, syscall.SIGKILL)
	}
	<-done
	return process, err
}

// startOnHost gives the process a host name of its own if it wants one: its
// thread takes the name for as long as it starts the process, which inherits it.
func startOnHost(spec Spec, deathSignal syscall.Signal) (Process, error) {
	if spec.Hostname == "" {
		return start(spec, deathSignal)
	}
	runtime.LockOSThread()
	own, err := os.Open("/proc/thread-self/ns/uts")
	if err != nil {
		runtime.UnlockOSThread()
		return Process{}, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	defer own.Close()
	if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
		runtime.UnlockOSThread()
		return Process{}, fmt.Errorf("starting %s on a host name of its own needs root: %w", spec.Name, err)
	}
	process, err := Process{}, unix.Sethostname([]byte(spec.Hostname))
	if err == nil {
		process, err = start(spec, deathSignal)
	}
	if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWUTS); back != nil {
		// The thread stays locked: it must not go on under another name. The
		// process would not be recorded.
		return Process{}, errors.Join(err, process.Kill(context.Background()), fmt.Errorf("after starting %s, the host's own name: %w", spec.Name, back))
	}
	runtime.UnlockOSThread()
	return process, err
}

func start(spec Spec, deathSignal syscall.Signal) (Process, error) {
	if err := os.MkdirAll(filepath.Dir(spec.LogFile), 0o755); err != nil {
		return Process{}, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	log, err := os.OpenFile(spec.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return Process{}, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	defer log.Close()
	fmt.Fprintf(log, "--- %s %s %s\n", time.Now().UTC().Format(time.RFC3339), spec.Path, strings.Join(spec.Args, " "))
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Dir = spec.Dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: deathSignal}
	// Files that this process was started with, such as the lock of flock(1), would
	// be held as long as the cluster lives. Kernels before 5.11 cannot tell.
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err := cmd.Start(); err != nil {
		return Process{}, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	// Reap it if it ends while this process lives.
	go func() { _ = cmd.Wait() }()
	process := Process{Name: spec.Name, PID: cmd.Process.Pid, LogFile: spec.LogFile}
	// A process that has died already has no start time and is not alive.
	process.StartTime, _, _ = stat(process.PID)
	return process, nil
}

// stat reads start time and state of a process.
func stat(pid int) (startTime uint64, state byte, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The command's name, in parentheses, may contain anything.
	end := bytes.LastIndexByte(data, ')')
	fields := strings.Fields(string(data[end+1:]))
	if end < 0 || len(fields) < 20 {
		return 0, 0, fmt.Errorf("/proc/%d/stat has an unknown form", pid)
	}
	startTime, err = strconv.ParseUint(fields[19], 10, 64)
	return startTime, fields[0][0], err
}

// Alive is true while the process runs; not for another one of the same id, and
// not for one that has ended and was not yet waited for.
func (p Process) Alive() bool {
	if p.PID <= 0 || p.StartTime == 0 {
		return false
	}
	startTime, state, err := stat(p.PID)
	return err == nil && startTime == p.StartTime && state != 'Z' && state != 'X'
}

// Stop asks the process to end, kills it when it has not ended by the time the
// grace period is over, and waits until it is gone. It returns whether it had to
// kill it.
func (p Process) Stop(ctx context.Context, grace time.Duration) (killed bool, err error) {
	return p.end(ctx, unix.SIGTERM, grace)
}

// Kill ends the process at once and waits until it is gone.
func (p Process) Kill(ctx context.Context) error {
	_, err := p.end(ctx, unix.SIGKILL, 0)
	return err
}

// Signal sends the process a signal and does not wait for what it does.
func (p Process) Signal(signal unix.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return fmt.Errorf("signaling %s (%d): %w", p.Name, p.PID, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if !p.Alive() {
		return fmt.Errorf("%s (%d) has ended and takes no signal", p.Name, p.PID)
	}
	return unix.PidfdSendSignal(fd, signal, nil, 0)
}

func (p Process) end(ctx context.Context, signal unix.Signal, grace time.Duration) (killed bool, err error) {
	// The descriptor stands for this very process, whatever becomes of its id.
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) || p.PID <= 0 {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("stopping %s (%d): %w", p.Name, p.PID, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if !p.Alive() {
		return false, nil
	}
	if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return false, fmt.Errorf("stopping %s (%d): %w", p.Name, p.PID, err)
	}
	if signal != unix.SIGKILL {
		ended, err := wait(ctx, fd, grace)
		if err != nil || ended {
			return false, err
		}
		killed = true
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return killed, fmt.Errorf("killing %s (%d): %w", p.Name, p.PID, err)
		}
	}
	// A killed process is gone once the kernel has taken it down.
	if ended, err := wait(ctx, fd, time.Minute); err != nil || !ended {
		return killed, errors.Join(err, fmt.Errorf("%s (%d) does not end although it was killed", p.Name, p.PID))
	}
	return killed, nil
}

// wait returns true once the process behind the descriptor has ended.
func wait(ctx context.Context, fd int, limit time.Duration) (bool, error) {
	deadline := time.Now().Add(limit)
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		left := time.Until(deadline)
		if left <= 0 {
			return false, nil
		}
		// Short enough to notice that the context ended.
		slice := min(left, 250*time.Millisecond)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(slice.Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false, err
		}
		if n > 0 {
			return true, nil
		}
	}
}

// Tail returns the last lines of a process's log, for messages.
func (p Process) Tail(lines int) string {
	data, err := os.ReadFile(p.LogFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "(no log)"
	}
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}
