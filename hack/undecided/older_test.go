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
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// shipped finds the minor version that ships.
var shipped = regexp.MustCompile(`(?m)^const UpstreamVersion = "v1\.(\d+)\.\d+"$`)

// olderThan returns the minor versions that are as much older than a minor version as a kubelet
// may be, or as a server can emulate: those from the first to the last of these distances.
func olderThan(minor, first, last int) []string {
	var versions []string
	for i := last; i >= first; i-- {
		versions = append(versions, fmt.Sprintf("1.%d", minor-i))
	}
	return versions
}

// TestOlderVersionsOfTests: tests run kubelets of the three versions before, and servers that
// emulate each of these. hack/update-upstream.sh moves none of them, since modules of their
// own have to be made.
func TestOlderVersionsOfTests(t *testing.T) {
	const root = "../.."
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	match := shipped.FindStringSubmatch(read("test/e2e_features/framework/previous.go"))
	if match == nil {
		t.Fatal("test/e2e_features/framework/previous.go has no UpstreamVersion")
	}
	minor, err := strconv.Atoi(match[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		file, pattern string
		want          []string
		next          string
	}{
		{"Makefile", `KUBELETS := previous kubelets/(1\.\d+) kubelets/(1\.\d+)\n`, olderThan(minor, 2, 3), "change KUBELETS"},
		{"Makefile", `SERVERS := previous kubelets/(1\.\d+)\n`, olderThan(minor, 2, 2), "change SERVERS"},
		{"test/e2e_features/stock/stock_test.go", `"node-3": "(1\.\d+)"`, olderThan(minor, 2, 2), "change the map kubelets and the list servers"},
		{"hack/verify-modules.sh", `\bhack/kubelets/(1\.\d+)`, olderThan(minor, 2, 3), "change the list long"},
		{"test/e2e_features/versions/kubelets/kubelets_test.go", `"node-\d": "(1\.\d+)"`, olderThan(minor, 1, 3), "change the map older"},
		{"hack/shards/table.go", `Name: "gates-(1\.\d+)"`, olderThan(minor, 1, 3), "rename these shards"},
		{"hack/shards/table.go", `"EMULATED=(1\.\d+)"`, olderThan(minor, 1, 3), "change EMULATED of these shards"},
		{"hack/shards/table.go", `"emulating (1\.\d+)"`, olderThan(minor, 1, 3), "change Parts of these shards"},
	} {
		var got []string
		for _, match := range regexp.MustCompile(tc.pattern).FindAllStringSubmatch(read(tc.file), -1) {
			got = append(got, match[1:]...)
		}
		if slices.Sort(got); !slices.Equal(got, tc.want) {
			t.Errorf("%s has %q where %q are expected; %s", tc.file, got, tc.want, tc.next)
		}
	}
	modules, err := os.ReadDir(filepath.Join(root, "hack", "kubelets"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, module := range modules {
		got = append(got, module.Name())
		if text := read("hack/kubelets/" + module.Name() + "/go.mod"); !strings.Contains(text, "k8s.io/kubernetes v"+module.Name()+".") {
			t.Errorf("hack/kubelets/%s/go.mod requires another minor version of k8s.io/kubernetes", module.Name())
		}
	}
	if want := olderThan(minor, 2, 3); !slices.Equal(got, want) {
		t.Errorf("hack/kubelets has modules for %q where %q are expected; hack/previous as it was before the move becomes the newer one, and the oldest is removed", got, want)
	}
}

// TestCommitOfThePreviousVersion: the commit whose kube-apiserver tests replace is one of the
// minor version before. hack/update-upstream.sh writes it.
func TestCommitOfThePreviousVersion(t *testing.T) {
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, "hack", "previous", "commit"))
	if err != nil {
		t.Fatal(err)
	}
	commit := strings.TrimSpace(string(text))
	if !regexp.MustCompile("^[0-9a-f]{40}$").MatchString(commit) {
		t.Fatalf("hack/previous/commit has %q, want a whole hash", commit)
	}
	git := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = root
		return cmd.Output()
	}
	if _, err := git("cat-file", "-e", commit+"^{commit}"); err != nil {
		t.Skipf("this clone does not have the history with %s", commit)
	}
	of := regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v1\.\d+\.\d+)`)
	was, err := git("show", commit+":go.mod")
	if err != nil {
		t.Fatal(err)
	}
	previous, err := os.ReadFile(filepath.Join(root, "hack", "previous", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	got, want := of.FindSubmatch(was), regexp.MustCompile(`(?m)^(?:require)?\s*k8s\.io/kubernetes (v1\.\d+\.\d+)`).FindSubmatch(previous)
	if got == nil || want == nil || minorOf(string(got[1])) != minorOf(string(want[1])) {
		t.Errorf("go.mod of commit %s has %q, and that of hack/previous %q; write the last commit before the move to hack/previous/commit", commit, got, want)
	}
}

// minorOf returns v1.36 of v1.36.3.
func minorOf(version string) string { return version[:strings.LastIndex(version, ".")] }
