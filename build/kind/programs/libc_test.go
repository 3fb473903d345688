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

package programs

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestHighestVersionOfSymbols(t *testing.T) {
	for want, versions := range map[string][]string{
		"":     {"GCC_3.0", "GLIBC_PRIVATE", "2.50"},
		"2.34": {"GLIBC_2.2.5", "GLIBC_2.34", "GLIBC_2.9"},
		"3.0":  {"GLIBC_2.41", "GLIBC_3.0"},
		"2.36": {"GLIBC_2.34", "GLIBC_ABI_DT_RELR"},
	} {
		if got := highest(versions); got != want {
			t.Errorf("%q: got %q, want %q", versions, got, want)
		}
	}
}

// TestProgramWithNewerLibcIsRefused builds a program that is C in part, as runc is.
func TestProgramWithNewerLibcIsRefused(t *testing.T) {
	b := Builder{Root: t.TempDir(), Dir: t.TempDir(), Arch: runtime.GOARCH}
	for name, content := range map[string]string{
		"go.mod":  "module example.com/m\n\ngo 1.26.0\n",
		"main.go": "package main\n\n// #include <stdlib.h>\nimport \"C\"\n\nfunc main() { _ = C.rand() }\n",
	} {
		if err := os.WriteFile(filepath.Join(b.Root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := Program{Name: "m", Module: Module{Dir: "."}, Package: ".", Cgo: true}
	if err := b.Build(t.Context(), p); err != nil {
		t.Skipf("no program that is C in part can be built here: %v", err)
	}
	needs, err := NeedsLibc(b.File(p))
	if err != nil {
		t.Fatal(err)
	}
	if needs == "" {
		t.Skip("the C library of this machine is not glibc")
	}
	if err := RunsWith(b.File(p), "99.0-1"); err != nil {
		t.Error(err)
	}
	if err := RunsWith(b.File(p), needs+"-12+deb13u5"); err != nil {
		t.Error(err)
	}
	if err := RunsWith(b.File(p), "2.1-1"); err == nil || !strings.Contains(err.Error(), "needs glibc "+needs+", and nodes have 2.1-1") {
		t.Errorf("got the error %v, want a refusal", err)
	}
	if err := RunsWith(b.File(p), "unknown"); err == nil || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("got the error %v, want one that names the version", err)
	}
	p.Cgo = false
	if err := os.WriteFile(filepath.Join(b.Root, "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.Build(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if needs, err := NeedsLibc(b.File(p)); err != nil || needs != "" {
		t.Errorf("a program without C needs glibc %q, %v", needs, err)
	}
}
