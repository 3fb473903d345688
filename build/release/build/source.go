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

package build

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/kubernetes-features/build/release/archive"
)

// Source describes the checkout from which a release is built.
type Source struct {
	// Root is the folder of the checkout.
	Root string
	// Commit is the hash of HEAD, empty outside of git.
	Commit string
	// Dirty is true if the tree differs from Commit.
	Dirty bool
	// State is a hash of all files of a dirty tree.
	State string
	// Time is that of the commit. It stands for the time of the build
	// everywhere, so that a later build gives the same bytes.
	Time time.Time
	// Go builds it.
	Go Go
}

// Describe asks git about the checkout. SOURCE_DATE_EPOCH, in seconds, takes the
// place of the commit's time, as in reproducible builds elsewhere. Go is left to
// FindGo.
func Describe(ctx context.Context, root string) (Source, error) {
	s := Source{Root: root}
	if err := ownRepository(ctx, root); err != nil {
		return s, fmt.Errorf("a release is made from a git checkout, which names its commit and time: %w; "+
			"clone the repository, or run \"git init && git add . && git commit -m sources\" in unpacked sources", err)
	}
	commit, err := git(ctx, root, "rev-parse", "HEAD")
	if err != nil {
		return s, fmt.Errorf("a release names its commit, and %s has none; run \"git add . && git commit -m sources\": %w", root, err)
	}
	s.Commit = strings.TrimSpace(commit)
	if s.Dirty, err = s.differs(ctx); err != nil {
		return s, err
	}
	if s.Dirty {
		if s.State, err = s.state(ctx); err != nil {
			return s, err
		}
	}
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		if s.Time, err = seconds(epoch); err != nil {
			return s, fmt.Errorf("SOURCE_DATE_EPOCH is not a number of seconds: %w", err)
		}
		return s, nil
	}
	committed, err := git(ctx, root, "-c", "log.showSignature=false", "log", "-1", "--format=%ct")
	if err != nil {
		return s, err
	}
	if s.Time, err = seconds(committed); err != nil {
		return s, fmt.Errorf("cannot read the time of the commit %s: %w", s.Commit, err)
	}
	return s, nil
}

