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
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

var (
	// goSettings are those of "go env" that change what is built.
	goSettings = []string{"GOVERSION", "GOFLAGS", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GODEBUG", "GOWORK", "CGO_ENABLED", "CC", "CGO_CFLAGS", "CGO_LDFLAGS"}
	// variables of the environment that tests or builds read, and prefixes of others.
	variables        = []string{"DBG", "VERSION", "WHAT", "LDFLAGS", "UPSTREAM_VERSION", "FEATURE", "KIND", "GORACE", "GOGC", "GOMAXPROCS", "TZ", "LANG"}
	variablePrefixes = []string{"KUBE", "FAULTS_", "SOAK_", "VERSIONS_", "MODEL_", "RELEASE_", "FEATURES_"}
	// workspace are the files of the workspace, which modules below the root use.
	workspace = []string{"go.mod", "go.sum", "go.work", "go.work.sum"}
)

// inputs are the dependencies of a shard: folders of files that count, and text
// about the rest.
type inputs struct {
	// text has the row, the toolchain and the environment.
	text string
	// whole are paths of which every file counts, code those of packages that are
	// imported, of which tests do not count. Both are relative to the root.
	whole, code map[string]bool
}

// fingerprints finds what shards depend on in a checkout.
type fingerprints struct {
	root string
	// listed caches what packages are imported.
	mu     sync.Mutex
	listed map[string]listing
}

// listing are directories, relative to the root, of packages that were named, of
// those that they import, and of the modules.
type listing struct{ tested, imported, modules []string }

func newFingerprints(root string) *fingerprints {
	return &fingerprints{root: root, listed: map[string]listing{}}
}

// inputs gathers what the shard depends on.
func (f *fingerprints) inputs(ctx context.Context, s Shard, out string) (inputs, error) {
	in := inputs{whole: map[string]bool{}, code: map[string]bool{}}
	env := s.environment(out)
	packages, err := f.list(ctx, s.moduleDir(f.root), env, append(s.buildFlags(), s.Packages...))
	if err != nil {
		return in, err
	}
	in.add(packages)
	for _, file := range s.Inputs {
		in.whole[path.Clean(file)] = true
	}
	if s.Dir == "" {
		in.addFiles(workspace...)
	}
	if err := f.addNeeds(ctx, s, &in); err != nil {
		return in, err
	}
	row, err := json.Marshal(s)
	if err != nil {
		return in, err
	}
	settings, err := f.run(ctx, s.moduleDir(f.root), env, "go", append([]string{"env"}, goSettings...)...)
	if err != nil {
		return in, err
	}
	head := ""
	if in.whole["."] {
		if head, err = f.head(ctx); err != nil {
			return in, err
		}
	}
	in.text = fmt.Sprintf("%s\n%q\n%s\n%q\n%d\n%q\n%s\n", row, s.arguments(), settings, environment(os.Environ()), os.Geteuid(), programs(s, out), head)
	return in, nil
}

// head is the commit that is checked out, "" when there is none. Tests that read the
// whole repository read its history, too.
func (f *fingerprints) head(ctx context.Context) (string, error) {
	head, err := f.run(ctx, f.root, os.Environ(), "git", "rev-parse", "--quiet", "--verify", "HEAD")
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		return "", nil
	}
	return head, err
}

// addNeeds adds what the binaries of a shard are made of.
func (f *fingerprints) addNeeds(ctx context.Context, s Shard, in *inputs) error {
	if len(s.Needs) == 0 {
		return nil
	}
	in.addFiles("Makefile")
	for _, need := range s.Needs {
		in.addFiles(builds[need].Inputs...)
		if len(builds[need].Packages) == 0 {
			continue
		}
		in.addFiles(workspace...)
		packages, err := f.list(ctx, f.root, os.Environ(), builds[need].Packages)
		if err != nil {
			return err
		}
		in.add(listing{imported: append(packages.tested, packages.imported...), modules: packages.modules})
	}
	return nil
}

func (in *inputs) addFiles(files ...string) {
	for _, file := range files {
		in.whole[file] = true
	}
}

