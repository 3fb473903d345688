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

package agent

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func fileOf(path string) *file {
	return &file{path: path, namespace: "kube-system", component: "kubelet", instance: "node-1"}
}

var saved = time.Date(2026, 11, 1, 2, 3, 4, 0, time.UTC)

func TestWrittenValuesAreRead(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(dir, "new", "values.json")
		written := fileOf(path)
		values := map[string]choice{}
		for _, name := range rapid.SliceOfDistinct(rapid.StringMatching("[A-Za-z0-9<&é]{1,8}"), func(s string) string { return s }).Draw(t, "names") {
			values[name] = choice{Value: rapid.Bool().Draw(t, name), Dynamic: rapid.Bool().Draw(t, name+" dynamic")}
		}
		written.write(t.Context(), values, saved)
		got, at := fileOf(path).read(t.Context())
		if len(values) == 0 {
			if got != nil {
				t.Fatalf("read %v", got)
			}
			return
		}
		if diff := cmp.Diff(values, got); diff != "" || !at.Equal(saved) {
			t.Fatalf("saved at %v, unexpected values (-want +got):\n%s", at, diff)
		}
		if !written.has(values) {
			t.Fatal("the values are not on disk")
		}
	})
	left, err := os.ReadDir(filepath.Join(dir, "new"))
	if err != nil || len(left) > 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestUnchangedValuesAreNotWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d", "values.json")
	f := fileOf(path)
	f.write(t.Context(), map[string]choice{}, saved)
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Errorf("a directory was made for no values: %v", err)
	}
	values := map[string]choice{"A": {Value: true}}
	f.write(t.Context(), values, saved)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*file{f, fileOf(path)} {
		f.write(t.Context(), values, saved.Add(time.Hour))
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the same values were written again: %v", err)
	}
	f.write(t.Context(), nil, saved)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file outlives the last value: %v", err)
	}
	none := fileOf("")
	none.write(t.Context(), values, saved)
	if got, _ := none.read(t.Context()); got != nil || !none.has(values) {
		t.Errorf("no file has %v", got)
	}
}

// TestDamagedFileIsReplaced: reading returns nothing, and the next write creates a
// valid file.
func TestDamagedFileIsReplaced(t *testing.T) {
	values := map[string]choice{"A": {Value: true}, "B": {Dynamic: true}}
	good, err := fileOf("x").encode(values, saved)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"empty":                {},
		"cut off":              good[:len(good)/2],
		"a flipped value":      bytes.Replace(good, []byte("true"), []byte("false"), 1),
		"another file's sum":   bytes.Replace(good, []byte(`sha256:`), []byte(`sha256:0`), 1),
		"no payload":           []byte(`{"formatVersion":1}`),
		"a payload of text":    []byte(`{"formatVersion":1,"checksum":"sha256:","payload":"x"}`),
		"zeros":                make([]byte, 4096),
		"too long":             append(bytes.Repeat([]byte(" "), maxFileSize), good...),
		"no JSON":              []byte("values: {}"),
		"two files in another": append(append([]byte{}, good...), good...),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "values.json")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			f := fileOf(path)
			if got, _ := f.read(t.Context()); got != nil {
				t.Errorf("read %v", got)
			}
			if kept, err := os.ReadFile(path + badSuffix); err != nil || !bytes.Equal(kept, content) {
				t.Errorf("the file was not kept for people to look at: %v", err)
			}
			f.write(t.Context(), values, saved)
			if got, _ := fileOf(path).read(t.Context()); !cmp.Equal(values, got) {
				t.Errorf("after the next write there is %v", got)
			}
		})
	}
}

