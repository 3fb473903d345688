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

package kernel

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// machine is a folder with settings, and those of its start.
func machine(t *testing.T, boot string, values map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name, value string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(bootFile, boot)
	for name, value := range values {
		put(name, value)
	}
	return dir
}

func ask(t *testing.T, dir string, args []string) Answer {
	t.Helper()
	var out strings.Builder
	if err := Run(dir, args[1:], &out); err != nil {
		t.Fatal(err)
	}
	var answer Answer
	if err := json.Unmarshal([]byte(out.String()), &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestSettingsAreReadAndWritten(t *testing.T) {
	dir := machine(t, "boot-1", map[string]string{"kernel/panic": "10", "kernel/printk": "4\t4", "fs/protected_fifos": "1"})
	answer := ask(t, dir, Arguments("boot-1", []string{"fs/protected_fifos"}, map[string]string{"kernel/panic": "0", "kernel/printk": "7\t4"}))
	want := Answer{
		Boot: "boot-1",
		Was:  map[string]string{"kernel/panic": "10", "kernel/printk": "4\t4", "fs/protected_fifos": "1"},
		Is:   map[string]string{"kernel/panic": "0", "kernel/printk": "7\t4", "fs/protected_fifos": "1"},
	}
	if diff := cmp.Diff(want, answer); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestSettingsOfAnotherMachineStay has the command run where another boot ID is.
func TestSettingsOfAnotherMachineStay(t *testing.T) {
	dir := machine(t, "boot-2", map[string]string{"kernel/panic": "10"})
	answer := ask(t, dir, Arguments("boot-1", nil, map[string]string{"kernel/panic": "0"}))
	if diff := cmp.Diff(Answer{Boot: "boot-2"}, answer); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if content, err := os.ReadFile(filepath.Join(dir, "kernel/panic")); err != nil || string(content) != "10\n" {
		t.Errorf("the setting is %q, %v, want 10", content, err)
	}
}

func TestSettingThatCannotBeWrittenIsNamed(t *testing.T) {
	dir := machine(t, "boot-1", nil)
	// There is no folder vm in which the file could be made.
	if err := Write(dir, map[string]string{"vm/missing": "1"}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "vm/missing") {
		t.Errorf("got the error %v, want one that names the setting", err)
	}
	for _, args := range [][]string{nil, {"boot-1", "../outside=1"}, {"boot-1", "vm/missing"}} {
		if err := Run(dir, args, &strings.Builder{}); err == nil {
			t.Errorf("%q is no error", args)
		}
	}
}
