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

package framework

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	utilversion "k8s.io/apimachinery/pkg/util/version"
)

// UpstreamVersion is the version of upstream's binaries (Upstream). hack/verify
// compares it with go.mod.
const UpstreamVersion = "v1.37.2"

// PreviousVersion is the version of hack/previous/go.mod, which
// "make upstream-previous" builds.
const PreviousVersion = "v1.36.3"

// Minor is the minor version of a version of a binary: "1.36" of "v1.36.3".
func Minor(version string) string {
	parsed := utilversion.MustParse(version)
	return fmt.Sprintf("%d.%d", parsed.Major(), parsed.Minor())
}

// Previous is the unchanged binary of the minor version before, from
// "make upstream-previous". The test is skipped where it was not built, since
// that takes minutes, unless nothing may be left out.
func Previous(t testing.TB, name string) string {
	t.Helper()
	return older(t, name+" of "+PreviousVersion, "upstream-previous", "previous", name)
}

// PreviousFeatures is this repository's own binary as it was at its last commit of the
// minor version before, from "make features-previous". It is left out as Previous is.
func PreviousFeatures(t testing.TB, name string) string {
	t.Helper()
	commit, err := os.ReadFile(filepath.Join(Root(t), "hack", "previous", "commit"))
	if err != nil {
		leftOut(t, "which commit was the last one of the minor version before is not known: "+err.Error())
	}
	id := strings.TrimSpace(string(commit))
	return older(t, name+" of commit "+id, "features-previous", "previous", id, name)
}

// OlderKubelet is the unchanged kubelet of a minor version, from "make upstream-kubelets".
// It is left out as Previous is.
func OlderKubelet(t testing.TB, minor string) string {
	t.Helper()
	return older(t, "kubelet of "+minor, "upstream-kubelets", "kubelets", minor, "kubelet")
}

// OlderServer is the unchanged kube-apiserver of a minor version, from "make
// upstream-servers". It is left out as Previous is.
func OlderServer(t testing.TB, minor string) string {
	t.Helper()
	return older(t, "kube-apiserver of "+minor, "upstream-servers", "servers", minor, "kube-apiserver")
}

// older is a binary that a target of the Makefile builds beside those of "make all".
func older(t testing.TB, what, target string, path ...string) string {
	t.Helper()
	file := filepath.Join(append([]string{filepath.Dir(BinDir(t))}, path...)...)
	if _, err := os.Stat(file); err != nil {
		leftOut(t, fmt.Sprintf("%s is not there (%v); build it with \"make %s\"", what, err, target))
	}
	return file
}

// leftOut skips a test, unless nothing may be left out.
func leftOut(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("KUBE_FEATURES_REQUIRE_ALL") != "" {
		t.Fatalf("%s; KUBE_FEATURES_REQUIRE_ALL forbids to leave the test out", why)
	}
	t.Skip(why)
}

// UpgradeCheck runs "kubectl feature upgrade-check" as people do, and returns what
// it said and its exit code.
func (c *Cluster) UpgradeCheck(args ...string) (output string, code int) {
	c.t.Helper()
	bin := BinDir(c.t)
	cmd := exec.CommandContext(c.t.Context(), filepath.Join(bin, "kubectl"), append([]string{"feature", "upgrade-check", "--kubeconfig", c.Kubeconfig("admin")}, args...)...)
	cmd.Env = append(cmd.Environ(), "PATH="+bin)
	said, err := cmd.CombinedOutput()
	c.t.Logf("kubectl feature upgrade-check %s:\n%s", strings.Join(args, " "), said)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatalf("running kubectl: %v", err)
	}
	return string(said), cmd.ProcessState.ExitCode()
}
