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

package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/kubernetes-features/build/kind/host"
)

func TestCommandLine(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "a command is missing"},
		{[]string{"other"}, "a command is missing"},
		{[]string{"run", "-dir", t.TempDir()}, "kind-build run [flags] -- COMMAND"},
		{[]string{"run", "-dir", t.TempDir(), "-fresh", "--", "true"}, "-fresh needs -cluster"},
		{[]string{"run", "-dir", t.TempDir(), "--", "true"}, "kind-build fetch"},
		{[]string{"fetch", "-dir", t.TempDir()}, "-release"},
		{[]string{"fetch", "-dir", t.TempDir(), "-release", "r", "-kind", "k", "-offline", "maybe"}, "-offline=maybe"},
		{[]string{"cgroup1", "-dir", t.TempDir(), "a", "b"}, "cgroup1 takes one file"},
		{[]string{"inside", "-dir", t.TempDir(), "--", "true"}, "kind-build fetch"},
	} {
		if err := run(t.Context(), test.args); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("kind-build %s: got the error %v, want one with %q", strings.Join(test.args, " "), err, test.want)
		}
	}
}

func TestFetchWithRegistriesLeavesAllToKind(t *testing.T) {
	dir := t.TempDir()
	if err := run(t.Context(), []string{"fetch", "-dir", dir, "-release", "r", "-kind", "k", "-offline", "no"}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "made.json"))
	if err != nil || !strings.Contains(string(content), `"Base":""`) {
		t.Errorf("got %s, %v, want no base image", content, err)
	}
}

// builds returns a checkout, a folder to build into, and one that is the PATH and has the
// compiler: only the runtime is built, which is in this module.
func builds(t *testing.T) (checkout, dir, bin string) {
	t.Helper()
	compiler, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	checkout, dir, bin = filepath.Dir(filepath.Dir(here)), t.TempDir(), t.TempDir()
	if err := os.Symlink(compiler, filepath.Join(bin, "go")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	return checkout, dir, bin
}

// checkRuntimeAlone fails unless the runtime was built, and nothing else.
func checkRuntimeAlone(t *testing.T, dir string) {
	t.Helper()
	if built, err := os.ReadDir(filepath.Join(dir, "programs")); err != nil || len(built) != 1 {
		t.Errorf("built: %v, %v, want the runtime alone", built, err)
	}
}

// TestFetchBuildsNothingForNoDaemon is on a machine without Docker.
func TestFetchBuildsNothingForNoDaemon(t *testing.T) {
	checkout, dir, _ := builds(t)
	want := "install Debian's docker.io"
	if os.Geteuid() != 0 {
		want = "run this as root"
	}
	for _, args := range [][]string{{"-offline", "auto"}, {"-offline", "yes"}, {"-offline", "no", "-e2e"}} {
		err := run(t.Context(), append([]string{"fetch", "-root", checkout, "-dir", dir, "-release", "r", "-kind", "k"}, args...))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("fetch %v: got the error %v, want one with %q", args, err, want)
		}
	}
	checkRuntimeAlone(t, dir)
}

// TestFetchBuildsNothingForDaemonElsewhere has a daemon that can run nodes, on another
// machine, where tests do not reach them.
func TestFetchBuildsNothingForDaemonElsewhere(t *testing.T) {
	checkout, dir, bin := builds(t)
	const docker = `#!/bin/sh
case "$1 $2" in
"version "*) echo 28.2 ;;
"import -") /bin/cat >/dev/null; echo sha256:1 ;;
"run "* | "image rm") ;;
"context inspect") echo "$DOCKER_HOST" ;;
*) echo "unknown: $*" >&2; exit 9 ;;
esac
`
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(docker), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_HOST", "ssh://me@builder")
	for _, args := range [][]string{{"-offline", "auto", "-own"}, {"-offline", "yes", "-own"}, {"-offline", "no", "-e2e"}} {
		err := run(t.Context(), append([]string{"fetch", "-root", checkout, "-dir", dir, "-release", "r", "-kind", "k"}, args...))
		if want := "is at ssh://me@builder; unset DOCKER_HOST"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("fetch %v: got the error %v, want one with %q", args, err, want)
		}
	}
	checkRuntimeAlone(t, dir)
}

