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

package archive

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"time"
)

// Entry is a file, directory or symbolic link. Exactly one of Data, Path, Link
// and Dir is used.
type Entry struct {
	// Name is the slash-separated path in the archive, without a leading slash.
	Name string
	// Data is the content of a small file.
	Data []byte
	// Path is where the content of a large file is read from.
	Path string
	// Link is the target of a symbolic link.
	Link string
	// Dir makes this a directory.
	Dir bool
	// User owns it, and a group of the same number; 0 by default.
	User int
	// Mode are the permission bits, those above 0777 included; 0 means 0755 for
	// directories and 0644 for files.
	Mode int64
	// Xattrs are extended attributes by name, written as PAX records in the way
	// that container runtimes read.
	Xattrs map[string]string
}

// xattrRecord is the prefix of PAX records with extended attributes, as GNU tar
// and star write them.
const xattrRecord = "SCHILY.xattr."

// Write writes entries to w in the order of their names, together with every
// parent directory that is not among them. All times are mtime, to the second.
// Two entries of one name are an error.
func Write(w io.Writer, entries []Entry, mtime time.Time) error {
	sorted, err := complete(entries)
	if err != nil {
		return err
	}
	tw := tar.NewWriter(w)
	for _, e := range sorted {
		if err := e.write(tw, mtime.UTC().Truncate(time.Second)); err != nil {
			return fmt.Errorf("cannot put %s into the archive: %w", e.Name, err)
		}
	}
	return tw.Close()
}

// complete sorts entries and adds the parents that are missing.
func complete(entries []Entry) ([]Entry, error) {
	known := make(map[string]bool, len(entries))
	all := slices.Clone(entries)
	for _, e := range entries {
		if e.Name == "" || path.IsAbs(e.Name) || path.Clean(e.Name) != e.Name {
			return nil, fmt.Errorf("%q is not a clean relative path", e.Name)
		}
		if known[e.Name] {
			return nil, fmt.Errorf("%s is in the archive twice", e.Name)
		}
		known[e.Name] = true
	}
	for _, e := range entries {
		for dir := path.Dir(e.Name); dir != "." && !known[dir]; dir = path.Dir(dir) {
			known[dir] = true
			all = append(all, Entry{Name: dir, Dir: true})
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

func (e Entry) write(tw *tar.Writer, mtime time.Time) error {
	h := &tar.Header{Name: e.Name, Mode: e.Mode, ModTime: mtime, Typeflag: tar.TypeReg, Uid: e.User, Gid: e.User}
	content := io.Reader(bytes.NewReader(e.Data))
	h.Size = int64(len(e.Data))
	switch {
	case e.Dir:
		h.Typeflag, h.Name, h.Size = tar.TypeDir, e.Name+"/", 0
		h.Mode = cmp.Or(h.Mode, 0o755)
	case e.Link != "":
		h.Typeflag, h.Linkname, h.Mode, h.Size = tar.TypeSymlink, e.Link, 0o777, 0
	case e.Path != "":
		f, err := os.Open(e.Path)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		h.Size, content = info.Size(), f
	}
	h.Mode = cmp.Or(h.Mode, 0o644)
	if len(e.Xattrs) > 0 {
		h.PAXRecords = make(map[string]string, len(e.Xattrs))
		for name, value := range e.Xattrs {
			h.PAXRecords[xattrRecord+name] = value
		}
	}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := io.Copy(tw, content)
	return err
}

// FromFile returns an entry for a file on disk: a symbolic link stays one, and of
// the permissions only whether it may be run is kept.
func FromFile(name, file string) (Entry, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return Entry{}, err
	}
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(file)
		return Entry{Name: name, Link: target}, err
	case info.Mode()&0o100 != 0:
		return Entry{Name: name, Path: file, Mode: 0o755}, nil
	default:
		return Entry{Name: name, Path: file}, nil
	}
}

// WriteFile writes the archive as a file, compressed with gzip when the name
// ends in .gz. The file appears under its name only once it is whole. It ends
// with the error of ctx as soon as that has ended.
func WriteFile(ctx context.Context, name string, entries []Entry, mtime time.Time) error {
	return whole(name, func(f io.Writer) error {
		f = &until{ctx, f}
		if path.Ext(name) != ".gz" {
			return Write(f, entries, mtime)
		}
		// The header has neither a name nor a time.
		z := gzip.NewWriter(f)
		if err := Write(z, entries, mtime); err != nil {
			return err
		}
		return z.Close()
	})
}

// WriteData writes a small file, which appears under its name only once it is
// whole.
func WriteData(name string, data []byte) error {
	return whole(name, func(f io.Writer) error {
		_, err := f.Write(data)
		return err
	})
}

// until writes as long as ctx has not ended.
type until struct {
	ctx context.Context
	w   io.Writer
}

func (u *until) Write(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.w.Write(p)
}

// whole writes a file under another name in the same folder, and renames it.
func whole(name string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(path.Dir(name), ".archive-")
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); !errors.Is(closed, os.ErrClosed) {
			err = errors.Join(err, closed)
		}
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := write(f); err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
