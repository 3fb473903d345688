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

package main

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

func TestStopEndsTheRunWithTheFirstFailure(t *testing.T) {
	s := newSmall(t)
	code, printed := s.run(rows(), "-lanes=1", "-stop")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	has(t, printed, "FAIL   bad", "not started")
	hasNot(t, printed, "ok     good", "start  good")
}

func TestRunsAreCountedAndFailuresNamed(t *testing.T) {
	s := newSmall(t)
	code, printed := s.run(rows(), "-runs=2", "-busy=1")
	if code != 1 {
		t.Errorf("exit code %d of runs that fail", code)
	}
	has(t, printed, "   1  failed", "   2  failed", "  bad\n", "0 of 2 runs passed")
	s.write("bad/fixed", "")
	code, printed = s.run(rows(), "-runs=2", "-force")
	if code != 0 {
		t.Errorf("exit code %d of runs that pass", code)
	}
	has(t, printed, "   1  passed", "   2  passed", "2 of 2 runs passed")
}

func TestBusyProcessesEnd(t *testing.T) {
	load, err := startBusy(1)
	if err != nil {
		t.Fatal(err)
	}
	pids := make([]int, 0, len(load))
	for _, cmd := range load {
		pids = append(pids, cmd.Process.Pid)
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("process %d does not run: %v", cmd.Process.Pid, err)
		}
	}
	load.end()
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is still there: %v", pid, err)
		}
	}
}

func TestRunsAndReuseAreValidated(t *testing.T) {
	s := newSmall(t)
	for _, args := range [][]string{{"-runs=0"}, {"-busy=-1"}, {"-force", "-reuse"}} {
		if code, printed := s.run(rows(), args...); code != 1 || strings.Contains(printed, "start") {
			t.Errorf("%v: exit code %d, %s", args, code, printed)
		}
	}
}