// release writes an archive of files, by their names.
func release(t *testing.T, files ...[2]string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "server.tar.gz")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	zipped := gzip.NewWriter(f)
	tw := tar.NewWriter(zipped)
	for _, file := range files {
		if err := tw.WriteHeader(&tar.Header{Name: file[0], Mode: 0o644, Size: int64(len(file[1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(file[1])); err != nil {
			t.Fatal(err)
		}
	}
	for _, closer := range []interface{ Close() error }{tw, zipped, f} {
		if err := closer.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// TestErrorOfCommandIsShownOnce has the error of the process inside and that of the outer
// one, which gets its exit code.
func TestErrorOfCommandIsShownOnce(t *testing.T) {
	other := errors.New("the container c is left")
	for name, test := range map[string]struct {
		err          error
		inner, outer string
	}{
		"failure":              {&host.ExitError{Code: 2}, "the command ended with exit code 2", ""},
		"signal":               {&host.ExitError{Code: 143}, "", "the command ended with exit code 143"},
		"another error":        {other, other.Error(), other.Error()},
		"failure, and another": {errors.Join(errors.Join(&host.ExitError{Code: 2}), other), "the command ended with exit code 2\n" + other.Error(), other.Error()},
	} {
		if inner, outer := complaint(test.err, true), complaint(test.err, false); inner != test.inner || outer != test.outer {
			t.Errorf("%s: the process inside shows %q and the outer one %q, want %q and %q", name, inner, outer, test.inner, test.outer)
		}
	}
}

// TestKubeadmIsUnpackedOnceForEachArchive has a kubeadm that counts its calls.
func TestKubeadmIsUnpackedOnceForEachArchive(t *testing.T) {
	o := options{dir: t.TempDir()}
	calls := filepath.Join(o.dir, "calls")
	pack := func(version string) string {
		return release(t,
			[2]string{"kubernetes/version", version + "\n"},
			[2]string{"kubernetes/server/bin/kubeadm", "#!/bin/sh\necho $5 >>" + calls + "\necho registry.k8s.io/kube-apiserver:$5 registry.k8s.io/pause:$5\n"})
	}
	first, second := pack("v1"), pack("v2")
	ask := func(file, want, wantCalls string) {
		t.Helper()
		names, err := o.listed(t.Context(), file)
		if err != nil || !slices.Equal(names, []string{"registry.k8s.io/pause:" + want}) {
			t.Fatalf("got %q, %v, want pause:%s", names, err, want)
		}
		got, err := os.ReadFile(calls)
		if err != nil || strings.Join(strings.Fields(string(got)), " ") != wantCalls {
			t.Errorf("kubeadm was called for %q, %v, want %q", got, err, wantCalls)
		}
	}
	ask(first, "v1", "v1")
	ask(second, "v2", "v1 v2")
	ask(first, "v1", "v1 v2")
	ask(second, "v2", "v1 v2")
	info, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	later := info.ModTime().Add(time.Second)
	if err := os.Chtimes(first, later, later); err != nil {
		t.Fatal(err)
	}
	ask(first, "v1", "v1 v2 v1")
	if err := os.WriteFile(o.listings(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := o.listed(t.Context(), first); err == nil || !strings.Contains(err.Error(), "remove "+o.listings()) {
		t.Errorf("got the error %v, want one that names the file", err)
	}
}

func TestExtract(t *testing.T) {
	kubeadm := [2]string{"kubernetes/server/bin/kubeadm", "program"}
	version := [2]string{"kubernetes/version", "v1.37.2\n"}
	file := filepath.Join(t.TempDir(), "kubeadm")
	got, err := extract(release(t, kubeadm, version), file)
	if err != nil || got != "v1.37.2" {
		t.Fatalf("got %q, %v, want v1.37.2", got, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Size() != int64(len(kubeadm[1])) || info.Mode()&0o100 == 0 {
		t.Errorf("kubeadm is %v, %v, want a program of %d bytes", info, err, len(kubeadm[1]))
	}
	if _, err := extract(release(t, version), file); err == nil || !strings.Contains(err.Error(), kubeadm[0]) {
		t.Errorf("got the error %v, want one that names %s", err, kubeadm[0])
	}
}
