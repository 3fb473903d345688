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
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/kubernetes-features/build/release/targets"
)

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

// Command builds packages for p in one go: into the folder out, or into the file
// out where there is one package. What it builds is static, has no path of this
// machine in it, and does not depend on the caller's settings of Go except for
// where modules and caches are.
func (s Source) Command(ctx context.Context, v targets.Version, p targets.Platform, out string, packages ...string) *exec.Cmd {
	args := []string{"build", "-trimpath", "-buildvcs=false", "-tags=" + targets.Tags, "-ldflags", s.LDFlags(v), "-o", out}
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...)
	cmd.Dir = s.Root
	cmd.Env = s.Go.Env(s.Root, p)
	// The go command leaves its compilers alone when it ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// Packages are those of the binaries of components.
func Packages(components []targets.Component) []string {
	var packages []string
	for _, b := range targets.For(components) {
		packages = append(packages, b.Package)
	}
	return packages
}

// Folder is dir as the go command takes a folder that exists.
func Folder(dir string) string { return dir + string(filepath.Separator) }
