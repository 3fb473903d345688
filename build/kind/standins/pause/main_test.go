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
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// TestPauseEndsWithVersion is for kubeadm, which runs a Job of the image with -v.
func TestPauseEndsWithVersion(t *testing.T) {
	var out strings.Builder
	if shown(nil, &out) || shown([]string{"-x"}, &out) || out.String() != "" {
		t.Errorf("without -v it shows %q", out.String())
	}
	if !shown([]string{"-V"}, &out) || out.String() == "" {
		t.Error("with -V it does not end, or shows nothing")
	}
}

func TestPauseReapsUntilItEnds(t *testing.T) {
	children, end := make(chan os.Signal), make(chan os.Signal)
	reaped, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		pause(children, end, func() int { reaped++; return 0 })
	}()
	children <- syscall.SIGCHLD
	children <- syscall.SIGCHLD
	end <- syscall.SIGTERM
	<-done
	if reaped != 2 {
		t.Errorf("it reaped %d times", reaped)
	}
}

func TestReapTakesChildThatEnded(t *testing.T) {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	t.Cleanup(func() { signal.Stop(children) })
	if n := reap(); n != 0 {
		t.Fatalf("%d children before any was started", n)
	}
	// No Wait of package os: reap has to find it.
	process, err := os.StartProcess("/proc/self/exe", []string{"pause", "-test.run=^$"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Release(); err != nil {
			t.Error(err)
		}
	})
	for total := 0; total == 0; total = reap() {
		select {
		case <-children:
		case <-t.Context().Done():
			t.Fatal("no child ended")
		}
	}
	if n := reap(); n != 0 {
		t.Errorf("%d children are left", n)
	}
}
