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
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// checkout is a working tree of kubernetes/kubernetes.
type checkout struct {
	dir string
	// modeless is set where git ignores the modes of files
	// (core.fileMode=false): file systems that have none.
	modeless bool
}

// open is the checkout with a root directory. It has a commit.
func open(ctx context.Context, dir string) (checkout, error) {
	c := checkout{dir: dir}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return c, fmt.Errorf("KUBE_ROOT is %s, which is no directory; name the root of a checkout of kubernetes/kubernetes", dir)
	}
	top, err := c.git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return c, fmt.Errorf("%s is no checkout; name the root of one of kubernetes/kubernetes: %w", dir, err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return c, err
	}
	if root := strings.TrimSuffix(string(top), "\n"); root != real {
		return c, fmt.Errorf("%s is inside the checkout %s; name its root", dir, root)
	}
	if _, err := c.git(ctx, "rev-parse", "--quiet", "--verify", "HEAD^{commit}"); err != nil {
		return c, fmt.Errorf("%s has no commit; check out a version of kubernetes/kubernetes there", dir)
	}
	modes, err := c.git(ctx, "config", "--type=bool", "--default=true", "core.fileMode")
	c.modeless = strings.TrimSpace(string(modes)) == "false"
	return c, err
}

func (c checkout) git(ctx context.Context, args ...string) ([]byte, error) {
	return command(ctx, c.dir, nil, nil, "git", args...)
}

// obstacle is an error: the tree has something else where a file or a directory
// on the way to one is.
type obstacle struct{ name, is, want string }

func (o *obstacle) Error() string {
	return fmt.Sprintf("%s is %s, where %s should be", o.name, o.is, o.want)
}

// lstat returns the tree's file, nil where it has none. It follows no links:
// git tracks nothing beyond them, and they may lead out of the checkout.
func (c checkout) lstat(name string) (fs.FileInfo, error) {
	for end := 0; ; end++ {
		at, want := name, "a file"
		if n := strings.IndexByte(name[end:], '/'); n >= 0 {
			end += n
			at, want = name[:end], "a directory"
		}
		info, err := os.Lstat(filepath.Join(c.dir, filepath.FromSlash(at)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		mode := info.Mode()
		switch {
		case mode&fs.ModeSymlink != 0:
			return nil, &obstacle{at, "a symbolic link", want}
		case at != name && !mode.IsDir():
			return nil, &obstacle{at, "no directory", want}
		case at == name && !mode.IsRegular():
			return nil, &obstacle{at, "no regular file", want}
		case at == name:
			return info, nil
		}
	}
}

// read is a file of the tree, nil where there is none; the error is an obstacle
// where something else is.
func (c checkout) read(name string) ([]byte, error) {
	info, err := c.lstat(name)
	if err != nil || info == nil {
		return nil, err
	}
	tree, err := os.OpenRoot(c.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tree.Close() }()
	return tree.ReadFile(filepath.FromSlash(name))
}

// committed is a file of HEAD, nil where it has none.
func (c checkout) committed(ctx context.Context, name string) ([]byte, error) {
	listed, err := c.git(ctx, "ls-tree", "--full-tree", "-z", "--name-only", "HEAD", "--", name)
	if err != nil || len(listed) == 0 {
		return nil, err
	}
	data, err := c.git(ctx, "cat-file", "blob", "HEAD:"+name)
	if err == nil && data == nil {
		data = []byte{}
	}
	return data, err
}

// executable is the mode that a file shall have. Those of upstream keep the mode
// that git has, which modules do not have and file systems need not have.
func (c checkout) executable(ctx context.Context, t *target) (bool, error) {
	if t.base == nil {
		return t.executable, nil
	}
	mode, err := c.indexed(ctx, t.path)
	return mode == "100755", err
}

// indexed is the mode that git has for a file, empty for one that it does not
// know.
func (c checkout) indexed(ctx context.Context, name string) (string, error) {
	listed, err := c.git(ctx, "ls-files", "-s", "-z", "--", name)
	mode, _, _ := strings.Cut(string(listed), " ")
	return mode, err
}

// has is true when the tree has a file as it shall be.
func (c checkout) has(t *target) (bool, error) {
	info, err := c.lstat(t.path)
	if err != nil || info == nil || t.remove {
		return t.remove && info == nil, err
	}
	data, err := c.read(t.path)
	if err != nil || data == nil || !bytes.Equal(data, t.data) {
		return false, err
	}
	return t.base != nil || c.modeless || (info.Mode()&0o100 != 0) == t.executable, nil
}

// withoutMode are the executable files of a plan that git has otherwise, where
// the file system has no modes: only the index can have them.
func (c checkout) withoutMode(ctx context.Context, files []*target) ([]string, error) {
	var names []string
	for _, t := range files {
		if !c.modeless || !t.executable || t.remove || t.base != nil {
			continue
		}
		mode, err := c.indexed(ctx, t.path)
		if err != nil {
			return nil, err
		}
		if mode != "100755" {
			names = append(names, t.path)
		}
	}
	return names, nil
}
