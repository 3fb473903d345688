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
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// twoRuns are options of two runs on one machine, each with a folder of its own.
func twoRuns(t *testing.T) (first, second Options, log *logged) {
	t.Helper()
	first, log = testOptions(t, "true")
	second, _ = testOptions(t, "true")
	second.settings, second.kernel, second.shared = first.settings, first.kernel, first.shared
	first.dirs = []string{filepath.Join(t.TempDir(), "modules")}
	second.dirs = first.dirs
	second.Log = log.log
	writeSetting(t, first.settings, "kernel/panic", "0")
	return first, second, log
}

// TestLastOfRunsRestoresMachine has a run begin after the nodes of another one have changed a
// setting, and end after it.
func TestLastOfRunsRestoresMachine(t *testing.T) {
	first, second, l := twoRuns(t)
	begun, ended, done := make(chan struct{}), make(chan struct{}), make(chan error)
	err := observed(t.Context(), first, undo{}, func() error {
		writeSetting(t, first.settings, "kernel/panic", "10")
		// The nodes of both have it mounted.
		if err := os.Mkdir(first.dirs[0], 0o755); err != nil {
			return err
		}
		go func() {
			done <- observed(t.Context(), second, undo{}, func() error {
				close(begun)
				<-ended
				return nil
			})
		}()
		<-begun
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	check(t, first.settings, "kernel/panic", "10")
	if len(absent(first.dirs...)) > 0 {
		t.Error("a folder was removed under the nodes of another run")
	}
	if d := cmp.Diff("Another run is active; settings of the kernel and folders are restored at its end\n", l.String()); d != "" {
		t.Error(d)
	}
	l.Reset()
	close(ended)
	if err := <-done; err != nil {
		t.Error(err)
	}
	check(t, first.settings, "kernel/panic", "0")
	if len(absent(first.dirs...)) == 0 {
		t.Error("a folder stays that was not there before")
	}
	if d := cmp.Diff("Restored settings of the kernel: kernel.panic from \"10\" to \"0\"\n", l.String()); d != "" {
		t.Error(d)
	}
	if names := absent(undoFile(first.Dir), undoFile(second.Dir), filepath.Join(first.shared, "original.json")); len(names) != 3 {
		t.Errorf("only %q are forgotten", names)
	}
}

// TestRunThatWasKilledIsNotDoneUnderAnother has a run whose folder is cleaned up while another
// one is active, which restores what the killed one has noted.
func TestRunThatWasKilledIsNotDoneUnderAnother(t *testing.T) {
	killed, other, l := twoRuns(t)
	s, err := share(killed.shared)
	if err != nil {
		t.Fatal(err)
	}
	before, err := s.join(func() (original, error) {
		values, err := settings(killed.kernel)
		return original{Settings: values}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := (undo{Settings: before.Settings}).save(killed.Dir); err != nil {
		t.Fatal(err)
	}
	writeSetting(t, killed.settings, "kernel/panic", "10")
	if err := s.lock.Close(); err != nil {
		t.Fatal(err)
	}
	err = observed(t.Context(), other, undo{}, func() error {
		_, err := finishKilled(t.Context(), killed)
		check(t, killed.settings, "kernel/panic", "10")
		return err
	})
	if err != nil {
		t.Error(err)
	}
	check(t, killed.settings, "kernel/panic", "0")
	if !strings.Contains(l.String(), "kernel.panic from \"10\" to \"0\"") {
		t.Errorf("the log is %q", l.String())
	}
}

func TestSettingsOfAnotherStartOfMachineDoNotCount(t *testing.T) {
	o, _, _ := twoRuns(t)
	if err := os.WriteFile(filepath.Join(o.shared, "original.json"), []byte(`{"boot":"another","settings":{"kernel/panic":"7"}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := observed(t.Context(), o, undo{}, func() error { return nil }); err != nil {
		t.Error(err)
	}
	check(t, o.settings, "kernel/panic", "0")
}

func TestSharedFolderThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := share(filepath.Join(file, "dir")); err == nil || !strings.Contains(err.Error(), "cannot find other runs") {
		t.Errorf("got the error %v", err)
	}
	// Others may have made a folder in /tmp.
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if _, err := share(link); err == nil || !strings.Contains(err.Error(), "no folder of this user") {
		t.Errorf("got the error %v, want one that refuses the folder", err)
	}
	if root, other := sharedDir(0), sharedDir(1000); root == other || !strings.HasSuffix(other, "-1000") {
		t.Errorf("root has the folder %s, and another user %s", root, other)
	}
}
