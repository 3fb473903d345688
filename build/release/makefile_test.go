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
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/build/release/build"
	"k8s.io/kubernetes-features/build/release/targets"
)

// TestProgramOfTheMakefile builds the program that makes releases with settings of
// "go env -w" for another machine: by the Go that the release is built with, or not
// at all.
func TestProgramOfTheMakefile(t *testing.T) {
	root, out := copied(t), t.TempDir()
	env := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(env, []byte("GOOS=plan9\nGOARCH=arm64\nGOFLAGS=-mod=vendor\nGOEXPERIMENT=jsonv2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	settings := []string{"GOENV=" + env, "GOOS=", "GOARCH=", "GOFLAGS=", "GOEXPERIMENT=", "GOPROXY=off", "GOTOOLCHAIN=local"}
	here := goVersion(t)
	for _, c := range []struct {
		wanted, out string
		more        []string
	}{
		{here, "_output", nil},
		{other, "_output", []string{"FORCE_HOST_GO=y"}},
		{here, out, nil},
	} {
		if err := os.WriteFile(filepath.Join(root, build.VersionFile), []byte(strings.TrimPrefix(c.wanted, "go")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		about := fmt.Sprintf("where %s is wanted, with OUT=%s %v", c.wanted, c.out, c.more)
		file := filepath.Join(c.out, "tools", "release")
		if said, err := runMake(t, root, settings, append([]string{"OUT=" + c.out, file}, c.more...)...); err != nil {
			t.Errorf("%s: %v: %s", about, err, said)
			continue
		}
		if !filepath.IsAbs(file) {
			file = filepath.Join(root, file)
		}
		info, err := buildinfo.ReadFile(file)
		if err != nil || info.GoVersion != here {
			t.Errorf("%s: the program is by %v: %v, want %s", about, info, err, here)
		}
		if out, err := exec.CommandContext(t.Context(), file, "-help").CombinedOutput(); err != nil {
			t.Errorf("%s: the program does not run: %v: %s", about, err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(root, build.VersionFile), []byte(strings.TrimPrefix(other, "go")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	said, err := runMake(t, root, settings, "quick-release")
	if err == nil || !strings.Contains(said, "A release wants "+other) || !strings.Contains(said, "FORCE_HOST_GO=y") || strings.Contains(said, "go build") {
		t.Errorf("with a Go that cannot be had: %v: %s", err, said)
	}
}

// goVersion is the version of the go command, which another than that of this test
// may be.
func goVersion(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "env", "GOVERSION")
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=local", "GOEXPERIMENT=,")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestPathsAreQuoted looks at what targets would do in a folder whose name has a space.
func TestPathsAreQuoted(t *testing.T) {
	root := checkout(t)
	for _, target := range []string{
		"quick-release", "plugin-release", "test-release", "verify-release", "update-release-lock", "_output/tools/kind", "_output/tools/golangci-lint", "kind-up", "kind-run", "kind-test",
		"test", "test-integration", "lint", "upstream-previous", "upstream-kubelets", "features-previous", "bench-featuregate",
	} {
		said, err := runMake(t, root, []string{"KUBE_FEATURES_REQUIRE_ALL=true"}, "-n", target)
		if err != nil {
			t.Errorf("%s: %v: %s", target, err, said)
		}
		all, quoted := strings.Count(said, root), strings.Count(said, `"`+root)+strings.Count(said, `'`+root)
		if all != quoted {
			t.Errorf("%s has the path of the checkout %d times and quotes it %d times:\n%s", target, all, quoted, said)
		}
	}
}

// ask returns the value of a variable of the Makefile.
func ask(t *testing.T, variable string, env ...string) string {
	t.Helper()
	said, err := runMake(t, filepath.Join("..", ".."), env, "-s", "--eval=print:;@echo '$("+variable+")'", "print")
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return strings.TrimSpace(said)
}

// TestDefaultPlatform: a release is for the machine that it is made on, where there
// can be images for that.
func TestDefaultPlatform(t *testing.T) {
	for arch, want := range map[string]string{"amd64": "linux/amd64", "arm64": "linux/arm64", "ppc64le": "linux/amd64"} {
		bin := t.TempDir()
		if err := os.WriteFile(filepath.Join(bin, "go"), []byte("#!/bin/sh\necho "+arch+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if got := ask(t, "KUBE_BUILD_PLATFORMS", "PATH="+bin+":"+os.Getenv("PATH")); got != want {
			t.Errorf("on %s releases are made for %q, want %s", arch, got, want)
		}
	}
}

// TestChangelog compares the newest section with the version and with what a release
// of all platforms has.
func TestChangelog(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	// The first section is the newest.
	_, newest, ok := strings.Cut(string(content), "\n# ")
	if !ok {
		t.Fatal("the changelog has no section of a version")
	}
	newest, _, _ = strings.Cut(newest, "\n# ")
	version := ask(t, "VERSION")
	if heading, _, _ := strings.Cut(newest, "\n"); heading != version {
		t.Errorf("the newest section is of %q, the Makefile makes %s", heading, version)
	}
	want := map[string][]string{"Source Code": {sourceArchive}}
	for component, heading := range map[targets.Component]string{targets.Client: "Client Binaries", targets.Server: "Server Binaries", targets.Node: "Node Binaries", targets.Plugin: "Plugin Binaries"} {
		for _, p := range targets.Platforms() {
			if p.Has(component) {
				want[heading] = append(want[heading], archiveName(component, p))
			}
		}
	}
	want["Plugin Binaries"] = append([]string{manifestFile}, want["Plugin Binaries"]...)
	for _, b := range targets.Images() {
		name, _, _ := strings.Cut(targets.Version(version).ImageName(b.Name, "ARCH"), "-ARCH")
		want["Container Images"] = append(want["Container Images"], fmt.Sprintf("%s:%s | %s", name, targets.Version(version).ImageTag(), strings.Join(targets.ImageArchitectures(), ", ")))
	}
	slices.Sort(want["Container Images"])
	for heading, rows := range want {
		if diff := gocmp.Diff(rows, table(newest, heading)); diff != "" {
			t.Errorf("the table %q (-want +got):\n%s", heading, diff)
		}
	}
}

// table returns the first column of a table, or both of one of images.
func table(section, heading string) []string {
	_, rest, _ := strings.Cut(section, "\n### "+heading+"\n")
	_, rest, _ = strings.Cut(rest, "\n----")
	_, rest, _ = strings.Cut(rest, "\n")
	var rows []string
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		name, other, ok := strings.Cut(line, " | ")
		if !ok {
			break
		}
		if heading == "Container Images" {
			name += " | " + other
		}
		rows = append(rows, name)
	}
	return rows
}
