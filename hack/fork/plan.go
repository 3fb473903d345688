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
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// target is a file as it shall be in the checkout.
type target struct {
	// path is slash-separated, from the checkout's root.
	path string
	data []byte
	// executable applies to new files. Those of upstream keep the mode that
	// the checkout's git has; modules have none.
	executable bool
	// part is the index of the part that it belongs to.
	part int
	// base is upstream's file, nil where it has none.
	base []byte
	// remove is set for files of an earlier landing that go; they have no data.
	remove bool
}

// plan has all files that landing writes, by path.
type plan struct {
	source string
	base   *upstream
	files  map[string]*target
	// untracked are files of this repository that would land if git knew them.
	untracked []string
	// leftovers are temporary files in the checkout of a landing that was killed.
	leftovers []string
}

// edit changes one file of upstream's.
type edit struct {
	file  string
	apply func(ctx context.Context, p *plan, base []byte) ([]byte, error)
}

// newPlan computes what landing writes from this repository and upstream.
func newPlan(ctx context.Context, source string, base *upstream) (*plan, error) {
	p := &plan{source: source, base: base, files: map[string]*target{}}
	if err := p.addAll(ctx); err != nil {
		return nil, err
	}
	for number, part := range parts {
		for _, e := range part.edits {
			if err := p.edit(ctx, number, e); err != nil {
				return nil, fmt.Errorf("%s: %w", e.file, err)
			}
		}
	}
	return p, p.addRecord()
}

// addAll adds the files of this repository that git knows, as they are in the
// tree: others may be anything, from notes to a series.
func (p *plan) addAll(ctx context.Context) error {
	for _, which := range []string{"--cached", "--others"} {
		listed, err := command(ctx, p.source, nil, nil, "git", "ls-files", "-z", "--exclude-standard", which)
		if err != nil {
			return err
		}
		for file := range strings.SplitSeq(strings.TrimRight(string(listed), "\x00"), "\x00") {
			if which == "--cached" {
				err = p.addFile(file)
			} else if _, ok, undecided := lands(file); ok && undecided == nil {
				p.untracked = append(p.untracked, file)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// addFile adds a file of this repository, unless it stays.
func (p *plan) addFile(file string) error {
	number, ok, err := lands(file)
	if err != nil || !ok {
		return err
	}
	info, err := os.Lstat(filepath.Join(p.source, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // deleted and not committed
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file, and git am could not create it", file)
	}
	data, err := os.ReadFile(filepath.Join(p.source, file))
	if err != nil {
		return err
	}
	if data, err = reword(file, data); err != nil {
		return err
	}
	if data, err = rewrite(file, data); err != nil {
		return err
	}
	t := &target{path: file, data: data, executable: info.Mode()&0o100 != 0, part: number}
	if t.base, err = p.upstream(file); err != nil {
		return err
	}
	switch upstreamHasPackage := p.hasPackage(path.Dir(file)); {
	case t.base != nil && isMain(file):
		t.data, err = replaceMain(file, t.base, data)
	case t.base != nil:
		return fmt.Errorf("%s: upstream %s has a file there; move ours elsewhere", file, p.base.version)
	case upstreamHasPackage && path.Ext(file) == ".go":
		t.data, err = besidePackage(file, data)
	}
	if err != nil {
		return err
	}
	return p.add(t)
}

// upstream returns upstream's file at a path, nil for none.
func (p *plan) upstream(file string) ([]byte, error) {
	data, err := p.base.read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// hasPackage is true for directories of upstream with Go files.
func (p *plan) hasPackage(dir string) bool {
	files, err := filepath.Glob(filepath.Join(p.base.dir, filepath.FromSlash(dir), "*.go"))
	return err == nil && len(files) > 0
}

// edit adds an edited file of upstream's, or, where upstream has none, a new one.
func (p *plan) edit(ctx context.Context, number int, e edit) error {
	base, err := p.upstream(e.file)
	if err != nil {
		return err
	}
	// The library's files are there by now.
	if moved, ok := p.files[e.file]; ok {
		moved.data, err = e.apply(ctx, p, moved.data)
		return err
	}
	data, err := e.apply(ctx, p, base)
	if err != nil {
		return err
	}
	return p.add(&target{path: e.file, data: data, part: number, base: base})
}

// add adds a file, once.
func (p *plan) add(t *target) error {
	if _, ok := p.files[t.path]; ok {
		return fmt.Errorf("%s lands twice; see hack/fork/mapping.go", t.path)
	}
	p.files[t.path] = t
	return nil
}

// of returns the files of one part in the order of their paths.
func (p *plan) of(number int) []*target {
	return slices.SortedFunc(func(yield func(*target) bool) {
		for t := range maps.Values(p.files) {
			if t.part == number && !yield(t) {
				return
			}
		}
	}, func(a, b *target) int { return cmp.Compare(a.path, b.path) })
}
