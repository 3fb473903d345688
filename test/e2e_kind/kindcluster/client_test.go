//go:build linux

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

package kindcluster

import (
	"archive/tar"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pack writes an archive of files with their names as content.
func pack(t *testing.T, names ...string) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "archive.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed := gzip.NewWriter(file)
	archive := tar.NewWriter(packed)
	for _, name := range names {
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(name))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

func TestUnpackWritesWantedFiles(t *testing.T) {
	const wanted, other = "kubernetes/client/bin/kubectl", "kubernetes/version"
	dir := t.TempDir()
	if err := Unpack(pack(t, wanted, other), dir, func(name string) bool { return name == wanted }); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, wanted))
	if err != nil || string(content) != wanted {
		t.Errorf("%s has %q: %v", wanted, content, err)
	}
	if info, err := os.Stat(filepath.Join(dir, wanted)); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("%s cannot be run: %v, %v", wanted, info, err)
	}
	if _, err := os.Stat(filepath.Join(dir, other)); !os.IsNotExist(err) {
		t.Errorf("%s was not wanted: %v", other, err)
	}
}

func TestUnpackRefusesPathsThatLeadOut(t *testing.T) {
	err := Unpack(pack(t, "../outside"), t.TempDir(), func(string) bool { return true })
	if err == nil || !strings.Contains(err.Error(), "leads out of the archive") {
		t.Errorf("got %v, want a refusal", err)
	}
}
