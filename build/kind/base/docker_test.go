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

package base

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/build/kind/programs"
	"k8s.io/kubernetes-features/build/release/image"
)

// fakeDocker is a client whose daemon is a folder: the file images has names, with ours for a
// stand-in, and containers has names with their images. Its arguments are written into
// calls. A command that is named in the file hang tells so and does not end, as one
// that is interrupted, but its work is done.
const fakeDocker = `#!/bin/sh
echo "$1 $2" >>"$DAEMON/calls"
names() {
	for arg; do
		case "$arg" in
		reference=*) grep -o "^${arg#reference=} " "$DAEMON/images" ;;
		name=*) grep -o "${arg#name=^/?}" "$DAEMON/containers" | head -1 ;;
		ancestor=*) sed -n "s#\(.*\) ${arg#ancestor=}#\1#p" "$DAEMON/containers" ;;
		esac
	done
	true
}
hang() { if [ "$1" = "$(cat "$DAEMON/hang" 2>/dev/null)" ]; then echo >"$DAEMON/hangs"; exec tail -f /dev/null; fi; }
case "$1 $2" in
"image ls"|"ps --all") names "$@" | sed 's/ *$//' ;;
"image inspect") sed -n "s#^\(docker.io/\)*$5 ##p; s#^\(docker.io/\)*${5#docker.io/} ##p" "$DAEMON/images" | head -1 ;;
"image rm") sed -i "\\#^${3#docker.io/} #d" "$DAEMON/images" ;;
"import -") cat >/dev/null; echo "$3 -" >>"$DAEMON/images"; hang import ;;
"run --detach") for arg; do case "$arg" in --name=*) echo "${arg#--name=}" >>"$DAEMON/containers"; echo c1 ;; esac; done; hang run ;;
"create "*) for arg; do case "$arg" in --name=*) echo "${arg#--name=}" >>"$DAEMON/containers"; echo c2 ;; esac; done; hang create ;;
"cp -") cat >/dev/null ;;
"exec "*|"export "*) ;;
"commit "*) hang commit; for name; do :; done; echo "$name -" >>"$DAEMON/images" ;;
"rm --force") shift 3; for n; do sed -i "/^$n\$/d" "$DAEMON/containers"; done ;;
"load --quiet") cat >"$DAEMON/images" ;;
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
	for _, name := range []string{"images", "containers"} {
		put(t, filepath.Join(daemon, name), "")
	}
	return daemon
}

func put(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, file, want string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(content)); diff != "" {
		t.Errorf("%s (-want +got)\n%s", filepath.Base(file), diff)
	}
}

// small is a base image of next to nothing.
func small(t *testing.T) Base {
	t.Helper()
	b := Base{Name: "localhost/base:v1", Kind: Kind(t.TempDir()), Programs: programs.Builder{Dir: t.TempDir()}, Log: t.Logf}
	put(t, filepath.Join(b.Kind.Files(), "usr", "local", "bin", "entrypoint"), "")
	for _, p := range programs.Node {
		put(t, b.Programs.File(p), "")
	}
	return b
}

// awaitWriter makes a pipe in a folder. The channel is closed when something writes into it.
func awaitWriter(t *testing.T, file string) <-chan struct{} {
	t.Helper()
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = os.ReadFile(file)
	}()
	t.Cleanup(func() {
		// Without a writer, reading would not end.
		if f, err := os.OpenFile(file, os.O_RDWR, 0); err == nil {
			_ = f.Close()
		}
		<-written
	})
	return written
}

// TestInterruptedBaseLeavesNothing ends the context while commands of the client run.
func TestInterruptedBaseLeavesNothing(t *testing.T) {
	for _, command := range []string{"", "import", "run", "create", "commit"} {
		t.Run(command, func(t *testing.T) {
			daemon, b := fake(t), small(t)
			other := "kind-base-unpacked-0123456789ab"
			put(t, filepath.Join(daemon, "images"), b.partImage(flat)+" -\nlocalhost/"+other+":latest -\n")
			put(t, filepath.Join(daemon, "containers"), b.part(unpacked)+"\n"+other+"\n")
			put(t, filepath.Join(daemon, "hang"), command)
			hangs := awaitWriter(t, filepath.Join(daemon, "hangs"))
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			made := make(chan error, 1)
			go func() { made <- b.Make(ctx) }()
			if command == "" {
				if err := <-made; err != nil {
					t.Error(err)
				}
			} else {
				select {
				case <-hangs:
				case err := <-made:
					t.Fatalf("it ended before docker %s: %v", command, err)
				}
				stop()
				if err := <-made; err == nil {
					t.Error("it was made all the same")
				}
			}
			want := "localhost/" + other + ":latest -\n"
			if command == "" {
				want += b.Name + " -\n"
			}
			check(t, filepath.Join(daemon, "images"), want)
			check(t, filepath.Join(daemon, "containers"), other+"\n")
		})
	}
}

// TestStandInsAreThereForOneRun loads one, and removes it, unless it is a real image.
func TestStandInsAreThereForOneRun(t *testing.T) {
	const name, shown = "docker.io/envoyproxy/envoy:v5", "envoyproxy/envoy:v5"
	ours := image.Spec{}.Labels()[urlLabel]
	for before, want := range map[string]struct{ loaded, after string }{
		"":                            {shown + " " + ours + "\n", ""},
		shown + " " + ours + "\n":     {shown + " " + ours + "\n", ""},
		shown + " \n":                 {shown + " \n", shown + " \n"},
		shown + " https://envoy.io\n": {shown + " https://envoy.io\n", shown + " https://envoy.io\n"},
	} {
		daemon := fake(t)
		images := filepath.Join(daemon, "images")
		put(t, images, before)
		s := StandIn{Name: name, File: filepath.Join(t.TempDir(), "envoy.tar")}
		put(t, s.File, shown+" "+ours+"\n")
		if err := s.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		check(t, images, want.loaded)
		var lines []string
		log := func(format string, _ ...any) { lines = append(lines, format) }
		put(t, filepath.Join(daemon, "containers"), "balancer "+shown+"\n")
		if err := Unload(t.Context(), []StandIn{s}, log); err != nil {
			t.Fatal(err)
		}
		check(t, images, want.loaded)
		if used := want.after == ""; used != (len(lines) == 1 && strings.Contains(lines[0], "uses it")) {
			t.Errorf("%q: got the lines %q about an image in use", before, lines)
		}
		put(t, filepath.Join(daemon, "containers"), "")
		if err := Unload(t.Context(), []StandIn{s}, log); err != nil {
			t.Fatal(err)
		}
		check(t, images, want.after)
	}
}
