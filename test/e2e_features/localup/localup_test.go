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

package localup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/examplegates"
)

// run runs local-up and returns what it printed.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), filepath.Join(framework.BinDir(t), "local-up"), args...).CombinedOutput()
	return string(output), err
}

// processes are those whose command line names the directory.
func processes(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		// A process may be gone by now.
		if data, err := os.ReadFile(file); err == nil && strings.Contains(string(data), dir) {
			found = append(found, strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	return found
}

// downAtTheEnd leaves nothing behind, whatever fails.
func downAtTheEnd(t *testing.T, flags []string) {
	t.Helper()
	t.Cleanup(func() {
		if _, err := os.Stat(filepath.Join(strings.TrimPrefix(flags[0], "--data-dir="), "state.json")); err != nil {
			return
		}
		// The test's context has ended.
		output, err := exec.Command(filepath.Join(framework.BinDir(t), "local-up"), append([]string{"down"}, flags...)...).CombinedOutput()
		if err != nil {
			t.Errorf("down: %v\n%s", err, output)
		}
	})
}

func TestUpRestartDown(t *testing.T) {
	t.Parallel()
	dir := framework.DataDir(t)
	flags := []string{"--data-dir=" + dir, "--bin-dir=" + framework.BinDir(t)}
	downAtTheEnd(t, flags)
	step := func(wantErr bool, want string, args ...string) {
		t.Helper()
		output, err := run(t, append(args, flags...)...)
		if (err != nil) != wantErr || !strings.Contains(output, want) {
			t.Fatalf("local-up %s: %v, want it to say %q:\n%s", strings.Join(args, " "), err, want, output)
		}
	}
	step(true, "there is no cluster in "+dir, "down")
	step(true, "there is no cluster in "+dir, "status")
	step(false, filepath.Join(framework.BinDir(t), "local-up")+" down --data-dir="+dir+"\n", "up", "--nodes=1")
	if n := len(processes(t, dir)); n != 6 {
		t.Errorf("%d processes, want etcd, apiserver, controller manager, scheduler, kubelet and proxy: %v", n, processes(t, dir))
	}
	step(true, "running already", "up", "--nodes=1")
	step(false, "kube-scheduler", "status")
	step(false, "Restarted", "restart", "--component=kube-scheduler", "--feature-gates="+examplegates.Dynamic+"=true")
	step(false, "not dynamic, since a feature gate sets them: "+examplegates.Dynamic, "restart", "--component=kube-apiserver")
	step(false, "Restarted", "restart", "--emulated-version=1.35", "--central-features=", "--dynamic-features=HPAScaleToZero", "--server-feature-gates=PodDeletionCost=false")
	server := strings.Join(processes(t, dir), "\n")
	for flag, count := range map[string]int{
		"--emulated-version=1.35": 3, "--central-features": 0, "--dynamic-features=HPAScaleToZero ": 1, "--feature-gates=PodDeletionCost=false": 1, "--feature-gates=" + examplegates.Dynamic + "=true": 5,
	} {
		if n := strings.Count(server, flag); n != count {
			t.Errorf("%d processes have %s, want %d:\n%s", n, flag, count, server)
		}
	}
	step(false, "Cluster ended", "down")
	if left := processes(t, dir); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	step(false, "is not running", "down")
	step(true, "local-up up --nodes=1 --data-dir="+dir, "status")
}
