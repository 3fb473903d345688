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
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/kubernetes-features/build/release/leftout"
)

// TestClusterShowsTheVersion starts a control plane of the release's binaries
// and asks it: for /version, for its features, and by the plugin for kubectl.
// local-up, which brings etcd and starts processes, comes from RELEASE_TOOLS.
func TestClusterShowsTheVersion(t *testing.T) {
	dir, version := server(t)
	bin := filepath.Join(dir, "server", "bin")
	localUp := filepath.Join(os.Getenv("RELEASE_TOOLS"), "local-up")
	if _, err := os.Stat(localUp); err != nil {
		leftout.Skip(t, "RELEASE_TOOLS has no local-up; \"make test-release\" builds it")
	}
	link := filepath.Join(bin, "local-up")
	if err := os.Symlink(localUp, link); err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	up := func(ctx context.Context, command string, args ...string) error {
		cmd := exec.CommandContext(ctx, link, append([]string{command, "--data-dir", data, "--bin-dir", bin}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("local-up %s: %w: %s", command, err, out)
		}
		return nil
	}
	t.Cleanup(func() {
		// The test's context has ended by now.
		if err := up(context.WithoutCancel(t.Context()), "down"); err != nil {
			t.Error(err)
		}
		if err := os.Remove(link); err != nil {
			t.Error(err)
		}
	})
	if err := up(t.Context(), "up", "--nodes", "0"); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(data, "admin.kubeconfig")
	kubectl := func(args ...string) string {
		return output(t, filepath.Join(bin, "kubectl"), append([]string{"--kubeconfig", kubeconfig}, args...)...)
	}
	var shown struct{ Major, Minor, GitVersion, GitCommit, GitTreeState, BuildDate, GoVersion, Platform string }
	if err := json.Unmarshal([]byte(kubectl("get", "--raw", "/version")), &shown); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(filepath.Join(bin, "kube-apiserver"))
	if err != nil {
		t.Fatal(err)
	}
	major, minor := version.MajorMinor()
	if shown.GitVersion != string(version) || shown.Major != major || shown.Minor != minor || shown.GoVersion != info.GoVersion || shown.Platform != "linux/"+runtime.GOARCH {
		t.Errorf("/version is %+v, want %s by %s", shown, version, info.GoVersion)
	}
	source, state := readBill(t, os.Getenv("RELEASE_TARS")).source(t), "clean"
	if source.Dirty {
		state = "dirty"
	}
	if shown.GitCommit != source.Commit || shown.BuildDate != source.Time.Format(time.RFC3339) || shown.GitTreeState != state {
		t.Errorf("/version is %+v, want the commit %s of %s", shown, source, source.Time)
	}
	if got := kubectl("get", "features", "-n", "kube-system"); !strings.Contains(got, "MaxUnavailableStatefulSet") {
		t.Errorf("the features are:\n%s", got)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "kubectl"), "feature", "list", "--kubeconfig", kubeconfig)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "MaxUnavailableStatefulSet") {
		t.Errorf("kubectl feature list: %v:\n%s", err, out)
	}
}
