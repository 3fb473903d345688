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
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestSettingsThatCanBeRestored(t *testing.T) {
	file := func(content string, mode fs.FileMode) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(content), Mode: mode}
	}
	got, err := settings(fstest.MapFS{
		"vm/overcommit_memory": file("1\n", 0o644),
		"kernel/printk":        file("4\t4\t1\t7\n", 0o644),
		"kernel/core_pattern":  file("\n", 0o644),
		"kernel/ns_last_pid":   file("77\n", 0o666),
		"kernel/random/x":      file("1\n", 0o644),
		"kernel/version":       file("1\n", 0o444),
		"vm/drop_caches":       file("0\n", 0o200),
		"net/ipv4/ip_forward":  file("1\n", 0o644),
		"kernel/lines":         file("a\nb\n", 0o644),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"vm/overcommit_memory": "1", "kernel/printk": "4\t4\t1\t7", "kernel/core_pattern": ""}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// logged collects what is logged.
type logged struct{ strings.Builder }

func (l *logged) log(format string, args ...any) {
	l.WriteString(fmt.Sprintf(format, args...) + "\n")
}

func writeSetting(t *testing.T, dir, name, value string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestChangedSettings(t *testing.T) {
	names := changed(map[string]string{"a": "1", "b": "2", "c": "3"}, map[string]string{"a": "1", "b": "3", "d": "4"})
	if d := cmp.Diff([]string{"b"}, names); d != "" {
		t.Error(d)
	}
}
