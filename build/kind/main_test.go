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
	"archive/tar"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommandLine(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "a command is missing"},
		{[]string{"other"}, "a command is missing"},
		{[]string{"run", "-dir", t.TempDir()}, "kind-build run [flags] -- COMMAND"},
		{[]string{"fetch", "-dir", t.TempDir()}, "-release"},
		{[]string{"fetch", "-dir", t.TempDir(), "-release", "r", "-kind", "k", "-offline", "maybe"}, "-offline=maybe"},
		{[]string{"inside", "-dir", t.TempDir(), "--", "true"}, "kind-build fetch"},
	} {
		if err := run(t.Context(), test.args); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("kind-build %s: got the error %v, want one with %q", strings.Join(test.args, " "), err, test.want)
		}
	}
}

func TestFetchWithRegistriesLeavesAllToKind(t *testing.T) {
	dir := t.TempDir()
	if err := run(t.Context(), []string{"fetch", "-dir", dir, "-release", "r", "-kind", "k", "-offline", "no"}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "made.json"))
	if err != nil || !strings.Contains(string(content), `"Base":""`) {
		t.Errorf("got %s, %v, want no base image", content, err)
	}
}

// release writes an archive of files, by their names.
func release(t *testing.T, files ...[2]string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "server.tar.gz")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	zipped := gzip.NewWriter(f)
	tw := tar.NewWriter(zipped)
	for _, file := range files {
		if err := tw.WriteHeader(&tar.Header{Name: file[0], Mode: 0o644, Size: int64(len(file[1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(file[1])); err != nil {
			t.Fatal(err)
		}
	}
	for _, closer := range []interface{ Close() error }{tw, zipped, f} {
		if err := closer.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

func TestExtract(t *testing.T) {
	kubeadm := [2]string{"kubernetes/server/bin/kubeadm", "program"}
	version := [2]string{"kubernetes/version", "v1.37.2\n"}
	file := filepath.Join(t.TempDir(), "kubeadm")
	got, err := extract(release(t, kubeadm, version), file)
	if err != nil || got != "v1.37.2" {
		t.Fatalf("got %q, %v, want v1.37.2", got, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Size() != int64(len(kubeadm[1])) || info.Mode()&0o100 == 0 {
		t.Errorf("kubeadm is %v, %v, want a program of %d bytes", info, err, len(kubeadm[1]))
	}
	if _, err := extract(release(t, version), file); err == nil || !strings.Contains(err.Error(), kubeadm[0]) {
		t.Errorf("got the error %v, want one that names %s", err, kubeadm[0])
	}
}
