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
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

func TestRunRefusesOptions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Dir: "/x"}, "no command"},
		{Options{Dir: "x", Command: []string{"true"}}, "absolute"},
		{Options{Dir: "/run/x", Command: []string{"true"}}, "choose another"},
	} {
		if err := Run(t.Context(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v is no error with %q", err, c.want)
		}
	}
}

func TestExitCode(t *testing.T) {
	for want, err := range map[int]error{
		0: nil,
		1: errors.New("x"),
		7: errors.Join(errors.New("x"), &ExitError{7}),
	} {
		if got := ExitCode(err); got != want {
			t.Errorf("%v: %d, not %d", err, got, want)
		}
	}
}

func TestCommandExitCode(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 3": 3, "kill -9 $$": 137} {
		if got := ExitCode(runCommand(t.Context(), []string{"sh", "-c", script}, os.Environ(), streams{})); got != want {
			t.Errorf("%s: %d, not %d", script, got, want)
		}
	}
	if err := runCommand(t.Context(), []string{"no-such-program"}, nil, streams{}); err == nil || !strings.Contains(err.Error(), "cannot start") {
		t.Errorf("%v names no program that is missing", err)
	}
}

// onWrite is a writer that calls a function.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

func TestCommandGetsSignalAtEndOfContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	const script = `trap "exit 7" TERM; tail -f /dev/null & echo ready; wait`
	err := runCommand(ctx, []string{"sh", "-c", script}, os.Environ(), streams{out: onWrite(stop)})
	if got := ExitCode(err); got != 7 {
		t.Errorf("%v: %d, not 7", err, got)
	}
}

func TestBackgroundOfCommandEndsWithIt(t *testing.T) {
	var out strings.Builder
	// The output ends when all that write to it have ended.
	err := runCommand(t.Context(), []string{"sh", "-c", "tail -f /dev/null & echo started; exit 3"}, os.Environ(), streams{out: &out})
	if ExitCode(err) != 3 || errors.Is(err, exec.ErrWaitDelay) || out.String() != "started\n" {
		t.Errorf("%v, %q", err, out.String())
	}
}

func TestCommandHasNoInput(t *testing.T) {
	var out strings.Builder
	if err := runCommand(t.Context(), []string{"sh", "-c", "cat; echo $NAME"}, append(os.Environ(), "NAME=value"), streams{out: &out}); err != nil {
		t.Fatal(err)
	}
	if out.String() != "value\n" {
		t.Errorf("%q", out.String())
	}
}

// fakeDocker is a client whose daemon is a folder: the file ps has containers with the
// cluster that they are labeled with and their image, volume and network have names.
// Each container has a volume, which goes with it. Commands that change something are
// written into calls. The file events has those of the last moment, and the pipe stream
// those that are followed; told gets a line for each. Privileged containers read and write
// settings in the folder SETTINGS, unless the file refused says why not. The files address and
// security have where the daemon is, and its security options.
const fakeDocker = `#!/bin/sh
filter() {
	cluster=.* image=.* name=.*
	for arg; do
		case "$arg" in
		label=*) cluster=${arg##*=} ;;
		ancestor=*) image=${arg#*=} ;;
		name=*) name="${arg#name=^/?}.*" ;;
		esac
	done
	sed -n "s#^\($name\) $cluster $image\$#\1#p" "$DAEMON/ps"
}
change() { echo "$@" >>"$DAEMON/calls"; }
drop() { file=$1; shift; for n; do sed -i "/^$n\( \|\$\)/d" "$DAEMON/$file"; done; }
follow() {
	if [ -e "$DAEMON/unfollowed" ]; then cat "$DAEMON/unfollowed" >&2; exit 1; fi
	if [ -p "$DAEMON/stream" ]; then
		exec 3<>"$DAEMON/stream"
		while read -r line <&3; do echo "$line"; echo >"$DAEMON/told"; done
	fi
	exec tail -f /dev/null
}
settings() {
	while [ "$1" != settings ]; do shift; done
	here=$(cat "$DAEMON/boot" 2>/dev/null || echo "$2") was= is= refused=
	if [ "$here" = "$2" ]; then
		shift 2
		for arg; do
			name=${arg%%=*}
			was="$was,\"$name\":\"$(cat "$SETTINGS/$name")\""
			case "$arg" in *=*) refused=$(cat "$DAEMON/refused" 2>/dev/null) || echo "${arg#*=}" >"$SETTINGS/$name" ;; esac
			is="$is,\"$name\":\"$(cat "$SETTINGS/$name")\""
		done
	fi
	echo "{\"boot\":\"$here\",\"was\":{${was#,}},\"is\":{${is#,}},\"error\":\"$refused\"}"
}
case "$1 $2" in
"version "*) cat "$DAEMON/version" ;;
"ps "*) filter "$@" ;;
"container inspect") shift 4; for n; do echo "volume-of-$n"; echo; done ;;
"volume ls") cat "$DAEMON/volume" ;;
"network ls") cat "$DAEMON/network" ;;
"network inspect") cat "$DAEMON/users" 2>/dev/null || true ;;
"rm "*) change "$@"; shift 3; drop ps "$@"; for n; do drop volume "volume-of-$n"; done ;;
"volume rm") change "$@"; shift 3; drop volume "$@" ;;
"network rm") change "$@"; shift 2; drop network "$@" ;;
"image ls")
	case "$*" in
	*dangling*) sed -n 's/^<none>@//p' "$DAEMON/images" ;;
	*) for arg; do case "$arg" in reference=*) grep "^${arg#*=}[:@]" "$DAEMON/images" || true ;; esac; done ;;
	esac ;;
"image prune"|"image rm") change "$@" ;;
"import -") cat >"$DAEMON/imported"; echo sha256:1 ;;
"run "*)
	change "$@"
	case "$*" in
	*"/capless settings "*) settings "$@" ;;
	*) cat "$DAEMON/privileged" ;;
	esac ;;
"context inspect") cat "$DAEMON/address" ;;
"info "*)
	case "$*" in
	*SecurityOptions*) cat "$DAEMON/security" ;;
	*) cat "$DAEMON/time" ;;
	esac ;;
"events "*)
	case "$*" in
	*" --until "*) cat "$DAEMON/events" ;;
	*) follow ;;
	esac ;;
*) echo "unknown: $*" >&2; exit 9 ;;
esac
`

