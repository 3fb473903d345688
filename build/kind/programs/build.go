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

package programs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Builder builds programs for Linux.
type Builder struct {
	// Root is the checkout.
	Root string
	// Dir is where executables are written.
	Dir string
	// Arch is the architecture as the go command names it.
	Arch string
	// Log takes a line for each program that is built.
	Log func(format string, args ...any)
}

// File returns the path of the executable of a program.
func (b Builder) File(p Program) string { return filepath.Join(b.Dir, p.Name) }

// Build builds those programs that are not there as they should be. Programs of
// modules of this checkout are left to the go command, which sees what changed.
func (b Builder) Build(ctx context.Context, programs ...Program) error {
	if err := os.MkdirAll(b.Dir, 0o755); err != nil {
		return err
	}
	compiler, err := Compiler(ctx)
	if err != nil {
		return err
	}
	for _, p := range programs {
		if err := b.build(ctx, p, compiler); err != nil {
			return fmt.Errorf("cannot build %s: %w", p, err)
		}
	}
	return nil
}

// Compiler returns the version of the go command, as it is outside of modules.
func Compiler(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot find the version of Go: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// String returns the name of a program with its module.
func (p Program) String() string {
	if p.Module.Path == "" {
		return p.Name
	}
	return p.Name + " of " + p.Module.Path + " " + p.Module.Version
}

// Stamp returns all that decides on the content of a program, for comparison.
func (b Builder) Stamp(p Program, compiler string) string {
	text := fmt.Sprintf("%s %s\n%s\n", p, p.Module.Sum, compiler)
	for _, setting := range slices.Concat(b.environment(p), arguments(p)) {
		text += setting + "\n"
	}
	return text
}

func (b Builder) build(ctx context.Context, p Program, compiler string) error {
	if p.Module.Path == "" {
		return b.compile(ctx, p, filepath.Join(b.Root, p.Module.Dir))
	}
	stamp := b.File(p) + ".from"
	from := b.Stamp(p, compiler)
	if was, err := os.ReadFile(stamp); err == nil && string(was) == from {
		if _, err := os.Stat(b.File(p)); err == nil {
			return nil
		}
	}
	b.Log("Building %s", p)
	dir, remove, err := b.source(ctx, p.Module)
	if err != nil {
		return err
	}
	if err := errors.Join(b.compile(ctx, p, dir), remove()); err != nil {
		return err
	}
	return os.WriteFile(stamp, []byte(from), 0o644)
}

// source copies a module out of the module cache, where nothing can be built.
func (b Builder) source(ctx context.Context, m Module) (dir string, remove func() error, err error) {
	cached, err := fetch(ctx, m)
	if err != nil {
		return "", nil, err
	}
	dir, err = os.MkdirTemp(b.Dir, "source-")
	if err != nil {
		return "", nil, err
	}
	remove = func() error { return os.RemoveAll(dir) }
	if err := os.CopyFS(dir, os.DirFS(cached)); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return dir, remove, nil
}

// fetch returns the directory of a module in the module cache.
func fetch(ctx context.Context, m Module) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", m.Path+"@"+m.Version)
	// Outside of a module nothing but the version asked for counts.
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var got struct{ Dir, Sum, Error string }
	// Where it fails it still writes what is wrong with the module.
	err = errors.Join(err, json.Unmarshal(out, &got))
	if err != nil {
		return "", fmt.Errorf("go mod download %s@%s: %w: %s%s", m.Path, m.Version, err, got.Error, stderr.String())
	}
	if got.Sum != m.Sum {
		return "", fmt.Errorf("%s %s has the hash %s, want %s: do not use it", m.Path, m.Version, got.Sum, m.Sum)
	}
	return got.Dir, nil
}

// arguments are those of the go command but for the file that it writes.
func arguments(p Program) []string {
	return []string{"-trimpath", "-buildvcs=false", "-tags=" + strings.Join(p.Tags, ","), "-ldflags=-s -w " + p.Flags, p.Package}
}

// environment is what the go command has beside this process' environment.
func (b Builder) environment(p Program) []string {
	cgo := "0"
	if p.Cgo {
		cgo = "1"
	}
	return []string{"GOWORK=off", "GOFLAGS=-mod=readonly", "GOOS=linux", "GOARCH=" + b.Arch, "CGO_ENABLED=" + cgo}
}

func (b Builder) compile(ctx context.Context, p Program, dir string) error {
	out, err := filepath.Abs(b.File(p))
	if err != nil {
		return err
	}
	build := []string{"build", "-o", out}
	if p.Test {
		build = []string{"test", "-c", "-o", out}
	}
	cmd := exec.CommandContext(ctx, "go", append(build, arguments(p)...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), b.environment(p)...)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s%s", err, said, hint(p))
	}
	return nil
}

// hint tells what a program that is C in part needs.
func hint(p Program) string {
	if !p.Cgo {
		return ""
	}
	return "\nit needs a C compiler, pkg-config and libseccomp's headers: install Debian's gcc, pkg-config and libseccomp-dev"
}
