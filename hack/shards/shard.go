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
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// timeout ends a shard that hangs. Shards take nine minutes at most when all is
// built; a slow machine gets the rest.
const timeout = "30m"

// Shard is a set of tests that run in one process of "go test". Each test of the
// repository belongs to one shard.
type Shard struct {
	// Name is the value for SHARD= of "make test-shard".
	Name string
	// Covers is the capability that the tests show, in one phrase.
	Covers string
	// Quick is true for what "make test" runs; "make test-all" runs all.
	Quick bool
	// Dir is the directory of the module, "" for the root. Other modules are built
	// without the workspace, as their users have them.
	Dir string
	// Packages are patterns relative to Dir: "./pkg/..." or "./pkg".
	Packages []string
	// Run and Skip are the flags -run and -skip of "go test".
	Run, Skip string `json:",omitempty"`
	// Parts says of tests, as "pkg/dir.TestName" with the directory relative to Dir,
	// which part of them this shard runs. Other shards run the other parts.
	Parts map[string]string `json:",omitempty"`
	// Schedules, unless 0, is how many random schedules the selected test of the only
	// package runs. One process a core, each with a seed of its own, shares them.
	Schedules int `json:",omitempty"`
	// OtherSeeds differs between shards that run the same test, so that their seeds do.
	OtherSeeds int `json:",omitempty"`
	// Race is true for the race detector.
	Race bool `json:",omitempty"`
	// Env has variables as NAME=value. {out} stands for the output directory.
	Env []string `json:",omitempty"`
	// Needs are targets of the Makefile that are built before any shard runs.
	Needs []string `json:",omitempty"`
	// Installed are programs that tests look for. Tests decide what happens without
	// them.
	Installed []string `json:",omitempty"`
	// Root is true when nothing of the shard runs without root and nft.
	Root bool `json:",omitempty"`
	// Alone is true for tests that judge memory or load: nothing runs beside them.
	Alone bool `json:",omitempty"`
	// Inputs are files and directories, relative to the root, that tests read although
	// they are outside the packages that the tests import. "." is the whole repository
	// and the commit that is checked out.
	Inputs []string `json:",omitempty"`
}

// check finds mistakes in a row of the table.
func (s Shard) check() error {
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("shard %q: "+format, append([]any{s.Name}, args...)...))
	}
	if s.Name == "" || strings.ContainsAny(s.Name, `*?[\/, `) {
		wrong("the name is empty or has a character that patterns of names use; take letters, digits and hyphens")
	}
	if s.Covers == "" {
		wrong("Covers is empty; say in one phrase what the tests show")
	}
	if len(s.Packages) == 0 {
		wrong("Packages is empty; name at least one")
	}
	for _, p := range s.Packages {
		if p != "." && !strings.HasPrefix(p, "./") {
			wrong("package %q does not begin with \"./\"", p)
		}
	}
	if s.Schedules > 0 && (len(s.Packages) != 1 || strings.HasSuffix(s.Packages[0], "...") || s.Run == "") {
		wrong("Schedules needs one package and Run")
	}
	for _, pattern := range []string{s.Run, s.Skip} {
		if _, err := splitPattern(pattern); err != nil {
			wrong("%w", err)
		}
	}
	for _, need := range s.Needs {
		if _, ok := builds[need]; !ok {
			wrong("what %q is built from is not known; add it to builds in hack/shards/needs.go", need)
		}
	}
	return errors.Join(errs...)
}

// arguments are those of "go" for the tests of the shard.
func (s Shard) arguments() []string {
	args := append([]string{"test", "-json", "-count=1", "-vet=off", "-timeout=" + timeout}, s.buildFlags()...)
	if s.Alone {
		args = append(args, "-p=1")
	}
	if s.Run != "" {
		args = append(args, "-run="+s.Run)
	}
	if s.Skip != "" {
		args = append(args, "-skip="+s.Skip)
	}
	return append(args, s.Packages...)
}

func (s Shard) buildFlags() []string {
	if s.Race {
		return []string{"-race"}
	}
	return nil
}

// environment is that of the processes of the shard. A make that a test starts must
// not take the flags of the make that started the tests.
func (s Shard) environment(out string) []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"}, name)
	})
	if s.Dir != "" {
		env = append(env, "GOWORK=off")
	}
	for _, entry := range s.Env {
		env = append(env, strings.ReplaceAll(entry, "{out}", out))
	}
	return env
}

// missing returns what the machine lacks for a shard with Root, "" when it lacks
// nothing.
func (s Shard) missing() string {
	if !s.Root {
		return ""
	}
	if os.Geteuid() != 0 {
		return "needs root"
	}
	if _, err := exec.LookPath("nft"); err != nil {
		return "needs nft (Debian's nftables)"
	}
	return ""
}

// find looks for a program on the PATH, and where hack/install-packages.sh puts promtool.
func find(name, out string) (string, error) {
	file, err := exec.LookPath(name)
	if err == nil {
		return file, nil
	}
	file = filepath.Join(out, "tools", name)
	if _, statErr := os.Stat(file); statErr == nil {
		return file, nil
	}
	return "", err
}

// notInstalled is the note about programs that are not there.
func (s Shard) notInstalled(out string) string {
	var missing []string
	for _, name := range s.Installed {
		if _, err := find(name, out); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "without " + strings.Join(missing, ", ")
}

// covers is true when a pattern of Packages has the package in dir, a slash-separated
// path relative to the shard's module.
func (s Shard) covers(dir string) bool {
	return slices.ContainsFunc(s.Packages, func(pattern string) bool {
		prefix, tree := strings.CutSuffix(path.Clean(pattern), "...")
		prefix = strings.TrimSuffix(prefix, "/")
		if tree {
			return prefix == "" || prefix == "." || dir == prefix || strings.HasPrefix(dir, prefix+"/")
		}
		return dir == prefix
	})
}

// seedOf is the seed of process i, the first of which has the given one.
func seedOf(seed uint64, i int) string { return strconv.FormatUint(seed+uint64(i)*1000000007, 10) }

// moduleDir is the directory of the shard's module below root.
func (s Shard) moduleDir(root string) string { return filepath.Join(root, filepath.FromSlash(s.Dir)) }