// fake puts the client into the PATH, and returns the folder of its daemon.
func fake(t *testing.T) string {
	t.Helper()
	bin, daemon := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(fakeDocker), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("DAEMON", daemon)
	for name, content := range map[string]string{"ps": "c1 - other\n", "volume": "v1\nv2\n", "network": "bridge\n", "images": "", "calls": "", "events": "", "time": "2026-01-01T00:00:00Z\n"} {
		if err := os.WriteFile(filepath.Join(daemon, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return daemon
}

func calls(t *testing.T, daemon string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(daemon, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestReachNeedsDaemon(t *testing.T) {
	daemon := fake(t)
	if err := (docker{os.Environ()}).reach(t.Context()); err == nil || !strings.Contains(err.Error(), "docker version") {
		t.Errorf("%v is no failure of the client", err)
	}
	if err := os.WriteFile(filepath.Join(daemon, "version"), []byte("28.2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (docker{os.Environ()}).reach(t.Context()); err != nil {
		t.Error(err)
	}
	t.Setenv("PATH", daemon)
	if err := (docker{os.Environ()}).reach(t.Context()); err == nil || !strings.Contains(err.Error(), "install") {
		t.Errorf("%v has no next step", err)
	}
}

func TestInterfaceThatStaysIsNamed(t *testing.T) {
	o, _ := testOptions(t, "true")
	// The bridge ends after the second look.
	looks := 0
	o.observe = func() (observation, error) {
		looks++
		if looks == 2 {
			return observation{interfaces: []string{"lo", "br-1"}}, nil
		}
		return observation{interfaces: []string{"lo"}}, nil
	}
	if err := observed(t.Context(), o, undo{}, func() error { return nil }); err != nil || looks != 3 {
		t.Errorf("%v after %d looks", err, looks)
	}
	before := observation{interfaces: []string{"lo"}}
	err := before.changes(func() (observation, error) { return observation{interfaces: []string{"lo", "veth1"}}, nil })
	if err == nil || !strings.Contains(err.Error(), "the network interface veth1") {
		t.Errorf("%v does not name the interface", err)
	}
}

// TestWhatDoesNotSettleIsNotUndoneAgain has an interface that stays. The next run would find
// it, too, and could not remove it.
func TestWhatDoesNotSettleIsNotUndoneAgain(t *testing.T) {
	o, _ := testOptions(t, "true")
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		o.observe = func() (observation, error) {
			looks++
			return observation{interfaces: []string{"lo", "br-1"}[:min(looks, 2)]}, nil
		}
		err := observed(t.Context(), o, undo{}, func() error { return nil })
		if err == nil || !strings.Contains(err.Error(), "the network interface br-1") {
			t.Errorf("%v does not name the interface", err)
		}
	})
	if _, err := os.Stat(undoFile(o.Dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is something to undo: %v", err)
	}
}

func TestObserveThisMachine(t *testing.T) {
	o, err := observe()
	if err != nil || len(o.mounts) == 0 {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestRemoveAllEmptiesDaemon(t *testing.T) {
	daemon := fake(t)
	if err := os.WriteFile(filepath.Join(daemon, "network"), []byte("bridge\nhost\nnone\nkind\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	was, err := (docker{os.Environ()}).removeAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := "rm --force --volumes c1\nvolume rm --force v1 v2\nnetwork rm kind\nimage prune --force\n"
	if d := cmp.Diff(want, calls(t, daemon)); d != "" {
		t.Error(d)
	}
	left := was.left()
	for _, name := range []string{"container c1", "volume v1", "volume v2"} {
		if left == nil || !strings.Contains(left.Error(), name) {
			t.Errorf("%v does not name the %s", left, name)
		}
	}
	if strings.Contains(fmt.Sprint(left), "network") {
		t.Errorf("%v names a network, and there are those of Docker and kind only", left)
	}
}

func TestDifferenceCountsNames(t *testing.T) {
	err := difference("mount", []string{"/a", "/b", "/b"}, []string{"/b", "/c"})
	want := "the mount /c was not there before and is left; remove it\n" +
		"the mount /a was there before and is not there now\n" +
		"the mount /b was there before and is not there now"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	if err := difference("mount", []string{"/a", "/b"}, []string{"/b", "/a"}); err != nil {
		t.Error(err)
	}
}
