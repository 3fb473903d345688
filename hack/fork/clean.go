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
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"strings"
)

// temporary begins the names of files that landing is writing.
const temporary = ".landing-"

// temporaryOf is a file beside another one, where its content is written: only
// there it can be put in the other's place at once.
func temporaryOf(file string) string {
	dir, base := path.Split(file)
	return dir + temporary + rand.Text() + "-" + base
}

// entry is a file that git status names.
type entry struct {
	name string
	// untracked is set for files that git does not know.
	untracked bool
}

// status are the files that differ from HEAD, but for ignored ones.
func (c checkout) status(ctx context.Context) ([]entry, error) {
	output, err := c.git(ctx, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames")
	if err != nil {
		return nil, err
	}
	var entries []entry
	for line := range strings.SplitSeq(strings.TrimRight(string(output), "\x00"), "\x00") {
		if len(line) > 3 {
			entries = append(entries, entry{name: line[3:], untracked: strings.HasPrefix(line, "??")})
		}
	}
	return entries, nil
}

// notCommitted is the refusal of a tree with work in it that has no other copy.
func (c checkout) notCommitted(names []string) error {
	return fmt.Errorf("%s has changes that are not committed: %s; commit or stash them first", c.dir, some(names))
}

// checkClean refuses changes that are not committed, unless they are the
// landing's own: then there is nothing to do. Temporary files of a landing that
// was killed go into the plan.
func (c checkout) checkClean(ctx context.Context, p *plan, before sums) error {
	entries, err := c.status(ctx)
	if err != nil {
		return err
	}
	state, err := c.vendoring(ctx)
	if err != nil {
		return err
	}
	head, err := c.head(ctx)
	if err != nil {
		return err
	}
	var foreign []string
	p.leftovers = nil
	for _, e := range entries {
		var own bool
		if isVendor(e.name) {
			own, err = state.left(c, head, e.name)
		} else {
			own, err = c.landed(p, before, e.name)
		}
		if err != nil {
			return err
		}
		switch {
		case own:
		case e.untracked && c.isLeftover(p, e.name):
			p.leftovers = append(p.leftovers, e.name)
		default:
			foreign = append(foreign, e.name)
		}
	}
	if len(foreign) > 0 {
		return c.notCommitted(foreign)
	}
	return nil
}

// landed is true for a file as this landing writes it, and for one of an earlier
// landing that this one has removed or given back to upstream.
func (c checkout) landed(p *plan, before sums, name string) (bool, error) {
	have, err := c.read(name)
	var other *obstacle
	if errors.As(err, &other) {
		return false, nil
	}
	if t := p.files[name]; t != nil && err == nil {
		return c.has(t)
	}
	if _, ok := before[name]; !ok || err != nil {
		return false, err
	}
	base, err := p.upstream(name)
	return (have == nil) == (base == nil) && bytes.Equal(have, base), err
}

// isLeftover is true for a temporary file that a landing left beside the file
// that it was writing: it has the name, and the beginning of the content.
func (c checkout) isLeftover(p *plan, name string) bool {
	_, of, ok := strings.Cut(strings.TrimPrefix(path.Base(name), temporary), "-")
	if !ok || !strings.HasPrefix(path.Base(name), temporary) {
		return false
	}
	t := p.files[path.Join(path.Dir(name), of)]
	have, err := c.read(name)
	return t != nil && err == nil && bytes.HasPrefix(t.data, have)
}
