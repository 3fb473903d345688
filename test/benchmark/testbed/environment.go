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

package testbed

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"

	"k8s.io/kubernetes-features/test/benchmark/measure"
	"k8s.io/kubernetes-features/test/benchmark/result"
)

// written are the files that benchmarks write themselves; a tree with others of
// them is not dirty.
var written = []string{result.Folder, result.Page, result.Larger}

// Environment describes the machine and the commit.
func (b *Bed) Environment() (result.Environment, error) {
	e := result.Environment{Cores: runtime.NumCPU(), Go: runtime.Version()}
	var errs []error
	take := func(to *string, value string, err error) {
		*to = value
		errs = append(errs, err)
	}
	model, err := field("/proc/cpuinfo", "model name", ":")
	if model == "" {
		// Not all architectures have a name there.
		model = runtime.GOARCH
	}
	take(&e.Processor, model, err)
	system, err := field("/etc/os-release", "PRETTY_NAME", "=")
	take(&e.OS, strings.Trim(system, `"`), err)
	kernel, err := measure.Kernel()
	take(&e.Kernel, kernel, err)
	e.Memory, err = measure.MachineMemory()
	errs = append(errs, err)
	commit, err := b.git("rev-parse", "HEAD")
	take(&e.Commit, commit, err)
	status := []string{"status", "--porcelain", "--", "."}
	for _, path := range written {
		status = append(status, ":(exclude)"+path)
	}
	changes, err := b.git(status...)
	e.Dirty = changes != ""
	errs = append(errs, err)
	e.Kubernetes, e.Etcd, err = b.versions()
	return e, errors.Join(append(errs, err)...)
}

// versions are those of Kubernetes and etcd that the repository builds.
func (b *Bed) versions() (kubernetes, etcd string, err error) {
	file := filepath.Join(b.Root, "go.mod")
	data, err := os.ReadFile(file)
	if err != nil {
		return "", "", err
	}
	mod, err := modfile.Parse(file, data, nil)
	if err != nil {
		return "", "", err
	}
	for _, require := range mod.Require {
		switch require.Mod.Path {
		case "k8s.io/kubernetes":
			kubernetes = require.Mod.Version
		case "go.etcd.io/etcd/server/v3":
			etcd = require.Mod.Version
		}
	}
	if kubernetes == "" || etcd == "" {
		return "", "", fmt.Errorf("%s does not require Kubernetes and etcd", file)
	}
	return kubernetes, etcd, nil
}

func (b *Bed) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = b.Root
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w; benchmarks say which commit they ran on", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(output)), nil
}

// field is the first value of a name in a file of lines, "" when it has none.
func field(file, name, separator string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	for scanner := bufio.NewScanner(bytes.NewReader(data)); scanner.Scan(); {
		if key, value, ok := strings.Cut(scanner.Text(), separator); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), nil
		}
	}
	return "", nil
}
