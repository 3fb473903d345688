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
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// put writes a file of the fake daemon.
func put(t *testing.T, daemon, name string, lines ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(daemon, name), []byte(strings.Join(append(lines, ""), "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// check compares a file of the fake daemon.
func check(t *testing.T, daemon, name string, want ...string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(daemon, name))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Join(append(want, ""), "\n"), string(content)); diff != "" {
		t.Errorf("%s (-want +got)\n%s", name, diff)
	}
}

// forTests are options of a command whose cluster is its own.
func forTests(t *testing.T, script string) (Options, *logged) {
	t.Helper()
	o, l := testOptions(t, "sh", "-c", script)
	o.Cluster, o.Fresh, o.Base = "kind-test", true, "localhost/base:v1"
	return o, l
}

func TestContainersOfEarlierRunAreRemovedBefore(t *testing.T) {
	daemon := fake(t)
	put(t, daemon, "ps", "c1 - other", "kind-test-worker kind-test node", "features-worker features node", "kind-build-1-2 - localhost/base:v1", "kind-build-1-3 - kindest/base")
	put(t, daemon, "volume", "v1", "volume-of-kind-test-worker", "volume-of-features-worker")
	o, l := forTests(t, `cp "$DAEMON/ps" "$DAEMON/seen"`)
	if err := withCallers(t.Context(), o, undo{}); err != nil {
		t.Fatal(err)
	}
	check(t, daemon, "seen", "c1 - other", "features-worker features node", "kind-build-1-3 - kindest/base")
	check(t, daemon, "volume", "v1", "volume-of-features-worker")
	if want := "An earlier run has left containers; removing kind-test-worker, kind-build-1-2\n"; l.String() != want {
		t.Errorf("the log is %q, want %q", l.String(), want)
	}
}

func TestContainersThatCommandLeavesAreNamedAndRemoved(t *testing.T) {
	daemon := fake(t)
	o, _ := forTests(t, `echo "kind-test-worker kind-test node" >>"$DAEMON/ps"; echo volume-of-kind-test-worker >>"$DAEMON/volume"; exit 3`)
	unloaded := false
	o.Unload = func(context.Context) error {
		unloaded = true
		check(t, daemon, "ps", "c1 - other")
		return nil
	}
	err := withCallers(t.Context(), o, undo{})
	if ExitCode(err) != 3 || !strings.Contains(err.Error(), "the command has left the container kind-test-worker; it was removed") {
		t.Errorf("%v: exit code %d", err, ExitCode(err))
	}
	if !unloaded {
		t.Error("images were not removed after the containers")
	}
	check(t, daemon, "volume", "v1", "v2")
}

// TestInterruptedCommandLeavesNothing ends the context while the command runs.
func TestInterruptedCommandLeavesNothing(t *testing.T) {
	daemon := fake(t)
	ctx, stop := context.WithCancel(t.Context())
	o, _ := forTests(t, `echo "kind-test-worker kind-test node" >>"$DAEMON/ps"; echo kind >>"$DAEMON/network"; echo ready; exec tail -f /dev/null`)
	o.Stdout = onWrite(stop)
	o.Unload = func(ctx context.Context) error { return ctx.Err() }
	err := withCallers(ctx, o, undo{})
	if ExitCode(err) != 143 || errors.Is(err, context.Canceled) {
		t.Errorf("%v: exit code %d", err, ExitCode(err))
	}
	check(t, daemon, "ps", "c1 - other")
	check(t, daemon, "network", "bridge")
}

func TestClusterThatIsNotTheCommandsAloneStays(t *testing.T) {
	daemon := fake(t)
	put(t, daemon, "ps", "features-control-plane features node")
	o, _ := forTests(t, `echo "features-worker features node" >>"$DAEMON/ps"; echo "kind-build-1-2 - localhost/base:v1" >>"$DAEMON/ps"
printf "volume-of-features-worker\nvolume-of-kind-build-1-2\n" >>"$DAEMON/volume"`)
	o.Cluster, o.Fresh = "features", false
	err := withCallers(t.Context(), o, undo{})
	want := "the command has left the container features-worker; remove it by \"kind delete cluster --name features\"\n" +
		"the command has left the container kind-build-1-2; it was removed\n" +
		"the command has left the volume volume-of-features-worker; it goes with its container\n" +
		"the command has left the volume volume-of-kind-build-1-2; it was removed"
	if err == nil || err.Error() != want {
		t.Errorf("got the error %v, want %s", err, want)
	}
	check(t, daemon, "ps", "features-control-plane features node", "features-worker features node")
	check(t, daemon, "volume", "v1", "v2", "volume-of-features-worker")
}

// TestOthersMayUseDaemonMeanwhile has others make and remove things while the command runs.
func TestOthersMayUseDaemonMeanwhile(t *testing.T) {
	daemon := fake(t)
	put(t, daemon, "network", "bridge", "others")
	o, l := forTests(t, `echo "c2 - other
other-worker other node
kind-build-1-3 - kindest/base" >"$DAEMON/ps"; echo v3 >"$DAEMON/volume"; echo bridge >"$DAEMON/network"; echo 1 >"$SETTINGS/vm/swappiness"; echo 2 >"$SETTINGS/kernel/panic"`)
	for _, name := range []string{"vm/swappiness", "kernel/panic"} {
		writeSetting(t, o.settings, name, "0")
	}
	o.Env = append(o.Env, "SETTINGS="+o.settings)
	looks := 0
	o.observe = func() (observation, error) {
		looks++
		return observation{mounts: []string{"/", "/others"}[:looks], interfaces: []string{"lo", "veth1"}[:looks]}, nil
	}
	if err := withCallers(t.Context(), o, undo{}); err != nil {
		t.Error(err)
	}
	check(t, daemon, "calls")
	if want := "Restored settings of the kernel: kernel.panic from \"2\" to \"0\"\n"; l.String() != want {
		t.Errorf("the log is %q, want %q", l.String(), want)
	}
	check(t, o.settings, "vm/swappiness", "1")
	if _, err := os.Stat(undoFile(o.Dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is something to undo: %v", err)
	}
}

func TestNetworkOfKind(t *testing.T) {
	for name, test := range map[string]struct {
		before []string
		was    undo
		users  []string
		want   []string
	}{
		"made by the command":       {before: []string{"bridge"}, want: []string{"bridge"}},
		"there before":              {before: []string{"bridge", "kind"}, want: []string{"bridge", "kind", "kind"}},
		"left by a run that ended":  {before: []string{"bridge", "kind"}, was: undo{Network: true}, want: []string{"bridge"}},
		"used by others by the end": {before: []string{"bridge"}, users: []string{"c9"}, want: []string{"bridge", "kind"}},
	} {
		t.Run(name, func(t *testing.T) {
			daemon := fake(t)
			put(t, daemon, "network", test.before...)
			put(t, daemon, "users", test.users...)
			o, _ := forTests(t, `echo kind >>"$DAEMON/network"`)
			if err := withCallers(t.Context(), o, test.was); err != nil {
				t.Fatal(err)
			}
			check(t, daemon, "network", test.want...)
		})
	}
}

// TestImagesThatAreReplacedAreRemoved has the command make images again, and others, too;
// one of the replaced images is in use, and one has another name.
func TestImagesThatAreReplacedAreRemoved(t *testing.T) {
	daemon := fake(t)
	put(t, daemon, "ps", "c1 - id2")
	put(t, daemon, "images", "kindest/node:v1@id1", "kindest/node:v2@id2", "localhost/node:v3@id3", "kindest/node:v4@id4", "other:v1@id5", "kindest/node:v6@id6")
	o, _ := forTests(t, `echo "kindest/node:v1@id11
kindest/node:v2@id12
localhost/node:v3@id13
kept@id3
kindest/node:v4@id4
other:v1@id15
<none>@id1
<none>@id2
<none>@id5
<none>@id6" >"$DAEMON/images"`)
	if err := withCallers(t.Context(), o, undo{}); err != nil {
		t.Fatal(err)
	}
	check(t, daemon, "calls", "image rm id1")
}

// TestRunThatWasKilledHasMadeNetwork passes on what it noted.
func TestRunThatWasKilledHasMadeNetwork(t *testing.T) {
	o, _ := testOptions(t, "true")
	for _, made := range []bool{false, true} {
		if err := (undo{Network: made}).save(o.Dir); err != nil {
			t.Fatal(err)
		}
		was, err := finishKilled(t.Context(), o)
		if err != nil || was.Network != made {
			t.Errorf("got %+v, %v, want %t", was, err, made)
		}
	}
}

// TestDaemonDecidesWhetherItIsUsed has a daemon that starts privileged containers, or not;
// what this process may do does not matter.
func TestDaemonDecidesWhetherItIsUsed(t *testing.T) {
	daemon := fake(t)
	runtime := filepath.Join(t.TempDir(), "capless")
	if err := os.WriteFile(runtime, []byte("static"), 0o755); err != nil {
		t.Fatal(err)
	}
	why := func() string { return whyOwn(t.Context(), os.Environ(), runtime) }
	if got := why(); !strings.Contains(got, "docker version") {
		t.Errorf("without a daemon: %q", got)
	}
	put(t, daemon, "version", "28.2")
	if got := why(); !strings.Contains(got, "starts no privileged containers: docker run") {
		t.Errorf("without privileged containers: %q", got)
	}
	put(t, daemon, "privileged", "CAP_SYS_RESOURCE")
	if got := why(); got != "" {
		t.Errorf("with privileged containers, which lack a capability: %q", got)
	}
	put(t, daemon, "calls")
	lacking, err := Withheld(t.Context(), os.Environ(), runtime)
	if err != nil || !cmp.Equal(lacking, []string{"CAP_SYS_RESOURCE"}) {
		t.Errorf("got %q, %v", lacking, err)
	}
	check(t, daemon, "calls", "run --rm --privileged --network=none sha256:1 /capless print-withheld", "image rm sha256:1")
	f, err := os.Open(filepath.Join(daemon, "imported"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tr := tar.NewReader(f)
	h, err := tr.Next()
	if err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(tr); err != nil || h.Name != "capless" || h.Mode&0o111 == 0 || string(content) != "static" {
		t.Errorf("the image has %s (%o) with %q, %v", h.Name, h.Mode, content, err)
	}
	if _, err := Withheld(t.Context(), os.Environ(), runtime+"-none"); err == nil || !strings.Contains(err.Error(), "capless-none") {
		t.Errorf("got the error %v, want one that names the executable", err)
	}
}
