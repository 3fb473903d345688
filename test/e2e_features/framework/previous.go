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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// UpstreamVersion is the version of upstream's binaries (Upstream). hack/verify
// compares it with go.mod.
const UpstreamVersion = "v1.37.2"

// PreviousVersion is the version of hack/previous/go.mod, which
// "make upstream-previous" builds.
const PreviousVersion = "v1.35.4"

// Previous is the unchanged binary of the minor version before, from
// "make upstream-previous". The test is skipped where it was not built, since
// that takes minutes, unless nothing may be left out.
func Previous(t testing.TB, name string) string {
	t.Helper()
	file := filepath.Join(filepath.Dir(BinDir(t)), "previous", name)
	if _, err := os.Stat(file); err != nil {
		if os.Getenv("KUBE_FEATURES_REQUIRE_ALL") != "" {
			t.Fatalf("%s of %s is not there (%v), and KUBE_FEATURES_REQUIRE_ALL forbids to leave the test out; build it with \"make upstream-previous\"", name, PreviousVersion, err)
		}
		t.Skipf("%s of %s is not there (%v); build it with \"make upstream-previous\"", name, PreviousVersion, err)
	}
	return file
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
