//go:build linux

/*
Copyright 2026 The Kubernetes Authors.

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

package thirdparty

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/kubernetes-features/test/integration/framework"
)

const (
	// root is that of the repository, from this package.
	root = "../../.."
	// widgetOperator is a module of its own.
	widgetOperator = root + "/staging/src/k8s.io/feature-lifecycle/examples/widget-operator"
	// goodbye is how long a program may take to end what it has started.
	goodbye = 2 * time.Minute
)

// program runs something in a folder that starts processes of its own, which it ends
// when it is told to, and returns what it printed. It has a process group of its own,
// which is told as a whole, as a terminal does it: what a script waits for ends, too.
func program(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*framework.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = goodbye
	output, err := cmd.CombinedOutput()
	if err != nil {
		if cmd.Process != nil {
			// What it left running in its group although it was told. There may be nothing.
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		t.Fatalf("%s %s: %v; it printed:\n%s", name, strings.Join(args, " "), err, output)
	}
	return string(output)
}

// TestExample is "make example": three replicas of an operator on controller-runtime, a
// field that is used and cleared, a value that changes while they run, one that crashes,
// and the end of all.
//
// It is not parallel, and so runs before all that is: it builds a program, starts a
// cluster and three replicas, and its limits are those of somebody who watches.
func TestExample(t *testing.T) {
	bin, err := filepath.Abs(framework.BinDir(t))
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := os.Symlink(bin, filepath.Join(out, "bin")); err != nil {
		t.Fatal(err)
	}
	if said := program(t, root, []string{"OUT=" + out}, "bash", "hack/example.sh"); !strings.Contains(said, "\nExample done: ") {
		t.Errorf("it does not say that it is done:\n%s", said)
	}
}

// TestTheSuiteOfAnOperator: with the test kit a third party takes features through on,
// used, off and pristine.
func TestTheSuiteOfAnOperator(t *testing.T) {
	t.Parallel()
	bin, err := filepath.Abs(framework.BinDir(t))
	if err != nil {
		t.Fatal(err)
	}
	const suite = "TestFeaturesLeaveNothing"
	// It is built first and run without go test, so that it is the one that signals reach.
	// Its own limit is below that of program.
	binary := filepath.Join(t.TempDir(), "suite")
	program(t, widgetOperator, []string{"GOWORK=off"}, "go", "test", "-c", "-o", binary, ".")
	said := program(t, widgetOperator, []string{"KUBE_FEATURES_BIN_DIR=" + bin}, binary, "-test.v", "-test.run", "^"+suite+"$")
	if !strings.Contains(said, "--- PASS: "+suite) {
		t.Errorf("the suite did not pass:\n%s", said)
	}
}
