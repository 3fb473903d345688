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
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/build/kind/capless/kernel"
)

func TestRestoreWritesWhatHasChanged(t *testing.T) {
	o, l := testOptions(t, "true")
	writeSetting(t, o.settings, "vm/overcommit_memory", "0")
	writeSetting(t, o.settings, "kernel/panic", "0")
	before, err := settings(o.kernel)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.restoreSettings(t.Context(), before); err != nil || l.String() != "" {
		t.Errorf("%v, %s", err, l.String())
	}
	writeSetting(t, o.settings, "kernel/panic", "10")
	writeSetting(t, o.settings, "kernel/new", "1")
	if err := o.restoreSettings(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff("Restored settings of the kernel: kernel.panic from \"10\" to \"0\"\n", l.String()); d != "" {
		t.Error(d)
	}
	now, err := settings(o.kernel)
	if err != nil {
		t.Fatal(err)
	}
	if names := changed(before, now); len(names) > 0 {
		t.Errorf("%v are not restored", names)
	}
}

func TestSettingThatDoesNotChangeByWritingIsNamed(t *testing.T) {
	o, _ := testOptions(t, "true")
	writeSetting(t, o.settings, "kernel/panic", "10")
	o.write = func(string, map[string]string) error { return nil }
	err := o.restoreSettings(t.Context(), map[string]string{"kernel/panic": "0"})
	if err == nil || !strings.Contains(err.Error(), "set kernel.panic from \"10\" to \"0\"") {
		t.Errorf("got the error %v, want one that names the setting", err)
	}
}

// forRoot are settings of which root alone may read those named.
type forRoot struct {
	fs.FS
	names []string
}

func (f forRoot) Open(name string) (fs.File, error) {
	for _, other := range f.names {
		if other == name {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
		}
	}
	return f.FS.Open(name)
}

// withoutRoot are options of a command in the daemon of a user who may write no setting, and
// not read fs.protected_fifos. The command changes this and another one.
func withoutRoot(t *testing.T) (string, Options, *logged) {
	t.Helper()
	daemon := fake(t)
	o, l := forTests(t, `echo 10 >"$SETTINGS/kernel/panic"; echo 1 >"$SETTINGS/fs/protected_fifos"`)
	writeSetting(t, o.settings, "kernel/panic", "0")
	writeSetting(t, o.settings, "fs/protected_fifos", "0")
	o.Env = append(o.Env, "SETTINGS="+o.settings)
	o.Runtime = filepath.Join(t.TempDir(), "capless")
	put(t, filepath.Dir(o.Runtime), "capless", "static")
	o.kernel = forRoot{os.DirFS(o.settings), []string{"fs/protected_fifos"}}
	o.write = func(_ string, values map[string]string) error {
		if len(values) > 0 {
			return fs.ErrPermission
		}
		return nil
	}
	return daemon, o, l
}

func TestContainerRestoresSettingsForUserWithoutRoot(t *testing.T) {
	daemon, o, l := withoutRoot(t)
	if err := withCallers(t.Context(), o, undo{}); err != nil {
		t.Error(err)
	}
	check(t, o.settings, "kernel/panic", "0")
	check(t, o.settings, "fs/protected_fifos", "0")
	boot, err := kernel.Boot()
	if err != nil {
		t.Fatal(err)
	}
	const begin = "run --rm --privileged --network=none --pid=host sha256:1 /capless settings "
	check(t, daemon, "calls",
		begin+boot+" fs/protected_fifos", "image rm sha256:1",
		begin+boot+" fs/protected_fifos=0 kernel/panic=0", "image rm sha256:1")
	want := "Restored settings of the kernel: fs.protected_fifos from \"1\" to \"0\", kernel.panic from \"10\" to \"0\"\n"
	if d := cmp.Diff(want, l.String()); d != "" {
		t.Error(d)
	}
}

// TestSettingsThatStayFailRun has a daemon whose containers may not write settings, and one
// that starts none at the end.
func TestSettingsThatStayFailRun(t *testing.T) {
	for name, test := range map[string]struct{ then, want string }{
		"refused":      {`echo read-only file system >"$DAEMON/refused"`, "cannot be restored: read-only file system; set fs.protected_fifos from"},
		"no container": {`sed -i 's/^settings() {/& exit 7/' "$(command -v docker)"`, "cannot be restored: docker run"},
	} {
		t.Run(name, func(t *testing.T) {
			_, o, l := withoutRoot(t)
			o.Command = []string{"sh", "-c", o.Command[2] + "; " + test.then}
			err := withCallers(t.Context(), o, undo{})
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "kernel.panic from \"10\" to \"0\"") {
				t.Errorf("got the error %v, want one with %q", err, test.want)
			}
			if strings.Contains(l.String(), "Restored") {
				t.Errorf("the log is %q", l.String())
			}
			if len(absent(undoFile(o.Dir))) > 0 {
				t.Error("the next run does not try again")
			}
		})
	}
}

// TestDaemonOnAnotherMachine has the daemon answer with another boot ID: its nodes have not
// changed this machine, and nothing is written there.
func TestDaemonOnAnotherMachine(t *testing.T) {
	daemon, o, l := withoutRoot(t)
	put(t, daemon, "boot", "another")
	if err := withCallers(t.Context(), o, undo{}); err != nil {
		t.Error(err)
	}
	check(t, o.settings, "kernel/panic", "10")
	want := "Settings of the kernel have changed, not by nodes, which run on another machine: kernel.panic from \"10\" to \"0\"\n"
	if d := cmp.Diff(want, l.String()); d != "" {
		t.Error(d)
	}
}
