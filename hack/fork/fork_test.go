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

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// forkVariable turns TestAFork on; "make test-fork" sets it. The test
// compiles all of Kubernetes, which takes 10 to 25 minutes and 4 GB the first time.
const forkVariable = "KUBE_FEATURES_TEST_FORK"

// treeVariable names a directory for the tree of TestAFork, which stays there to
// be looked at; it must not exist. Without it the tree is a temporary one.
const treeVariable = "KUBE_FEATURES_FORK_TREE"

// binaries are what a fork builds for the integration test that is run there.
var binaries = []string{
	"./cmd/kube-apiserver", "./cmd/kube-controller-manager", "./cmd/kube-scheduler", "./cmd/kubelet", "./cmd/kube-proxy",
	"./cmd/kubectl", "./cmd/kubectl-feature", "./cmd/local-up", "./" + testsDir + "/kubemark",
}

// TestAFork lands in the tree of the version as the Go modules have it, builds
// the binaries there and runs an integration test of theirs.
func TestAFork(t *testing.T) {
	if os.Getenv(forkVariable) == "" {
		t.Skipf("compiles all of Kubernetes; \"make test-fork\" runs it (%s)", forkVariable)
	}
	identity(t)
	base, err := findUpstream(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	tree := scratch(t, base)
	if !t.Run("lands", func(t *testing.T) { lands(t, tree) }) {
		t.FailNow()
	}
	t.Run("passes upstream's checks", func(t *testing.T) { passesChecks(t, tree) })
	t.Run("builds and works", func(t *testing.T) { works(t, tree, base.version) })
}

// lands lands in both ways, which must come to the same.
func lands(t *testing.T, tree string) {
	o := options{source: root, kubeRoot: tree}
	series := filepath.Join(t.TempDir(), "series")
	if err := run(t.Context(), options{source: root, kubeRoot: tree, patch: series}, t.Output()); err != nil {
		t.Fatal(err)
	}
	put(t, tree, map[string]string{"pkg/mine.txt": "mine\n"})
	if err := run(t.Context(), o, t.Output()); err == nil || !strings.Contains(err.Error(), "pkg/mine.txt") {
		t.Errorf("a tree with changes: %v", err)
	}
	git(t, tree, "clean", "-fdq")
	if err := run(t.Context(), o, t.Output()); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), o, &out); err != nil || !strings.Contains(out.String(), "nothing changed") {
		t.Errorf("the second time: %v\n%s", err, out.String())
	}
	git(t, tree, "add", "-A")
	landed := git(t, tree, "write-tree")
	git(t, tree, "reset", "-q", "--hard")
	patches, err := filepath.Glob(filepath.Join(series, "*.patch"))
	if err != nil {
		t.Fatal(err)
	}
	git(t, tree, append([]string{"am", "-q"}, patches...)...)
	if applied := git(t, tree, "rev-parse", "HEAD^{tree}"); applied != landed {
		t.Errorf("the series makes another tree than landing:\n%s", git(t, tree, "diff", "--stat", landed, applied))
	}
}

