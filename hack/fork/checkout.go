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
	"io"
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
	listed, err := c.git(ctx, "ls-files", "-s", "-z", "--", t.path)
	return bytes.HasPrefix(listed, []byte("100755 ")), err
}

// check refuses trees in which landing would lose or break something: others
// than upstream of this version, with or without what a landing wrote. It adds to
// the plan what becomes of files of an earlier landing. With different, files
// that differ from upstream's and that landing does not write are named, not
// refused.
func (c checkout) check(ctx context.Context, base *upstream, p *plan, different bool, out io.Writer) error {
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
	before, err := c.records(ctx)
	if err != nil {
		return err
	}
	compared, err := c.compare(base, p, before)
	if err != nil {
		return err
	}
	if err := c.refuse(ctx, base, compared, different, out); err != nil {
		return err
	}
	stay, err := p.retire(c, before)
	if err != nil {
		return err
	}
	if len(stay) > 0 {
		fmt.Fprintf(out, "No longer landed, and changed since an earlier landing, so they stay: %s\n", some(stay))
	}
	return c.checkClean(ctx, p, before)
}

// checkClean refuses changes that are not committed, unless they are the
// landing's own: then there is nothing to do.
func (c checkout) checkClean(ctx context.Context, p *plan, before sums) error {
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
		landed, err := c.landed(p, before, name)
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

// landed is true for a file as this landing writes it, and for one of an earlier
// landing that this one has removed or given back to upstream.
func (c checkout) landed(p *plan, before sums, name string) (bool, error) {
	if t := p.files[name]; t != nil {
		return c.has(t)
	}
	if _, ok := before[name]; !ok {
		return false, nil
	}
	have, err := c.read(name)
	if err != nil {
		return false, err
	}
	base, err := p.upstream(name)
	return (have == nil) == (base == nil) && bytes.Equal(have, base), err
}

// has is true when the tree has a file as it shall be.
func (c checkout) has(t *target) (bool, error) {
	data, err := c.read(t.path)
	if err != nil || t.remove || data == nil || !bytes.Equal(data, t.data) {
		return t.remove && data == nil, err
	}
	if t.base != nil {
		return true, nil
	}
	info, err := os.Stat(filepath.Join(c.dir, filepath.FromSlash(t.path)))
	return err == nil && (info.Mode()&0o100 != 0) == t.executable, err
}

// comparison is how a tree differs from upstream and from what landing writes.
type comparison struct {
	// files is how many of upstream's were looked at.
	files int
	// different are files of upstream that landing does not write.
	different []string
	// edited are files of upstream that landing writes, with changes of the fork.
	edited []string
	// own are files of the fork where landing puts others.
	own []string
}

// compare compares the tree with upstream's. A tag may be missing (shallow
// clones have none) or stand on something else; contents do not lie.
func (c checkout) compare(base *upstream, p *plan, before sums) (comparison, error) {
	var r comparison
	err := base.files(func(name, file string) error {
		// The go command may have failed while it renewed what is there.
		if strings.HasPrefix(name, "vendor/") {
			return nil
		}
		want, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		have, err := c.read(name)
		if err != nil {
			return err
		}
		r.files++
		t := p.files[name]
		switch {
		case have != nil && bytes.Equal(have, want), before.has(name, have):
		case t != nil && have != nil && bytes.Equal(have, t.data):
		case t != nil:
			r.edited = append(r.edited, name)
		default:
			r.different = append(r.different, name)
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	for name, t := range p.files {
		if t.base != nil {
			continue
		}
		have, err := c.read(name)
		if err != nil {
			return r, err
		}
		if have != nil && !bytes.Equal(have, t.data) && !before.has(name, have) {
			r.own = append(r.own, name)
		}
	}
	return r, nil
}

// refuse says what is in the way of landing, nil when nothing is.
func (c checkout) refuse(ctx context.Context, base *upstream, r comparison, different bool, out io.Writer) error {
	described, err := c.git(ctx, "describe", "--tags", "--always")
	if err != nil {
		described = []byte("something without a commit")
	}
	at := strings.TrimSpace(string(described))
	switch all := append(slices.Clone(r.different), r.edited...); {
	case len(r.different) > 0 && !different:
		return fmt.Errorf("%s (%s) is not kubernetes/kubernetes %s: %d of %d files differ or are missing: %s; check that version out, or change the version here (hack/update-upstream.sh), or, if these are the fork's own changes, land with ALLOW_DIFFERENT=1",
			c.dir, at, base.version, len(all), r.files, some(all))
	case len(r.edited) > 0:
		return fmt.Errorf("%s (%s) has its own changes in files that landing edits: %s; take upstream's with \"git checkout %s -- FILE\", commit, land, and make your changes again", c.dir, at, some(r.edited), base.version)
	case len(r.own) > 0:
		return fmt.Errorf("%s (%s) has its own files where landing puts others, and no landing that %s knows wrote them: %s; move or remove them, commit, and land again", c.dir, at, recordFile, some(r.own))
	case len(r.different) > 0:
		fmt.Fprintf(out, "%d of %d files differ from upstream's %s, which landing leaves as they are: %s\n", len(r.different), r.files, base.version, strings.Join(slices.Sorted(slices.Values(r.different)), ", "))
	}
	return nil
}

// some names a few of many files.
func some(names []string) string {
	slices.Sort(names)
	if len(names) <= examples {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:examples], ", "), len(names)-examples)
}
