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
	"io"
	"os"
	"slices"
	"strings"
)

// examples is the number of files that a refusal names.
const examples = 5

// check refuses trees in which landing would lose or break something: others
// than upstream of this version, with or without what a landing wrote. It adds to
// the plan what becomes of files of an earlier landing. With different, files
// that differ from upstream's and that landing does not write are named, not
// refused.
//
// Uncommitted files come first: advice about committed ones would make users
// overwrite the only copy of their work.
func (c checkout) check(ctx context.Context, base *upstream, p *plan, different bool, out io.Writer) error {
	before, err := c.records(ctx)
	if err != nil {
		return err
	}
	if err := c.checkClean(ctx, p, before); err != nil {
		return err
	}
	compared, err := c.compare(ctx, base, p, before)
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
	return nil
}

// comparison has the differences of a tree from upstream and from the files
// that landing writes.
type comparison struct {
	// files is the number of upstream's that were compared.
	files int
	// different are files of upstream that landing does not write.
	different []string
	// edited are files of upstream that landing writes, with changes of the fork.
	edited []string
	// own are files of the fork where landing puts others.
	own []string
	// blocked names an obstacle where landing needs a file or a directory.
	blocked []string
	// deleted are files that an earlier landing wrote and the fork has removed.
	deleted []string
}

// compare compares the tree with upstream's. A tag may be missing (shallow
// clones have none) or stand on something else; contents do not lie.
func (c checkout) compare(ctx context.Context, base *upstream, p *plan, before sums) (comparison, error) {
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
		t := p.files[name]
		have, err := c.read(name)
		var other *obstacle
		if errors.As(err, &other) {
			if t != nil {
				r.blocked = append(r.blocked, other.Error())
				return nil
			}
		} else if err != nil {
			return err
		}
		r.files++
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
	return r, c.compareOwn(ctx, p, before, &r)
}

// compareOwn compares files of landing that upstream does not have.
func (c checkout) compareOwn(ctx context.Context, p *plan, before sums, r *comparison) error {
	var absent []string
	for name, t := range p.files {
		if t.base != nil {
			continue
		}
		have, err := c.read(name)
		var other *obstacle
		switch {
		case errors.As(err, &other):
			r.blocked = append(r.blocked, other.Error())
		case err != nil:
			return err
		case have == nil:
			absent = append(absent, name)
		case !bytes.Equal(have, t.data) && !before.has(name, have):
			r.own = append(r.own, name)
		}
	}
	slices.Sort(r.blocked)
	r.blocked = slices.Compact(r.blocked)
	landed := sums{}
	record, err := c.committed(ctx, recordFile)
	if err != nil {
		return err
	}
	if err := landed.add(record); err != nil {
		return err
	}
	absent = slices.DeleteFunc(absent, func(name string) bool { return landed[name] == nil })
	if len(absent) == 0 {
		return nil
	}
	// A file of HEAD is missing only because landing was interrupted, or the
	// tree would not be clean.
	listed, err := c.git(ctx, "ls-tree", "--full-tree", "-r", "-z", "--name-only", "HEAD")
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for name := range strings.SplitSeq(string(listed), "\x00") {
		there[name] = true
	}
	r.deleted = slices.DeleteFunc(absent, func(name string) bool { return there[name] })
	return nil
}

// refuse returns the obstacle to landing, nil when there is none.
func (c checkout) refuse(ctx context.Context, base *upstream, r comparison, different bool, out io.Writer) error {
	described, err := c.git(ctx, "describe", "--tags", "--always")
	if err != nil {
		return err
	}
	at := fmt.Sprintf("%s (%s)", c.dir, strings.TrimSpace(string(described)))
	switch all := append(slices.Clone(r.different), r.edited...); {
	case len(r.different) > 0 && !different:
		return fmt.Errorf("%s is not kubernetes/kubernetes %s: %d of %d files differ or are missing: %s; check that version out, or change the version here (hack/update-upstream.sh), or, if these are the fork's own changes, land with ALLOW_DIFFERENT=1",
			at, base.version, len(all), r.files, some(all))
	case len(r.blocked) > 0:
		return fmt.Errorf("%s has something else in the place of files or directories that landing needs: %s; move or remove it, commit, and land again", at, some(r.blocked))
	case len(r.edited) > 0:
		return fmt.Errorf("%s has its own changes in files that landing edits: %s; %stake upstream's with \"git checkout %s -- FILE\", commit, land, and make your changes again", at, some(r.edited), c.fetch(ctx, base.version), base.version)
	case len(r.own) > 0:
		return fmt.Errorf("%s has its own files where landing puts others, and no landing that %s knows wrote them: %s; move or remove them, commit, and land again", at, recordFile, some(r.own))
	case len(r.deleted) > 0:
		return fmt.Errorf("%s has removed files that landing writes: %s; bring them back from the commit that landed them, or, if landing shall write them again, remove their lines from %s; commit, and land again", at, some(r.deleted), recordFile)
	case len(r.different) > 0:
		fmt.Fprintf(out, "%d of %d files differ from upstream's %s, which landing leaves as they are: %s\n", len(r.different), r.files, base.version, strings.Join(slices.Sorted(slices.Values(r.different)), ", "))
	}
	return nil
}

// fetch is advice for a checkout that does not have a tag, as shallow clones.
func (c checkout) fetch(ctx context.Context, tag string) string {
	if _, err := c.git(ctx, "rev-parse", "--quiet", "--verify", "refs/tags/"+tag+"^{commit}"); err == nil {
		return ""
	}
	return fmt.Sprintf("get the tag with \"git fetch --depth=1 https://github.com/kubernetes/kubernetes tag %s\", ", tag)
}

// some names a few of many files.
func some(names []string) string {
	slices.Sort(names)
	if len(names) <= examples {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:examples], ", "), len(names)-examples)
}
