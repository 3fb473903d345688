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
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// grace is the time that a process has to end after SIGTERM.
const grace = 30 * time.Second

// runCommand runs a command in a process group of its own. Without the terminal, signals of
// that reach it through ctx only. Its group ends with it.
func runCommand(ctx context.Context, command, env []string, s streams) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = env
	s.connect(cmd)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start the command: %w", err)
	}
	left := endGroup(cmd.Process.Pid)
	err := cmd.Wait()
	return errors.Join(CommandError(err), left)
}

// CommandError makes an ExitError of that of a command which failed.
func CommandError(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &ExitError{exitCode(exit.Sys().(syscall.WaitStatus))}
	}
	return err
}

// endGroup waits for the first process of a group to end, then kills the others. The
// first one is not reaped, so that no other group can have its number.
func endGroup(leader int) error {
	for {
		err := unix.Waitid(unix.P_PID, leader, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil {
			err = syscall.Kill(-leader, syscall.SIGKILL)
		}
		if err != nil {
			return fmt.Errorf("cannot end what the command has left running: %w", err)
		}
		return nil
	}
}

func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return signaled + int(status.Signal())
	}
	return status.ExitStatus()
}
