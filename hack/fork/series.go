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
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// plainPatches has format-patch write what git am reads, whatever the user has
// configured.
var plainPatches = []string{
	"-c", "format.signOff=false", "-c", "format.pretty=", "-c", "diff.submodule=short",
	"-c", "core.quotePath=true", "-c", "diff.suppressBlankEmpty=false",
	"format-patch", "--zero-commit", "--no-signature", "--numbered", "--subject-prefix=PATCH", "--suffix=.patch", "--no-attach", "--no-thread",
	"--no-cover-letter", "--no-notes", "--no-base", "--no-from", "--no-to", "--no-cc", "--no-add-header", "--no-ext-diff", "--no-textconv", "--no-color",
	"--no-renames", "--no-relative", "-O" + os.DevNull, "--unified=3", "--inter-hunk-context=0", "--diff-algorithm=myers", "--src-prefix=a/", "--dst-prefix=b/", "--full-index",
}

// writeSeries writes one patch for each part that the checkout does not have. It
// builds commits in a store and an index of their own: the checkout's stay as
// they are.
func writeSeries(ctx context.Context, tree checkout, p *plan, dir string, out io.Writer) error {
	dirty, err := tree.status(ctx)
	if err != nil {
		return err
	}
	if len(dirty) > 0 {
		var names []string
		for _, e := range dirty {
			names = append(names, e.name)
		}
		return fmt.Errorf("no series can be based on this: %w", tree.notCommitted(names))
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty; git am would take its files for patches of the series: name a new directory", dir)
	}
	for _, who := range []string{"GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"} {
		if _, err := tree.git(ctx, "var", who); err != nil {
			return fmt.Errorf("git does not know who the patches are from; say so with git config user.name and git config user.email: %w", err)
		}
	}
	s, err := newSeries(ctx, tree)
	if err != nil {
		return err
	}
	defer s.remove()
	for number := range parts {
		if err := s.commit(ctx, number, p.of(number)); err != nil {
			return err
		}
	}
	if s.tip == s.begin {
		fmt.Fprintf(out, "%s has it all: there is nothing to write\n", tree.dir)
		return nil
	}
	written, err := s.git(ctx, nil, slices.Concat(plainPatches, []string{"--output-directory", dir, s.begin + ".." + s.tip})...)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%sApply them with git am --whitespace=nowarn %s/*.patch, then run hack/update-vendor.sh: the series does not have vendor/\n", written, quote(dir))
	return nil
}

// quote is a word for a shell.
func quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_/.,:=@%+-]+$`)

// series is a line of commits on a checkout's HEAD that only exists in a
// temporary directory.
type series struct {
	tree       checkout
	dir        string
	env        []string
	begin, tip string
}

func newSeries(ctx context.Context, tree checkout) (*series, error) {
	objects, err := tree.git(ctx, "rev-parse", "--path-format=absolute", "--git-path", "objects")
	if err != nil {
		return nil, err
	}
	head, err := tree.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return nil, err
	}
	// The same delta on the same commit is the same series.
	date, err := tree.git(ctx, "show", "--no-patch", "--format=%cI", "HEAD")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "fork")
	if err != nil {
		return nil, err
	}
	at := strings.TrimSpace(string(date))
	s := &series{tree: tree, dir: dir, begin: strings.TrimSpace(string(head)), env: []string{
		"GIT_INDEX_FILE=" + filepath.Join(dir, "index"),
		"GIT_OBJECT_DIRECTORY=" + dir,
		"GIT_AUTHOR_DATE=" + at, "GIT_COMMITTER_DATE=" + at,
	}}
	s.tip = s.begin
	// In the variable for other stores a colon would end the path.
	if err := s.borrow(strings.TrimSuffix(string(objects), "\n")); err != nil {
		s.remove()
		return nil, err
	}
	if _, err := s.git(ctx, nil, "read-tree", s.begin); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

// borrow has git find objects of another store.
func (s *series) borrow(objects string) error {
	info := filepath.Join(s.dir, "info")
	if err := os.Mkdir(info, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(info, "alternates"), []byte(objects+"\n"), 0o644)
}

func (s *series) remove() { _ = os.RemoveAll(s.dir) }

func (s *series) git(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	return command(ctx, s.tree.dir, stdin, s.env, "git", args...)
}

// commit adds a part's files, unless they are there.
func (s *series) commit(ctx context.Context, number int, files []*target) error {
	var index bytes.Buffer
	for _, t := range files {
		has, err := s.tree.has(t)
		if err != nil {
			return err
		}
		unset, err := s.tree.withoutMode(ctx, []*target{t})
		if err != nil {
			return err
		}
		if has && len(unset) == 0 {
			continue
		}
		if t.remove {
			fmt.Fprintf(&index, "0 %s\t%s\n", strings.Repeat("0", len(s.begin)), t.path)
			continue
		}
		blob, err := s.git(ctx, bytes.NewReader(t.data), "hash-object", "-w", "--stdin")
		if err != nil {
			return err
		}
		executable, err := s.tree.executable(ctx, t)
		if err != nil {
			return err
		}
		mode := "100644"
		if executable {
			mode = "100755"
		}
		fmt.Fprintf(&index, "%s %s\t%s\n", mode, bytes.TrimSpace(blob), t.path)
	}
	if index.Len() == 0 {
		return nil
	}
	if _, err := s.git(ctx, &index, "update-index", "--index-info"); err != nil {
		return err
	}
	written, err := s.git(ctx, nil, "write-tree")
	if err != nil {
		return err
	}
	message := strings.NewReader(parts[number].title + "\n\n" + parts[number].why + "\n\nKEP-3920: Finish Feature Flags.\n")
	commit, err := s.git(ctx, message, "commit-tree", strings.TrimSpace(string(written)), "-p", s.tip)
	if err != nil {
		return err
	}
	s.tip = strings.TrimSpace(string(commit))
	return nil
}
