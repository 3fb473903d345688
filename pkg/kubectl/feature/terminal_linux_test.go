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

package feature

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
)

// terminal opens a pseudo terminal of a width: output of process is read from
// screen.
func terminal(t *testing.T, columns uint16) (screen, process *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { screen.Close() })
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	process, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Close() })
	if err := unix.IoctlSetWinsize(int(process.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	return screen, process
}

// read reads what is on the screen once the end of it was written.
func read(t *testing.T, screen *os.File, end string) string {
	t.Helper()
	var text bytes.Buffer
	part := make([]byte, 4096)
	for !strings.Contains(text.String(), end) {
		n, err := screen.Read(part)
		if err != nil {
			t.Fatalf("after %q: %v", text.String(), err)
		}
		text.Write(part[:n])
	}
	return text.String()
}

// TestInATerminal has a command write to a real one.
func TestInATerminal(t *testing.T) {
	t.Setenv("KUBECONFIG", "none")
	t.Setenv("TERM", "xterm")
	for _, noColor := range []string{"", "1"} {
		t.Setenv("NO_COLOR", noColor)
		screen, process := terminal(t, 40)
		c := newCluster(t, danglingFeature("A"))
		b := newBase(genericiooptions.IOStreams{In: process, Out: process, ErrOut: process})
		b.connect = func(*rest.Config) (versioned.Interface, error) { return c.client, nil }
		if code := b.run(t.Context(), []string{"list", "--server=https://localhost"}); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		out := read(t, screen, "26h")
		if got := strings.Contains(out, "\x1b[31mA "); got != (noColor == "") {
			t.Errorf("with NO_COLOR=%q, color is %t: %q", noColor, got, out)
		}

		p := b.progress()
		if !p.live || p.width() != 40 {
			t.Errorf("people watch: %t, on %d columns", p.live, p.width())
		}
		f := turningOff("A")
		f.Status.State = v1alpha1.StateTurningOff
		p.of(f)
		p.end()
		if line := strings.TrimSpace(strings.Split(read(t, screen, "…"), "\x1b[K")[1]); len([]rune(line)) != 39 {
			t.Errorf("a line of %d characters wraps: %q", len([]rune(line)), line)
		}
	}
}

// TestDiffIsInterruptedOnAPipe that is idle, as with <(command) of a shell.
func TestDiffIsInterruptedOnAPipe(t *testing.T) {
	t.Setenv("KUBECONFIG", "none")
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	b := newCluster(t).base(&out)
	ctx, interrupt := context.WithCancel(t.Context())
	done := make(chan int)
	go func() { done <- b.run(ctx, []string{"diff", pipe, "--server=https://localhost"}) }()
	// The pipe opens once it has a reader.
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	interrupt()
	if code := <-done; code != ExitFailed || out.String() != "error: "+pipe+": interrupted while reading\n" {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}
