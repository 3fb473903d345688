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
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// sessionVariable has the executable of the tests run a command in a session of its own.
const sessionVariable = "HOST_TEST_SESSION"

// openTerminal returns both ends of a new terminal.
func openTerminal(t *testing.T) (control, terminal *os.File) {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("the machine gives no terminals: %v", err)
	}
	t.Cleanup(func() { _ = control.Close() })
	if err := unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return control, terminal
}

// TestSession is a process with a terminal, which passes it on to a command and reads from it
// afterwards. It runs in TestCommandHasTerminal only.
func TestSession(t *testing.T) {
	if os.Getenv(sessionVariable) == "" {
		t.Skip("TestCommandHasTerminal runs it in a process of its own")
	}
	// A group that may not read gets an error then, and is not stopped.
	signal.Ignore(syscall.SIGTTIN)
	if !HasTerminal(os.Stdin) {
		t.Fatal("the process has no terminal")
	}
	s := streams{in: os.Stdin, terminal: true, out: os.Stdout, err: os.Stderr}
	const script = `read -r line && echo "command: $line"; exit 3`
	if code := ExitCode(runCommand(t.Context(), []string{"sh", "-c", script}, os.Environ(), s)); code != 3 {
		t.Errorf("the command ended with %d, want 3", code)
	}
	if HasTerminal(os.Stdin) {
		t.Error("the process has the terminal while it is the command's")
	}
	if err := takeBack(os.Stdin); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	fmt.Print("process: ", line)
}

func TestCommandHasTerminal(t *testing.T) {
	control, terminal := openTerminal(t)
	if HasTerminal(terminal) || HasTerminal(nil) {
		t.Error("the terminal of another session is this process' own")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestSession$", "-test.v")
	cmd.Env = append(os.Environ(), sessionVariable+"=y")
	var out strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The terminal keeps the lines until they are read.
	if _, err := control.WriteString("first\nsecond\n"); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"command: first\n", "process: second\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output is %q, want %q in it", out.String(), want)
		}
	}
}

// TestCommandReadsPipe has an input that is no terminal.
func TestCommandReadsPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("line\n"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := runCommand(t.Context(), []string{"cat"}, os.Environ(), streams{in: r, out: &out}); err != nil || out.String() != "line\n" {
		t.Errorf("the command wrote %q, %v", out.String(), err)
	}
}
