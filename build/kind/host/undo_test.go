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
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testOptions are those of a run whose settings of the kernel are a folder.
func testOptions(t *testing.T, command ...string) (Options, *logged) {
	t.Helper()
	l := &logged{}
	o := Options{Dir: t.TempDir(), Command: command, Log: l.log, settings: t.TempDir(), shared: t.TempDir(), dirs: []string{}}
	o.observe = func() (observation, error) {
		return observation{mounts: []string{"/"}, interfaces: []string{"lo"}}, nil
	}
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	return o, l
}

func TestKilledRunIsFinishedByTheNext(t *testing.T) {
	o, l := testOptions(t, "true")
	writeSetting(t, o.settings, "kernel/panic", "10")
	made, filled := filepath.Join(o.Dir, "made"), filepath.Join(o.Dir, "filled")
	for _, dir := range []string{made, filepath.Join(filled, "content")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	u := undo{Dirs: []string{made, filled, filepath.Join(o.Dir, "never made")}, Settings: map[string]string{"kernel/panic": "0"}}
	if err := u.save(o.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := finishKilled(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{filled}, less([]string{made, filled}, absent(made, filled))); d != "" {
		t.Error(d)
	}
	if !strings.Contains(l.String(), "An earlier run was killed") || !strings.Contains(l.String(), "kernel.panic") {
		t.Errorf("the log is %q", l.String())
	}
	if _, err := os.Stat(undoFile(o.Dir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it would be undone again: %v", err)
	}
	if _, err := finishKilled(t.Context(), o); err != nil {
		t.Error(err)
	}
}

func TestRunBeforeRestartOfMachineLeavesNothing(t *testing.T) {
	o, l := testOptions(t, "true")
	writeSetting(t, o.settings, "kernel/panic", "10")
	content, err := json.Marshal(undo{Boot: "another", Settings: map[string]string{"kernel/panic": "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(undoFile(o.Dir), content, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := finishKilled(t.Context(), o); err != nil || l.String() != "" {
		t.Errorf("%v, %s", err, l.String())
	}
}

func TestUndoFileThatCannotBeReadIsNamed(t *testing.T) {
	o, _ := testOptions(t, "true")
	if err := os.WriteFile(undoFile(o.Dir), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := finishKilled(t.Context(), o); err == nil || !strings.Contains(err.Error(), undoFile(o.Dir)) {
		t.Errorf("%v does not name the file", err)
	}
}

func TestFolderIsForOneRun(t *testing.T) {
	dir := t.TempDir()
	release, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(dir); err == nil || !strings.Contains(err.Error(), "another run") {
		t.Errorf("%v is no refusal", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if release, err = lock(dir); err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
