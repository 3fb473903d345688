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

package process

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	apiwait "k8s.io/apimachinery/pkg/util/wait"
)

// script starts a shell script as a process.
func script(t *testing.T, text string) Process {
	t.Helper()
	p, err := NewStarter(false).Start(Spec{Name: "script", Path: "/bin/sh", Args: []string{"-c", text}, Dir: t.TempDir(), LogFile: filepath.Join(t.TempDir(), "log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = p.end(t.Context(), 9, 0) })
	return p
}

// patience bounds waits; the machine may be busy.
const patience = time.Minute

func until(t *testing.T, condition func() bool) {
	t.Helper()
	err := apiwait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatal(err)
	}
}

func TestProcessTerminatesOnSignal(t *testing.T) {
	p := script(t, "exec sleep 1000")
	if !p.Alive() {
		t.Fatal("not alive after the start")
	}
	if killed, err := p.Stop(t.Context(), patience); err != nil || killed {
		t.Fatalf("killed: %t, %v", killed, err)
	}
	if p.Alive() {
		t.Error("alive after it was stopped")
	}
	if killed, err := p.Stop(t.Context(), patience); err != nil || killed {
		t.Errorf("stopping it again killed: %t, %v", killed, err)
	}
}

func TestProcessIgnoringSignalKilled(t *testing.T) {
	p := script(t, "trap '' TERM; echo deaf; while :; do sleep 0.1; done")
	until(t, func() bool { return p.Tail(1) == "deaf" })
	if killed, err := p.Stop(t.Context(), 300*time.Millisecond); err != nil || !killed {
		t.Fatalf("killed: %t, %v", killed, err)
	}
	if p.Alive() {
		t.Error("alive after it was killed")
	}
}

// TestARecycledIDIsNotTouched takes this test's own process for another one of
// the same id: if it were signaled, the test would end.
func TestARecycledIDIsNotTouched(t *testing.T) {
	startTime, _, err := stat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	other := Process{Name: "other", PID: os.Getpid(), StartTime: startTime + 1}
	if other.Alive() {
		t.Error("a process with another start time is alive")
	}
	if err := other.Kill(t.Context()); err != nil {
		t.Errorf("killing what is gone: %v", err)
	}
	if me := (Process{PID: os.Getpid(), StartTime: startTime}); !me.Alive() {
		t.Error("this process is not alive")
	}
}

func TestNoProcessIsNotAlive(t *testing.T) {
	for _, p := range []Process{{}, {PID: 1}, {PID: -1, StartTime: 1}} {
		if p.Alive() {
			t.Errorf("%+v is alive", p)
		}
	}
	if _, err := (Process{}).Stop(t.Context(), 0); err != nil {
		t.Error(err)
	}
}

// TestAHostNameOfItsOwn: two kube-apiservers on one machine are told apart by it.
func TestAHostNameOfItsOwn(t *testing.T) {
	before, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, dieWithParent := range []bool{false, true} {
		log := filepath.Join(t.TempDir(), "log")
		p, err := NewStarter(dieWithParent).Start(Spec{Name: "host", Path: "/bin/sh", Args: []string{"-c", "uname -n"}, Hostname: "elsewhere", LogFile: log})
		if os.Getuid() != 0 {
			if err == nil || !strings.Contains(err.Error(), "needs root") {
				t.Errorf("without root: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		until(t, func() bool { return !p.Alive() })
		if got := p.Tail(1); got != "elsewhere" {
			t.Errorf("it finds itself on %q", got)
		}
		if after, err := os.Hostname(); err != nil || after != before {
			t.Errorf("this process is on %q, %v; it was on %q", after, err, before)
		}
	}
}

func TestTheTailOfALog(t *testing.T) {
	p := Process{LogFile: filepath.Join(t.TempDir(), "log")}
	if got := p.Tail(3); got != "(no log)" {
		t.Errorf("without a log: %q", got)
	}
	if err := os.WriteFile(p.LogFile, []byte("1\n2\n3\n4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.Tail(2); got != "3\n4" {
		t.Errorf("got %q", got)
	}
	if got := p.Tail(10); got != "1\n2\n3\n4" {
		t.Errorf("got %q", got)
	}
}

func TestStartErrorNamesProcess(t *testing.T) {
	_, err := NewStarter(true).Start(Spec{Name: "kube-nothing", Path: "/does/not/exist", LogFile: filepath.Join(t.TempDir(), "log")})
	if err == nil || !strings.Contains(err.Error(), "kube-nothing") {
		t.Errorf("got %v", err)
	}
}

// TestInheritedFilesStayBehind shows that a cluster that was started below flock(1)
// does not hold the lock.
func TestInheritedFilesStayBehind(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	lock, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	inherited, err := unix.Dup(int(lock.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(inherited) }()
	p := script(t, "exec 2>&1; ls -l /proc/self/fd; echo listed; exec sleep 1000")
	until(t, func() bool { return p.Tail(1) == "listed" })
	if listed := p.Tail(20); strings.Contains(listed, name) {
		t.Errorf("the process has the file:\n%s", listed)
	}
}