func (in *inputs) add(l listing) {
	in.addFiles(l.tested...)
	for _, dir := range l.imported {
		in.code[dir] = true
	}
	for _, dir := range l.modules {
		in.addFiles(path.Join(dir, "go.mod"), path.Join(dir, "go.sum"))
	}
}

// list finds the packages of this repository that patterns and their tests import.
func (f *fingerprints) list(ctx context.Context, dir string, env, patterns []string) (listing, error) {
	key := fmt.Sprintf("%s %q", dir, patterns)
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, ok := f.listed[key]; ok {
		return known, nil
	}
	const format = "{{if not .Standard}}{{.DepOnly}}\t{{.Dir}}\t{{with .Module}}{{.Dir}}{{end}}{{end}}"
	output, err := f.run(ctx, dir, env, "go", append([]string{"list", "-deps", "-test", "-f", format}, patterns...)...)
	if err != nil {
		return listing{}, err
	}
	root, err := filepath.EvalSymlinks(f.root)
	if err != nil {
		return listing{}, err
	}
	below := func(dir string) (string, bool) {
		rel, err := filepath.Rel(root, dir)
		return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
	}
	var l listing
	for line := range strings.Lines(output) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) < 2 {
			continue
		}
		dir, ok := below(fields[1])
		switch {
		case !ok:
			continue
		case fields[0] == "true":
			l.imported = append(l.imported, dir)
		default:
			l.tested = append(l.tested, dir)
		}
		if len(fields) == 3 {
			if module, ok := below(fields[2]); ok {
				l.modules = append(l.modules, module)
			}
		}
	}
	f.listed[key] = l
	return l, nil
}

// hash is the fingerprint of what the inputs are now.
func (f *fingerprints) hash(ctx context.Context, in inputs) (string, error) {
	output, err := f.run(ctx, f.root, os.Environ(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return "", err
	}
	files := slices.Compact(slices.Sorted(strings.SplitSeq(strings.TrimSuffix(output, "\x00"), "\x00")))
	sum := sha256.New()
	fmt.Fprint(sum, in.text)
	for _, file := range files {
		if !in.has(file) {
			continue
		}
		content, err := contentOf(filepath.Join(f.root, filepath.FromSlash(file)))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%q %x\n", file, content)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// has is true for a file that counts. Files below the directory of a package count
// with it: tests read testdata, and packages embed files.
func (in inputs) has(file string) bool {
	if in.whole[file] || in.whole["."] {
		return true
	}
	test := strings.HasSuffix(file, "_test.go")
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if in.whole[dir] || in.code[dir] && !test {
			return true
		}
		if dir == "." {
			return false
		}
	}
}

// contentOf is the hash of a file or of where a link leads, with its mode. A file
// that is tracked but not there has none.
func contentOf(file string) ([]byte, error) {
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var data []byte
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		var to string
		to, err = os.Readlink(file)
		data = []byte(to)
	case info.Mode().IsRegular():
		data, err = os.ReadFile(file)
	}
	sum := sha256.Sum256(append([]byte(info.Mode().String()+"\n"), data...))
	return sum[:], err
}

// environment are the variables that count, sorted.
func environment(all []string) []string {
	return slices.Sorted(maps.Keys(maps.Collect(func(yield func(string, bool) bool) {
		for _, entry := range all {
			name, _, _ := strings.Cut(entry, "=")
			counts := slices.Contains(variables, name) || slices.ContainsFunc(variablePrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
			if counts && !yield(entry, true) {
				return
			}
		}
	})))
}

// programs say which installed programs the shard finds: path, size and time.
func programs(s Shard, out string) []string {
	var found []string
	for _, name := range append([]string{"git", "nft"}, s.Installed...) {
		file, err := find(name, out)
		if err != nil {
			found = append(found, name+" is missing")
			continue
		}
		if info, err := os.Stat(file); err == nil {
			found = append(found, fmt.Sprint(file, info.Size(), info.ModTime().UnixNano()))
		}
	}
	return found
}

func (f *fingerprints) run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = dir, env, &stderr
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s in %s: %w\n%s", name, args[0], dir, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(output), nil
}
