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

package kindcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// Variables that "make kind-test" sets.
const (
	// testVariable turns the tests on.
	testVariable = "KIND_TEST"
	// longVariable turns long ones on, too.
	longVariable = "LONG"
	// whatVariable selects tests, as WHAT of the Makefile.
	whatVariable = "KIND_WHAT"
	// outVariable names the Makefile's output folder.
	outVariable = "OUT"
)

// name is the cluster's. It is not the one of "make kind-up", so that a cluster of the
// user's own may stay.
const name = "kind-test"

// Require skips a test that "make kind-test" does not run.
func Require(t testing.TB) {
	t.Helper()
	if os.Getenv(testVariable) != "y" {
		t.Skipf("starts nodes of kind out of a release; \"make kind-test\" runs it (%s=y)", testVariable)
	}
}

// RequireLong skips a test that only "make kind-test LONG=y" runs. One that WHAT selects
// fails instead.
func RequireLong(t testing.TB) {
	t.Helper()
	Require(t)
	if os.Getenv(longVariable) == "y" {
		return
	}
	if what := os.Getenv(whatVariable); what != "" {
		t.Fatalf("WHAT=%s selects this test, which takes long: run \"make kind-test LONG=y WHAT='%s'\"", what, what)
	}
	t.Skip("takes long; \"make kind-test LONG=y\" runs it")
}

// Run runs the tests of a package and returns the exit code. A run of "make kind-test" fails
// unless a test started nodes. All are the names of those that do.
func Run(m *testing.M, all ...string) int {
	code := m.Run()
	if code != 0 || os.Getenv(testVariable) != "y" || created.Load() > 0 {
		return code
	}
	fmt.Fprintln(os.Stderr, nothingRan(os.Getenv(whatVariable), all))
	return 1
}

// created counts clusters of this process that tests asked for.
var created atomic.Int64

// nothingRan is the error of a run in which no test started nodes.
func nothingRan(what string, all []string) string {
	return fmt.Sprintf("no test started nodes: WHAT=%s selects none of %s; name one of them, or several with \"|\" between them", what, strings.Join(all, ", "))
}

// Out is a path below the Makefile's output folder.
func Out(t testing.TB, elements ...string) string {
	t.Helper()
	out := os.Getenv(outVariable)
	if out == "" {
		out = filepath.Join(framework.Root(t), "_output")
	}
	return filepath.Join(append([]string{out}, elements...)...)
}

// Archive is an archive of the release for this machine's architecture, for example of
// the component "client".
func Archive(t testing.TB, component string) string {
	t.Helper()
	file := Out(t, "release-tars", "kubernetes-"+component+"-linux-"+runtime.GOARCH+".tar.gz")
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("the release has no archive of the %s for this machine: %v; make it with \"make quick-release KUBE_BUILD_PLATFORMS=linux/%s\"", component, err, runtime.GOARCH)
	}
	return file
}
