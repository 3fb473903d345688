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

package operators

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

const (
	// root is that of the repository, from this package.
	root = "../../.."
	// widgetOperator is a module of its own.
	widgetOperator = root + "/staging/src/k8s.io/feature-lifecycle/examples/widget-operator"
	// goodbye is the time that a program may take to end what it has started.
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
// cluster and three replicas, and its limits are those of an observing user.
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
	// Its own limit is below that of program.
	said := program(t, widgetOperator, []string{"KUBE_FEATURES_BIN_DIR=" + bin}, buildSuite(t, widgetOperator), "-test.v", "-test.run", "^"+suite+"$")
	if !strings.Contains(said, "--- PASS: "+suite) {
		t.Errorf("the suite did not pass:\n%s", said)
	}
}

// buildSuite builds the tests in a folder, which run without go test then, so that they
// are what signals reach.
func buildSuite(t *testing.T, dir string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "suite")
	program(t, dir, []string{"GOWORK=off"}, "go", "test", "-c", "-o", binary, ".")
	return binary
}

// TestAnInterruptedSuiteEndsItsCluster: Ctrl-C leaves nothing of the cluster that the
// suite of an operator has started, neither processes nor files.
func TestAnInterruptedSuiteEndsItsCluster(t *testing.T) {
	t.Parallel()
	bin, err := filepath.Abs(framework.BinDir(t))
	if err != nil {
		t.Fatal(err)
	}
	const suite, dir = "TestFeaturesLeaveNothing", widgetOperator
	// All that belongs to the cluster names something in it on its command line.
	folder := framework.DataDir(t)
	var said strings.Builder
	cmd := exec.CommandContext(t.Context(), buildSuite(t, dir), "-test.v", "-test.run", "^"+suite+"$")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "KUBE_FEATURES_BIN_DIR="+bin, "TMPDIR="+folder)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Setpgid: true}, goodbye
	t.Cleanup(func() { downAll(t, bin, folder) })
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	framework.WaitFor(t, "the suite to have a cluster", func() bool {
		running := commandLines(t, folder)
		// etcd is a local-up, too.
		return strings.Contains(running, "/kube-apiserver ") && !strings.Contains(running, "/local-up up ")
	})
	// As a terminal does it: the whole group.
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatalf("the suite passed although it was interrupted; does this test still do that in time? It printed:\n%s", said.String())
	}
	if running := commandLines(t, folder); running != "" {
		t.Errorf("the suite has left running:\n%s\nIt printed:\n%s", running, said.String())
	}
	left, err := filepath.Glob(filepath.Join(folder, "feature-lifecycle-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("the suite has left %v, %v; it printed:\n%s", left, err, said.String())
	}
}

// commandLines are those that name something in a folder, one in a line.
func commandLines(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, file := range files {
		// A process may be gone by now.
		if data, err := os.ReadFile(file); err == nil && strings.Contains(string(data), folder+"/") {
			lines.WriteString(strings.ReplaceAll(string(data), "\x00", " ") + "\n")
		}
	}
	return lines.String()
}

// downAll ends the clusters in a folder that whoever started them has left.
func downAll(t *testing.T, bin, folder string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(folder, "*", "state.json"))
	if err != nil {
		t.Error(err)
	}
	for _, state := range left {
		// The test's context has ended.
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(bin, "local-up"), "down", "--bin-dir="+bin, "--data-dir="+filepath.Dir(state))
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("ending a cluster that was left: %v\n%s", err, output)
		}
	}
}
