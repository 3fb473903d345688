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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// upstream is kubernetes/kubernetes of one version as the Go modules have it. The
// root module's zip lacks what other modules have (staging/src, vendor but its
// OWNERS) and symbolic links; all the rest is the tag's tree.
type upstream struct {
	// version is the root module's, for example v1.37.2.
	version string
	// dir is the directory of the root module.
	dir string
	// staging are the directories of the staging modules by module path, as far
	// as this repository depends on them.
	staging map[string]string
}

// command runs a command and returns what it prints; a failure has what it
// complains.
func command(ctx context.Context, dir string, stdin io.Reader, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdin = dir, stdin
	cmd.Env = append(cmd.Environ(), env...)
	output, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s in %s: %w", name, strings.Join(args, " "), dir, err)
	}
	return output, nil
}

// findUpstream asks the go command for the modules that this repository is built
// with.
func findUpstream(ctx context.Context, source string) (*upstream, error) {
	data, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("%s is not the root of this repository: %w", source, err)
	}
	root, err := modules(ctx, source, theirs)
	if err != nil {
		return nil, err
	}
	u := &upstream{version: root[0].Version, dir: root[0].Dir, staging: map[string]string{}}
	work, err := u.read("go.work")
	if err != nil {
		return nil, err
	}
	// Some of upstream's staging modules are for its tests and examples and not
	// among ours; not all of them are published for every version.
	all, err := required(data)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(all, func(module, _ string) bool {
		return !bytes.Contains(work, []byte("\t./staging/src/"+module+"\n"))
	})
	staging, err := modules(ctx, source, slices.Sorted(maps.Keys(all))...)
	if err != nil {
		return nil, err
	}
	for _, module := range staging {
		u.staging[module.Path] = module.Dir
	}
	return u, nil
}

// module is the go command's output about a module.
type module struct{ Path, Version, Dir, Error string }

// modules has the go command bring modules into the module cache, which has only those
// that were needed so far.
func modules(ctx context.Context, source string, paths ...string) ([]module, error) {
	output, err := command(ctx, source, nil, nil, "go", append([]string{"mod", "download", "-json"}, paths...)...)
	if err != nil {
		return nil, err
	}
	var found []module
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var m module
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go mod download: %w", err)
		}
		if m.Dir == "" {
			return nil, fmt.Errorf("go mod download %s in %s: %s; see whether the module proxy can be reached", m.Path, source, m.Error)
		}
		found = append(found, m)
	}
	if len(found) != len(paths) {
		return nil, fmt.Errorf("the go command knows %d of the %d modules %s", len(found), len(paths), strings.Join(paths, ", "))
	}
	return found, nil
}

// read is a file of the root module.
func (u *upstream) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(u.dir, filepath.FromSlash(name)))
}

// files calls f for each file of the version that a checkout has to agree with:
// those of the root module, and those of staging modules, of which publishing
// rewrites go.mod and go.sum.
func (u *upstream) files(f func(name, file string) error) error {
	if err := eachFile(u.dir, "", f); err != nil {
		return err
	}
	for path, dir := range u.staging {
		prefix := "staging/src/" + path + "/"
		err := eachFile(dir, prefix, func(name, file string) error {
			if name == prefix+"go.mod" || name == prefix+"go.sum" {
				return nil
			}
			return f(name, file)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachFile calls f for each file below a directory, with its slash-separated
// path after a prefix.
func eachFile(dir, prefix string, f func(name, file string) error) error {
	return filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		return f(prefix+filepath.ToSlash(relative), file)
	})
}