// TestFileOfAnotherProcessStays: a file of another process or version is useless here, and
// a file that cannot be read now may be readable later. Other values replace it.
func TestFileOfAnotherProcessStays(t *testing.T) {
	values := map[string]choice{"A": {Value: true}, "B": {Dynamic: true}}
	good, err := fileOf("x").encode(values, saved)
	if err != nil {
		t.Fatal(err)
	}
	before := fileOf("x")
	before.instance = "node-2"
	foreign, err := before.encode(values, saved)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		content []byte
		prepare func(t *testing.T, path string) (undo func() error)
		// useful is true if the content is this process's.
		useful bool
	}{
		"of another node":    {content: foreign},
		"of another version": {content: bytes.Replace(good, []byte(`"formatVersion": 1`), []byte(`"formatVersion": 2`), 1)},
		"not readable now": {content: good, useful: true, prepare: func(t *testing.T, path string) func() error {
			// As an I/O error: also root cannot open what leads to itself.
			if err := errors.Join(os.Rename(path, path+".real"), os.Symlink(path, path)); err != nil {
				t.Fatal(err)
			}
			return func() error { return os.Rename(path+".real", path) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "values.json")
			if err := os.WriteFile(path, tc.content, 0o600); err != nil {
				t.Fatal(err)
			}
			undo := func() error { return nil }
			if tc.prepare != nil {
				undo = tc.prepare(t, path)
			}
			f := fileOf(path)
			if got, _ := f.read(t.Context()); got != nil {
				t.Errorf("read %v", got)
			}
			if _, err := os.Lstat(path + badSuffix); !os.IsNotExist(err) {
				t.Errorf("the file was moved away: %v", err)
			}
			if err := undo(); err != nil {
				t.Fatal(err)
			}
			if content, err := os.ReadFile(path); err != nil || !bytes.Equal(content, tc.content) {
				t.Errorf("the file was changed: %v", err)
			}
			if got, _ := fileOf(path).read(t.Context()); cmp.Equal(values, got) != tc.useful {
				t.Errorf("later it has %v", got)
			}
			f.write(t.Context(), values, saved)
			if got, _ := fileOf(path).read(t.Context()); !cmp.Equal(values, got) {
				t.Errorf("after the next write there is %v", got)
			}
		})
	}
}

// TestIncompleteFilesOfCrashesAreRemoved: a write removes those of this file only.
func TestIncompleteFilesOfCrashesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "values.json")
	now := time.Now()
	for name, age := range map[string]time.Duration{
		"values.json.new-1": time.Hour, "values.json.new-2": 2 * abandoned, "values.json.new-3": 0,
		"values.json.bad": time.Hour, "other.json.new-1": time.Hour, "values.json.newer": time.Hour,
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chtimes(file, now, now.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	fileOf(path).write(t.Context(), map[string]choice{"A": {Value: true}}, now)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	// One that is new may be another process's.
	want := []string{"other.json.new-1", "values.json", "values.json.bad", "values.json.new-3", "values.json.newer"}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("unexpected files (-want +got):\n%s", diff)
	}
}

func TestUnusableFileIsToleratedAndLogged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "values.json")
	if err := os.MkdirAll(filepath.Join(path, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	f := fileOf(path)
	values := map[string]choice{"A": {Value: true}}
	if got, _ := f.read(t.Context()); got != nil {
		t.Errorf("read %v from a directory", got)
	}
	f.write(t.Context(), values, saved)
	if got, _ := fileOf(path).read(t.Context()); !cmp.Equal(values, got) {
		t.Errorf("the directory is still in the way: %v", got)
	}
	blocked := fileOf(filepath.Join(path, "below", "values.json"))
	blocked.write(t.Context(), values, saved)
	if blocked.logged == "" || blocked.has(values) {
		t.Errorf("a file below a file was written, complaint %q", blocked.logged)
	}
	blocked.path = filepath.Join(dir, "elsewhere.json")
	blocked.write(t.Context(), values, saved)
	if blocked.logged != "" || !blocked.has(values) {
		t.Errorf("writing does not recover: %q", blocked.logged)
	}
}

func TestFileIsReadableJSON(t *testing.T) {
	text, err := fileOf("x").encode(map[string]choice{"A": {Value: true}}, saved)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"formatVersion": 1`, `"component": "kubelet"`, `"name": "A"`, `"control": "Central"`, `"savedAt": "2026-11-01T02:03:04Z"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("no %s in\n%s", part, text)
		}
	}
}
