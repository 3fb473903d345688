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

package docs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// loop reads names of files and runs each, in one shell: what one file exports or
// defines, the next one has. The first command that fails ends the shell.
// Commands have neither the pipe of names nor that of answers: what they leave
// running would keep it open.
const loop = `while IFS= read -r file <&3; do
	source "$file" >"$file.out" 2>&1 </dev/null 3<&- 4>&-
	echo done >&4
done`

// Shell is a bash that runs blocks one after the other. It is for one goroutine.
type Shell struct {
	dir   string
	cmd   *exec.Cmd
	names *os.File
	done  *os.File
	lines *bufio.Scanner
	count int
}

// StartShell starts bash -euo pipefail in a directory. When the context ends, the
// shell is killed with everything that it runs in the foreground. Close ends it.
func StartShell(ctx context.Context, dir string, env []string) (*Shell, error) {
	namesOut, names, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	done, doneIn, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, names.Close(), namesOut.Close())
	}
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", loop)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	cmd.ExtraFiles = []*os.File{namesOut, doneIn}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Start()
	err = errors.Join(err, namesOut.Close(), doneIn.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting bash: %w", err), names.Close(), done.Close())
	}
	return &Shell{dir: dir, cmd: cmd, names: names, done: done, lines: bufio.NewScanner(done)}, nil
}

// Run runs commands and returns what they printed, on both streams. After an
// error, which says that a command failed, the shell is gone.
func (s *Shell) Run(commands string) (string, error) {
	s.count++
	file := filepath.Join(s.dir, fmt.Sprintf(".block-%d", s.count))
	if err := os.WriteFile(file, []byte(commands), 0o600); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintln(s.names, file); err != nil {
		return "", fmt.Errorf("the shell is gone: %w", err)
	}
	ended := !s.lines.Scan()
	output, err := os.ReadFile(file + ".out")
	if ended {
		return string(output), errors.Join(s.Close(), errEnded, err)
	}
	return string(output), err
}

// errEnded: also "exit 0" ends a page too early.
var errEnded = errors.New("the commands ended the shell")

// Close ends the shell when it has nothing more to do, and what its commands left
// running in the background: a page that failed does not come to its own end.
func (s *Shell) Close() error {
	if s.names == nil {
		return nil
	}
	err := errors.Join(s.names.Close(), s.cmd.Wait(), s.done.Close())
	s.names = nil
	// They are in the shell's process group; clusters are not.
	if killed := syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL); !errors.Is(killed, syscall.ESRCH) {
		err = errors.Join(err, killed)
	}
	return err
}
