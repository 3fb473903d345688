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

package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRemoveCgroupTakesDeepestFirst(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "parent")
	for _, name := range []string{"a/b/c", "a/d", "e"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeCgroup(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cgroup is there: %v", err)
	}
	if err := removeCgroup(t.Context(), dir); err != nil {
		t.Errorf("a cgroup that is not there: %v", err)
	}
}

func TestRemoveCgroupNamesOneThatStays(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	// A file stands for a process.
	if err := os.WriteFile(filepath.Join(dir, "a", "process"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := removeCgroup(ctx, dir); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "a")+":") {
		t.Errorf("%v does not name the cgroup", err)
	}
}

// TestFrozenCgroupIsThawed has files for a hierarchy of version 1.
func TestFrozenCgroupIsThawed(t *testing.T) {
	dir := t.TempDir()
	states := map[string]string{"freezer.state": "THAWED\n", "a/freezer.state": "FROZEN\n", "a/b/freezer.state": "FREEZING\n", "a/b/tasks": "FROZEN\n"}
	for name, state := range states {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(state), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := thaw(dir); err != nil {
		t.Fatal(err)
	}
	for name := range states {
		want := "THAWED\n"
		if filepath.Base(name) == "tasks" {
			want = states[name]
		}
		check(t, dir, name, strings.TrimSpace(want))
	}
	if err := thaw(filepath.Join(dir, "none")); err != nil {
		t.Errorf("a cgroup that is not there: %v", err)
	}
}
