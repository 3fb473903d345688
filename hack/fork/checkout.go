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

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// examples is how many files a refusal names.
const examples = 5

// checkout is a working tree of kubernetes/kubernetes.
type checkout struct{ dir string }

func (c checkout) git(ctx context.Context, args ...string) ([]byte, error) {
	return command(ctx, c.dir, nil, nil, "git", args...)
}

// read is a file of the tree, nil where there is none.
func (c checkout) read(name string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(c.dir, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// executable is true for files that are executable in the tree, and for those
// that shall be and are not there.
func (c checkout) executable(t *target) (bool, error) {
	info, err := os.Stat(filepath.Join(c.dir, filepath.FromSlash(t.path)))
	if errors.Is(err, fs.ErrNotExist) {
		return t.executable, nil
	}
	if err != nil {
		return false, err
	}
	return info.Mode()&0o100 != 0, nil
}

// check refuses trees in which landing would lose or break something: others
// than upstream of this version, with or without what landing writes.
func (c checkout) check(ctx context.Context, base *upstream, p *plan) error {
	top, err := c.git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return fmt.Errorf("%s is no checkout: %w", c.dir, err)
	}
	real, err := filepath.EvalSymlinks(c.dir)
	if err != nil {
		return err
	}
	if root := strings.TrimSuffix(string(top), "\n"); root != real {
		return fmt.Errorf("%s is inside the checkout %s; name its root", c.dir, root)
	}
	if err := c.checkVersion(ctx, base, p); err != nil {
		return err
	}
	return c.checkClean(ctx, p)
}

// checkClean refuses changes that are not committed, unless they are the
// landing's own: then there is nothing to do.
func (c checkout) checkClean(ctx context.Context, p *plan) error {
	status, err := c.git(ctx, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames")
	if err != nil {
		return err
	}
	var foreign []string
	vendored := false
	for entry := range strings.SplitSeq(strings.TrimRight(string(status), "\x00"), "\x00") {
		if len(entry) < 4 {
			continue
		}
		name := entry[3:]
		if strings.HasPrefix(name, "vendor/") || strings.HasPrefix(name, vendorLicenses) {
			vendored = true
			continue
		}
		landed, err := c.has(p.files[name])
		if err != nil {
			return err
		}
		if !landed {
			foreign = append(foreign, name)
		}
	}
	if vendored {
		// Vendoring is the last step: before it, all is landed.
		for _, t := range p.files {
			landed, err := c.has(t)
			if err != nil {
				return err
			}
			if !landed {
				foreign = append(foreign, "vendor")
				break
			}
		}
	}
	if len(foreign) > 0 {
		return fmt.Errorf("%s has changes that are not committed: %s; commit or stash them first", c.dir, some(foreign))
	}
	return nil
}

// has is true when the tree has a file as it shall be.
func (c checkout) has(t *target) (bool, error) {
	if t == nil {
		return false, nil
	}
	data, err := c.read(t.path)
	return data != nil && bytes.Equal(data, t.data), err
}

// checkVersion compares the tree with upstream's. A tag may be missing (shallow
// clones have none) or stand on something else; contents do not lie.
func (c checkout) checkVersion(ctx context.Context, base *upstream, p *plan) error {
	var different, edited []string
	compared := 0
	err := base.files(func(name, file string) error {
		want, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		have, err := c.read(name)
		if err != nil {
			return err
		}
		compared++
		t := p.files[name]
		switch {
		case have != nil && bytes.Equal(have, want):
		case t != nil && have != nil && bytes.Equal(have, t.data):
		case t != nil:
			edited = append(edited, name)
		default:
			different = append(different, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(different) == 0 && len(edited) == 0 {
		return nil
	}
	described, err := c.git(ctx, "describe", "--tags", "--always")
	if err != nil {
		described = []byte("something without a commit")
	}
	at := strings.TrimSpace(string(described))
	if len(different) == 0 {
		return fmt.Errorf("%s (%s) has its own changes in files that landing edits: %s; take upstream's with \"git checkout %s -- FILE\", land, and make your changes again", c.dir, at, some(edited), base.version)
	}
	return fmt.Errorf("%s (%s) is not kubernetes/kubernetes %s: %d of %d files differ or are missing: %s; check that version out, or change go.mod here to the version there",
		c.dir, at, base.version, len(different)+len(edited), compared, some(append(different, edited...)))
}

// some names a few of many files.
func some(names []string) string {
	slices.Sort(names)
	if len(names) <= examples {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:examples], ", "), len(names)-examples)
}

// write makes files what they shall be, and counts those that were not there and
// those that were different.
func (c checkout) write(files []*target) (created, changed int, err error) {
	for _, t := range files {
		have, err := c.read(t.path)
		if err != nil {
			return created, changed, err
		}
		if have != nil && bytes.Equal(have, t.data) {
			continue
		}
		name := filepath.Join(c.dir, filepath.FromSlash(t.path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return created, changed, err
		}
		mode := fs.FileMode(0o644)
		if t.executable {
			mode = 0o755
		}
		if err := os.WriteFile(name, t.data, mode); err != nil {
			return created, changed, err
		}
		if have == nil {
			created++
		} else {
			changed++
		}
	}
	return created, changed, nil
}