// passesChecks runs upstream's own checks of what it has lists and rules for.
func passesChecks(t *testing.T, tree string) {
	goIn(t, tree, "run", "test/compatibility_lifecycle/main.go", "feature-gates", "verify")
	goIn(t, tree, "run", "./cmd/import-boss", "./pkg/...", "./cmd/kube-apiserver/...", "./"+testsDir+"/...")
	for _, check := range []string{"hack/verify-staging-meta-files.sh", "hack/verify-api-groups.sh"} {
		if output, err := command(t.Context(), tree, nil, nil, "bash", check); err != nil {
			t.Errorf("%v\n%s", err, output)
		}
	}
	// What boilerplate.py prints are the files whose licence is wrong.
	if wrong, err := command(t.Context(), tree, nil, nil, "python3", "hack/boilerplate/boilerplate.py"); err != nil || len(wrong) > 0 {
		t.Errorf("licences: %v\n%s", err, wrong)
	}
	// The library alone, as the publishing bot builds it.
	library := filepath.Join(tree, filepath.FromSlash(libraryDir))
	if output, err := command(t.Context(), library, nil, []string{"GOWORK=off"}, "go", "list", "-deps", "./..."); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// works builds the binaries and runs tests with them.
func works(t *testing.T, tree, version string) {
	// As upstream's hack/lib/version.sh has it for a tag.
	minor := strings.Split(version, ".")[1]
	var flags []string
	for _, in := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags, "-X "+in+".gitVersion="+version, "-X "+in+".gitMajor=1", "-X "+in+".gitMinor="+minor, "-X "+in+".gitTreeState=clean")
	}
	goIn(t, tree, append([]string{"build", "-ldflags", strings.Join(flags, " "), "-o", "_output/bin/"}, binaries...)...)
	goIn(t, tree, "vet", "./"+testsDir+"/...")
	goIn(t, tree, "test", "-count=1", "./pkg/features", "./pkg/controlplane", "./pkg/generated/openapi", "./pkg/registry/features/...", "./pkg/apis/features/...")
	goIn(t, tree, "test", "-count=1", "-v", "-run", "^TestEveryProcessReports$", "./"+testsDir+"/processes")
}

// scratch is a checkout of upstream's version as far as modules have it. A
// staging module that no module here depends on is empty: upstream's examples.
func scratch(t *testing.T, base *upstream) string {
	t.Helper()
	dir := os.Getenv(treeVariable)
	if dir == "" {
		dir = filepath.Join(t.TempDir(), "kubernetes")
	}
	if _, err := os.Stat(dir); err == nil {
		t.Fatalf("%s exists; remove it, or name another directory in %s", dir, treeVariable)
	}
	if err := os.CopyFS(dir, os.DirFS(base.dir)); err != nil {
		t.Fatal(err)
	}
	work, err := base.read("go.work")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(work)) {
		place, ok := strings.CutPrefix(strings.TrimSpace(line), "./staging/src/")
		if !ok {
			continue
		}
		at := filepath.Join(dir, "staging", "src", filepath.FromSlash(place))
		if published, ok := base.staging[place]; ok {
			if err := os.CopyFS(at, os.DirFS(published)); err != nil {
				t.Fatal(err)
			}
			unpublish(t, base, filepath.Join(at, "go.mod"))
		} else {
			put(t, at, map[string]string{"go.mod": "module " + place + "\n\ngo 1.26.0\n", "doc.go": "// Package sample is empty.\npackage sample\n"})
			for _, file := range []string{".github/PULL_REQUEST_TEMPLATE.md", "code-of-conduct.md", "LICENSE", "OWNERS", "README.md", "SECURITY_CONTACTS"} {
				put(t, at, map[string]string{file: "\n"})
			}
		}
	}
	git(t, dir, "init", "-q")
	// Some of upstream's files match its .gitignore.
	git(t, dir, "add", "-A", "-f")
	git(t, dir, "commit", "-qm", base.version)
	git(t, dir, "tag", base.version)
	return dir
}

// unpublish undoes what publishing did to a staging module's go.mod.
func unpublish(t *testing.T, base *upstream, file string) {
	t.Helper()
	data, err := stagingModule(t.Context(), base, []byte(read(t, file)))
	if err == nil {
		err = os.WriteFile(file, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// goIn runs the go command in a fork, with its workspace. Without paths in what it
// builds, the next run finds in the cache what has not changed, though its tree is
// elsewhere; tests then have to be told where the binaries are.
func goIn(t *testing.T, tree string, args ...string) {
	t.Helper()
	env := []string{"GOWORK=" + filepath.Join(tree, "go.work"), "GOFLAGS=-trimpath", "KUBE_FEATURES_BIN=" + filepath.Join(tree, "_output", "bin")}
	output, err := command(t.Context(), tree, nil, slices.Clone(env), "go", args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	t.Logf("go %s\n%s", strings.Join(args, " "), output)
}
