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

package build

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"go/version"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/kubernetes-features/build/release/targets"
)

var arm64 = targets.Platform{OS: "linux", Arch: "arm64"}

// tree makes a folder with a program that shows the path of its source, under
// the version of Go that runs this test.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		VersionFile:          strings.TrimPrefix(runtime.Version(), "go") + "\n",
		"go.work":            "go 1.26.0\n\nuse (\n\t.\n\t./staging\n)\n",
		"go.mod":             "module example.com/root\n\ngo 1.26.0\n",
		"main.go":            "package main\n\nimport (\n\t\"runtime\"\n\n\t\"example.com/staging\"\n)\n\nfunc main() {\n\t_, file, _, _ := runtime.Caller(0)\n\tprintln(file, staging.File())\n}\n",
		"staging/go.mod":     "module example.com/staging\n\ngo 1.26.0\n",
		"staging/staging.go": "package staging\n\nimport \"runtime\"\n\nfunc File() string {\n\t_, file, _, _ := runtime.Caller(0)\n\treturn file\n}\n",
	})
	return dir
}

// find is FindGo in dir.
func find(t *testing.T, dir string) Go {
	t.Helper()
	g, err := FindGo(t.Context(), dir, false)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestSettingsOfGo gives the go command other settings by its file and by the
// environment, and asks it what counts in a release.
func TestSettingsOfGo(t *testing.T) {
	dir := tree(t)
	cache := t.TempDir()
	file := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(file, []byte("GOFLAGS=-tags=other\nGOAMD64=v3\nGOEXPERIMENT=loopvar\nGOFIPS140=latest\nCGO_ENABLED=1\nGO_EXTLINK_ENABLED=1\n"+
		"GOARM64=v9.0\nGOPRIVATE=example.com/private\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOENV", file)
	t.Setenv("GOCACHE", cache)
	t.Setenv("GOPPC64", "power10")
	t.Setenv("GOOS", "plan9")
	t.Setenv("GODEBUG", "madvdontneed=1")
	g := find(t, dir)
	if g.Version != runtime.Version() {
		t.Errorf("the version is %s, want %s", g.Version, runtime.Version())
	}
	cmd := exec.CommandContext(t.Context(), "go", "env", "-json")
	cmd.Dir, cmd.Env = dir, g.Env(dir, arm64)
	out, err := output(cmd)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	// The go command does not show this one.
	if got := cmd.Env; !slices.Contains(got, "GO_EXTLINK_ENABLED=0") {
		t.Errorf("the linker may be another one: %v", got)
	}
	for name, want := range map[string]string{
		"GOENV": "", "GOFLAGS": "", "GOEXPERIMENT": "", "GOFIPS140": "off", "CGO_ENABLED": "0", "GODEBUG": "",
		"GOOS": "linux", "GOARCH": "arm64", "GOARM64": "v8.0", "GOTOOLCHAIN": runtime.Version(), "GOWORK": filepath.Join(dir, "go.work"),
		// These come from the caller.
		"GOCACHE": cache, "GOPRIVATE": "example.com/private", "GONOSUMDB": "example.com/private",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// TestGoIsNotOlderThanUpstreams reads .go-version of the upstream that is built: ours
// is of that minor version, and of no older patch release.
func TestGoIsNotOlderThanUpstreams(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	read := func(file string) string {
		t.Helper()
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return "go" + strings.TrimSpace(string(content))
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes")
	list.Dir, list.Env = root, append(os.Environ(), "GOWORK=")
	dir, err := output(list)
	if err != nil {
		t.Fatal(err)
	}
	ours, upstreams := read(filepath.Join(root, VersionFile)), read(filepath.Join(strings.TrimSpace(dir), ".go-version"))
	if version.Lang(ours) != version.Lang(upstreams) || version.Compare(ours, upstreams) < 0 {
		t.Errorf("%s names %s, upstream's .go-version %s: take that minor version and no older patch release of it", VersionFile, ours, upstreams)
	}
}

// TestAnotherGo requires a version that does not exist.
func TestAnotherGo(t *testing.T) {
	dir := tree(t)
	write(t, dir, map[string]string{VersionFile: "1.26.999\n"})
	t.Setenv("GOPROXY", "off")
	_, err := FindGo(t.Context(), dir, false)
	if err == nil || !strings.Contains(err.Error(), "wants go1.26.999") || !strings.Contains(err.Error(), "found "+runtime.Version()) {
		t.Errorf("another version: %v, want an error that names both", err)
	}
	g, err := FindGo(t.Context(), dir, true)
	if err != nil || g.Version != runtime.Version() {
		t.Errorf("with FORCE_HOST_GO the version is %q: %v", g.Version, err)
	}
	if _, err := FindGo(t.Context(), t.TempDir(), false); err == nil {
		t.Error("a tree that names no version was accepted")
	}
}

// TestBinariesDependOnSourcesOnly builds a program in two checkouts, the second
// time with an empty cache, other settings and another mask of permissions.
func TestBinariesDependOnSourcesOnly(t *testing.T) {
	compile := func() []byte {
		dir := tree(t)
		out := filepath.Join(t.TempDir(), "program")
		s := Source{Root: dir, Commit: "0123abc", Time: time.Unix(86400, 0), Go: find(t, dir)}
		cmd := s.Command(t.Context(), "v1.36.3+feature.1", targets.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}, out, ".")
		if _, err := output(cmd); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		said, err := exec.CommandContext(t.Context(), out).CombinedOutput()
		if err != nil || strings.Contains(string(said), dir) {
			t.Errorf("the program says %q: %v; want no path of %s", said, err, dir)
		}
		return content
	}
	one := compile()
	t.Setenv("GOCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-tags=other -race")
	t.Setenv("GOMAXPROCS", "1")
	t.Setenv("TZ", "Pacific/Auckland")
	t.Setenv("LC_ALL", "C")
	defer syscall.Umask(syscall.Umask(0o077))
	if two := compile(); !bytes.Equal(one, two) {
		t.Errorf("the two programs have %d and %d bytes and differ", len(one), len(two))
	}
}

// TestAnEndedBuildLeavesNoProcess ends a build that runs a program of its own,
// which stands for a compiler.
func TestAnEndedBuildLeavesNoProcess(t *testing.T) {
	dir := tree(t)
	ready := filepath.Join(t.TempDir(), "ready")
	if err := syscall.Mkfifo(ready, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOTMPDIR", t.TempDir())
	ctx, end := context.WithCancel(t.Context())
	defer end()
	s := Source{Root: dir, Go: find(t, dir)}
	cmd := s.Command(ctx, "v1.36.3+feature.1", arm64, filepath.Join(t.TempDir(), "program"), ".")
	// The go command runs this in place of each compiler. It says that it has begun
	// and never ends by itself.
	script := filepath.Join(t.TempDir(), "compiler")
	if err := os.WriteFile(script, []byte("#!/bin/bash\n[[ $* == *-V=full* ]] && exec \"$@\"\nexec 9>"+ready+"\necho begun >&9\nexec 8<>"+ready+".never\nread -r never <&8\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(ready+".never", 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Args = slices.Insert(cmd.Args, 2, "-a", "-toolexec="+script)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fifo, err := os.Open(ready)
	if err != nil {
		t.Fatal(err)
	}
	defer fifo.Close()
	begun := bufio.NewReader(fifo)
	if _, err := begun.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	end()
	if err := cmd.Wait(); err == nil {
		t.Error("the build that was ended has no error")
	}
	// The end comes when no process has it open for writing.
	if _, err := io.ReadAll(begun); err != nil {
		t.Error(err)
	}
}
