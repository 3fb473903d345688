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

// Package build compiles the binaries of a release and says which commit they
// are from.
package build

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/kubernetes-features/hack/release/targets"
)

// Source is what a release is built from.
type Source struct {
	// Root is the folder of the checkout.
	Root string
	// Commit is the hash of HEAD, empty outside of git.
	Commit string
	// Dirty says that the tree differs from Commit.
	Dirty bool
	// Time is that of the commit. It stands for the time of the build
	// everywhere, so that a later build gives the same bytes.
	Time time.Time
}

// Describe asks git about the checkout. SOURCE_DATE_EPOCH, in seconds, takes the
// place of the commit's time, as in reproducible builds elsewhere.
func Describe(ctx context.Context, root string) (Source, error) {
	s := Source{Root: root}
	commit, err := git(ctx, root, "rev-parse", "HEAD")
	if err != nil {
		return s, fmt.Errorf("a release is made from a git checkout, which names its commit and time: %w", err)
	}
	s.Commit = strings.TrimSpace(commit)
	status, err := git(ctx, root, "status", "--porcelain")
	if err != nil {
		return s, err
	}
	s.Dirty = status != ""
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if seconds == "" {
		if seconds, err = git(ctx, root, "log", "-1", "--format=%ct"); err != nil {
			return s, err
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(seconds), 10, 64)
	if err != nil {
		return s, fmt.Errorf("SOURCE_DATE_EPOCH is not a number of seconds: %w", err)
	}
	s.Time = time.Unix(n, 0).UTC()
	return s, nil
}

// Files returns the paths of the source files below Root: what git knows or
// would add.
func (s Source) Files(ctx context.Context) ([]string, error) {
	out, err := git(ctx, s.Root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	var files []string
	for name := range strings.SplitSeq(out, "\x00") {
		if name == "" {
			continue
		}
		// A file that was removed but not committed is still listed.
		if _, err := os.Lstat(filepath.Join(s.Root, name)); err == nil {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// LDFlags are the flags of the linker: no symbol table, no debug information,
// no identity of the build, and the version in both packages that show it.
func (s Source) LDFlags(v targets.Version) string {
	major, minor := v.MajorMinor()
	state := "clean"
	if s.Dirty {
		state = "dirty"
	}
	flags := []string{"-s", "-w", "-buildid="}
	for _, pkg := range []string{"k8s.io/client-go/pkg/version", "k8s.io/component-base/version"} {
		for _, value := range [][2]string{
			{"buildDate", s.Time.Format(time.RFC3339)}, {"gitCommit", s.Commit}, {"gitTreeState", state},
			{"gitVersion", string(v)}, {"gitMajor", major}, {"gitMinor", minor},
		} {
			flags = append(flags, "-X", pkg+"."+value[0]+"="+value[1])
		}
	}
	return strings.Join(flags, " ")
}

// Command is the one go command that builds every binary for p into dir. It is
// static, has no path of this machine in it, and does not depend on the
// caller's settings of Go except for where modules and caches are.
func (s Source) Command(ctx context.Context, v targets.Version, p targets.Platform, dir string) *exec.Cmd {
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", s.LDFlags(v), "-o", dir + string(filepath.Separator)}
	for _, b := range targets.For(p) {
		args = append(args, b.Package)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = s.Root
	cmd.Env = s.Env(p)
	return cmd
}

// Env is the environment of go commands for p. It overrides what would change
// the bytes of binaries.
func (s Source) Env(p targets.Platform) []string {
	// The last value of a variable counts.
	return append(os.Environ(),
		"CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Arch, "GOFLAGS=", "GOWORK="+filepath.Join(s.Root, "go.work"),
		"GOAMD64=v1", "GOARM=7", "GOARM64=v8.0", "GO386=sse2", "GOPPC64=power8", "GOEXPERIMENT=", "GODEBUG=")
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
