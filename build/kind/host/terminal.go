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
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// streams are those of a command.
type streams struct {
	// in is nil for a command without input.
	in *os.File
	// terminal is true where in is the terminal that the command gets (HasTerminal).
	terminal bool
	out, err io.Writer
}

func (o Options) streams() streams {
	return streams{in: o.Stdin, terminal: o.terminal, out: o.Stdout, err: o.Stderr}
}

// connect gives a command the streams, and a process group of its own. Signals of a
// terminal reach that group only where it has the terminal: one process group at a time
// may read from it.
func (s streams) connect(cmd *exec.Cmd) {
	cmd.Stdout, cmd.Stderr = s.out, s.err
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if s.in == nil {
		return
	}
	cmd.Stdin = s.in
	if s.terminal {
		cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, int(s.in.Fd())
	}
}

// HasTerminal returns true when a file is the terminal of this process, and its process group
// is the one that reads from it: not in the background of a shell.
func HasTerminal(f *os.File) bool {
	if f == nil {
		return false
	}
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// takeBack makes this process' group the one that reads from the terminal, after a command
// that had it. The signal would stop this process for that.
func takeBack(f *os.File) error {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	err := unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
	if err == nil || errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EIO) {
		// It has been closed meanwhile.
		return nil
	}
	return fmt.Errorf("cannot take the terminal back from the command: %w", err)
}
