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
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var commit = time.Date(2026, 11, 21, 1, 2, 3, 456, time.FixedZone("somewhere", 3600))

func some(t *testing.T) []Entry {
	t.Helper()
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, bytes.Repeat([]byte("x"), 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	return []Entry{
		{Name: "usr/bin/program", Path: large, Mode: 0o755, Xattrs: map[string]string{"security.capability": "\x01\x00\x02", "user.a": "b"}},
		{Name: "etc/file", Data: []byte("text\n")},
		{Name: "tmp", Dir: true, Mode: 0o1777, User: 65532},
		{Name: "usr/bin/link", Link: "program"},
	}
}

func read(t *testing.T, archive []byte) []*tar.Header {
	t.Helper()
	var headers []*tar.Header
	tr := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return headers
		}
		if err != nil {
			t.Fatal(err)
		}
		headers = append(headers, h)
	}
}

func TestBytesDependOnContentOnly(t *testing.T) {
	var want []byte
	for i := range 20 {
		// Another folder, another order, another time zone.
		entries := some(t)
		rand.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
		var got bytes.Buffer
		if err := Write(&got, entries, commit.In(time.FixedZone("elsewhere", i*600))); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got.Bytes()
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("archive %d differs from the first one", i)
		}
	}
}

func TestEntries(t *testing.T) {
	var archive bytes.Buffer
	if err := Write(&archive, some(t), commit); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, h := range read(t, archive.Bytes()) {
		names = append(names, h.Name)
		user := 0
		if h.Name == "tmp/" {
			user = 65532
		}
		if h.Uid != user || h.Gid != user || h.Uname != "" || h.Gname != "" {
			t.Errorf("%s belongs to %d:%d %q:%q, want %d:%d without names", h.Name, h.Uid, h.Gid, h.Uname, h.Gname, user, user)
		}
		if want := commit.Truncate(time.Second); !h.ModTime.Equal(want) {
			t.Errorf("%s is of %s, want %s", h.Name, h.ModTime, want)
		}
		want := map[string]int64{"usr/": 0o755, "usr/bin/": 0o755, "usr/bin/program": 0o755, "usr/bin/link": 0o777, "etc/": 0o755, "etc/file": 0o644, "tmp/": 0o1777}[h.Name]
		if h.Mode != want {
			t.Errorf("%s has the mode %o, want %o", h.Name, h.Mode, want)
		}
		if h.Name == "usr/bin/program" {
			if got := h.PAXRecords["SCHILY.xattr.security.capability"]; got != "\x01\x00\x02" {
				t.Errorf("the program's capability is %q", got)
			}
		}
		if h.Name == "usr/bin/link" && h.Linkname != "program" {
			t.Errorf("the link leads to %q", h.Linkname)
		}
	}
	if diff := cmp.Diff([]string{"etc/", "etc/file", "tmp/", "usr/", "usr/bin/", "usr/bin/link", "usr/bin/program"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestNamesThatAreRefused(t *testing.T) {
	for _, entries := range [][]Entry{
		{{Name: "a"}, {Name: "a"}},
		{{Name: "/a"}},
		{{Name: "../a/../b"}},
		{{Name: "a/"}},
		{{Name: ""}},
	} {
		if err := Write(io.Discard, entries, commit); err == nil {
			t.Errorf("%v was written", entries)
		}
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.tar.gz")
	if err := WriteFile(t.Context(), name, some(t), commit); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if !z.ModTime.IsZero() || z.Name != "" {
		t.Errorf("gzip's header has the time %s and the name %q", z.ModTime, z.Name)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(read(t, plain)); got != 7 {
		t.Errorf("the archive has %d entries, want 7", got)
	}
	if err := WriteFile(t.Context(), filepath.Join(dir, "b.tar"), []Entry{{Name: "a", Path: filepath.Join(dir, "missing")}}, commit); err == nil {
		t.Error("an archive with a file that is missing was written")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := WriteFile(ended, filepath.Join(dir, "c.tar.gz"), some(t), commit); !errors.Is(err, context.Canceled) {
		t.Errorf("an archive was written after the end: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := filepath.Glob(filepath.Join(dir, ".archive-*"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(files, []string{name}) || len(hidden) > 0 {
		t.Errorf("left behind: %v %v", files, hidden)
	}
}

func TestFromFile(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("program", link); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]Entry{
		program: {Name: "x", Path: program, Mode: 0o755},
		link:    {Name: "x", Link: "program"},
	} {
		got, err := FromFile("x", file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func TestWriteSums(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// A second run does not count the files of the first one.
	for range 2 {
		if err := WriteSums(dir); err != nil {
			t.Fatal(err)
		}
	}
	for file, length := range map[string]int{SHA256Sums: sha256.Size, SHA512Sums: sha512.Size} {
		content, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for line := range strings.Lines(string(content)) {
			sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
			if len(sum) != 2*length {
				t.Errorf("%s: %q has %d digits, want %d", file, sum, len(sum), 2*length)
			}
			names = append(names, name)
		}
		if !slices.Equal(names, []string{"a", "b"}) {
			t.Errorf("%s names %v", file, names)
		}
	}
	sum, err := Sum(filepath.Join(dir, "a"), sha256.New())
	if err != nil {
		t.Fatal(err)
	}
	if want := "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"; sum != want {
		t.Errorf("the hash of a is %s, want %s", sum, want)
	}
}