// ownRepository is an error when root is no checkout, or only a folder of one: the
// commit and the files would be another repository's.
func ownRepository(ctx context.Context, root string) error {
	top, err := git(ctx, root, "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	top = strings.TrimSuffix(top, "\n")
	real, err := filepath.EvalSymlinks(root)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err == nil && real != top {
		err = fmt.Errorf("%s is a folder of the checkout %s", root, top)
	}
	return err
}

// differs reports whether what is compiled may be another thing than Commit.
func (s Source) differs(ctx context.Context) (bool, error) {
	status, err := git(ctx, s.Root, "status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=none")
	if err != nil || status != "" {
		return true, err
	}
	// Files whose changes git ignores by a setting: "h" for --assume-unchanged, "S"
	// and "s" for --skip-worktree.
	tracked, err := git(ctx, s.Root, "ls-files", "-z", "-v")
	if err != nil {
		return true, err
	}
	for line := range strings.SplitSeq(tracked, "\x00") {
		if line != "" && (line[0] == 'S' || line[0] >= 'a') {
			return true, nil
		}
	}
	hidden, err := s.hidden(ctx)
	return len(hidden) > 0, err
}

// compiled are the files that the go command compiles or is governed by, wherever
// they are below a checkout.
var compiled = []string{"*.go", "*.s", "*.S", "*.sx", "*.c", "*.h", "*.syso", "*go.mod", "*go.sum", "*go.work", "*go.work.sum", "*vendor/modules.txt"}

// hidden returns the paths of files that the go command sees and git ignores, by
// .gitignore, .git/info/exclude or core.excludesFile. The folder of what is built
// begins with "_", which the go command passes over.
func (s Source) hidden(ctx context.Context) ([]string, error) {
	args := append([]string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--"}, compiled...)
	out, err := git(ctx, s.Root, args...)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Split(out, "\x00"), func(name string) bool {
		// Git lists repositories below this one whatever is asked for.
		return name == "" || strings.HasSuffix(name, "/") || name[0] == '_' || strings.Contains(name, "/_")
	}), nil
}

func seconds(s string) (time.Time, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	return time.Unix(n, 0).UTC(), err
}

// Unchanged returns an error if the checkout no longer matches s: the
// binaries may be of either.
func (s Source) Unchanged(ctx context.Context) error {
	now, err := Describe(ctx, s.Root)
	if err != nil {
		return err
	}
	if now.Commit != s.Commit || now.Dirty != s.Dirty || now.State != s.State {
		return fmt.Errorf("the checkout %s changed while its release was made (from %s to %s): make the release again", s.Root, s, now)
	}
	return nil
}

// String names the commit, and that the tree differs from it.
func (s Source) String() string {
	if s.Dirty {
		return s.Commit + ", dirty"
	}
	return s.Commit
}

// Revision names the commit for labels, which have one word: as git describe it
// says by "-dirty" that the tree differs.
func (s Source) Revision() string {
	if s.Dirty {
		return s.Commit + "-dirty"
	}
	return s.Commit
}

// Files returns the paths of the source files below Root: what git knows or
// would add, and what the go command compiles though git ignores it.
func (s Source) Files(ctx context.Context) ([]string, error) {
	out, err := git(ctx, s.Root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	files, err := s.hidden(ctx)
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(out, "\x00") {
		if name == "" {
			continue
		}
		// A file that was removed but not committed is still listed.
		info, err := os.Lstat(filepath.Join(s.Root, name))
		if err == nil && info.IsDir() {
			return nil, fmt.Errorf("%s is a repository of its own below the checkout: move it away, or name it in .git/info/exclude", name)
		}
		if err == nil {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// Entries returns the source files: those of the commit as git has them, so that
// no setting of the checkout matters, and of a dirty tree those on disk.
func (s Source) Entries(ctx context.Context) ([]archive.Entry, error) {
	if !s.Dirty {
		return s.committed(ctx)
	}
	files, err := s.Files(ctx)
	if err != nil {
		return nil, err
	}
	var entries []archive.Entry
	for _, name := range files {
		e, err := archive.FromFile(name, filepath.Join(s.Root, name))
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// state is a hash of all files on disk.
func (s Source) state(ctx context.Context) (string, error) {
	files, err := s.Files(ctx)
	if err != nil {
		return "", err
	}
	all := sha256.New()
	for _, name := range files {
		e, err := archive.FromFile(name, filepath.Join(s.Root, name))
		if err != nil {
			return "", err
		}
		sum := ""
		if e.Path != "" {
			if sum, err = archive.Sum(e.Path, sha256.New()); err != nil {
				return "", err
			}
		}
		fmt.Fprintf(all, "%q %q %o %s\n", name, e.Link, e.Mode, sum)
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

// Modes of git's trees.
const (
	modeProgram = "100755"
	modeLink    = "120000"
	modeCommit  = "160000"
)

// committed reads the files of Commit from git's objects.
func (s Source) committed(ctx context.Context) ([]archive.Entry, error) {
	tree, err := git(ctx, s.Root, "ls-tree", "-r", "-z", "--full-tree", s.Commit)
	if err != nil {
		return nil, err
	}
	var entries []archive.Entry
	var objects strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(tree, "\x00"), "\x00") {
		about, name, _ := strings.Cut(line, "\t")
		f := strings.Fields(about)
		if len(f) != 3 || f[0] == modeCommit {
			return nil, fmt.Errorf("git ls-tree of %s says %q, which is no file or link", s.Commit, line)
		}
		e := archive.Entry{Name: name}
		switch f[0] {
		case modeProgram:
			e.Mode = 0o755
		case modeLink:
			// The target is the content.
			e.Link = "?"
		}
		entries = append(entries, e)
		fmt.Fprintln(&objects, f[2])
	}
	cmd := exec.CommandContext(ctx, "git", "cat-file", "--batch")
	cmd.Dir, cmd.Stdin = s.Root, strings.NewReader(objects.String())
	out, err := output(cmd)
	if err != nil {
		return nil, err
	}
	batch := bufio.NewReader(strings.NewReader(out))
	for i := range entries {
		content, err := object(batch)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s of %s from git: %w", entries[i].Name, s.Commit, err)
		}
		if entries[i].Link != "" {
			entries[i].Link = string(content)
		} else {
			entries[i].Data = content
		}
	}
	return entries, nil
}

// object reads an answer of git cat-file --batch: "hash blob size", the content
// and a line's end.
func object(batch *bufio.Reader) ([]byte, error) {
	head, err := batch.ReadString('\n')
	if err != nil {
		return nil, err
	}
	f := strings.Fields(head)
	if len(f) != 3 || f[1] != "blob" {
		return nil, fmt.Errorf("git says %q", strings.TrimSpace(head))
	}
	size, err := strconv.Atoi(f[2])
	if err != nil {
		return nil, err
	}
	content := make([]byte, size)
	if _, err := io.ReadFull(batch, content); err != nil {
		return nil, err
	}
	_, err = batch.ReadByte()
	return content, err
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	return output(cmd)
}

// output runs a command and returns what it prints; an error has what it said.
func output(cmd *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("a release needs %s (Debian's package %s): %w", cmd.Args[0], map[string]string{"git": "git", "go": "golang"}[cmd.Args[0]], err)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
