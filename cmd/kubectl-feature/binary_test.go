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
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// maxSize keeps the plugin a small download.
const maxSize = 40 << 20

// TestBinaryIsSmallAndStatic builds the plugin as a release does.
func TestBinaryIsSmallAndStatic(t *testing.T) {
	file := build(t)
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("kubectl-feature has %d bytes", info.Size())
	if info.Size() >= maxSize {
		t.Errorf("kubectl-feature has %d bytes, want less than %d. If it grew by half, its code calls methods by names that are read at run time, as text/template does, "+
			"and the linker keeps all methods: go build -ldflags=-dumpdep marks such functions with <ReflectMethod>", info.Size(), maxSize)
	}
	binary, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range binary.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("kubectl-feature is linked dynamically: it has a segment %s", p.Type)
		}
	}
	if err := binary.Close(); err != nil {
		t.Error(err)
	}
}

// build builds the plugin as a release does.
func build(tb testing.TB) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "kubectl-feature")
	cmd := exec.CommandContext(tb.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, ".")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("building kubectl-feature: %v\n%s", err, out)
	}
	return file
}

// BenchmarkStart runs a command that needs no cluster, from the start of the process to its
// end. It should take less than 100 ms.
func BenchmarkStart(b *testing.B) {
	file := build(b)
	for b.Loop() {
		if out, err := exec.CommandContext(b.Context(), file, "gates", "SidecarContainers").CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
}
