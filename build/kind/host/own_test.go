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
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequestNamesWhatIsMissing(t *testing.T) {
	o, _ := testOptions(t, "true")
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	if os.Geteuid() != 0 {
		if _, err := newRequest(o, nil); err == nil || !strings.Contains(err.Error(), "as root") {
			t.Errorf("%v does not ask for root", err)
		}
		return
	}
	for _, program := range []string{"dockerd", "docker", "containerd", "runc", "iptables"} {
		if _, err := newRequest(o, nil); err == nil || !strings.Contains(err.Error(), program) || !strings.Contains(err.Error(), "install") {
			t.Errorf("%v does not ask for %s", err, program)
		}
		if err := os.WriteFile(filepath.Join(bin, program), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := newRequest(o, nil); err != nil || r.Runtime != "" || !strings.HasPrefix(r.Cgroup, "/") {
		t.Errorf("%+v, %v", r, err)
	}
	// Two runs at the same time, each with processes numbered in a namespace of its own.
	first, _ := newRequest(o, nil)
	if second, _ := newRequest(o, nil); first.Cgroup == second.Cgroup {
		t.Errorf("two runs have the cgroup %s", first.Cgroup)
	}
	lacking := []string{"CAP_SYS_RESOURCE"}
	o.Runtime = filepath.Join(bin, "capless")
	if _, err := newRequest(o, lacking); err == nil || !strings.Contains(err.Error(), "withholds CAP_SYS_RESOURCE") {
		t.Errorf("%v does not name the capability", err)
	}
	o.Runtime = filepath.Join(bin, "runc")
	if r, err := newRequest(o, lacking); err != nil || r.Runtime != o.Runtime {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestConfigurationHasRuntimeWhereCapabilitiesAreWithheld(t *testing.T) {
	r := request{Dir: "/d", Cgroup: "/c"}
	if _, ok := configuration(r)["default-runtime"]; ok {
		t.Error("there is another runtime than Docker's")
	}
	r.Runtime = "/capless"
	c := configuration(r)
	want := map[string]any{"capless": map[string]string{"path": "/capless"}}
	if d := cmp.Diff(want, c["runtimes"]); d != "" || c["default-runtime"] != "capless" || c["data-root"] != "/d/docker" {
		t.Errorf("%v %s", c, d)
	}
}

func TestEnvironmentNamesOwnDaemon(t *testing.T) {
	got := environment([]string{"A=1", "DOCKER_HOST=tcp://x", "DOCKER_CONTEXT=y", "DOCKER_CONFIG=/z"})
	if d := cmp.Diff([]string{"A=1", "DOCKER_CONFIG=/z", "DOCKER_HOST=unix:///run/docker.sock"}, got); d != "" {
		t.Error(d)
	}
}

func TestDaemonThatEndsShowsItsLog(t *testing.T) {
	d := &daemon{dir: t.TempDir(), ended: make(chan struct{}), err: errors.New("exit status 1")}
	close(d.ended)
	if err := os.WriteFile(logFile(d.dir), []byte(strings.Repeat("line\n", 20)+"failed to mount overlay\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := d.ready(t.Context())
	if err == nil || !strings.Contains(err.Error(), "failed to mount overlay") || strings.Count(err.Error(), "line\n") != 9 {
		t.Errorf("%v is not the end of the log", err)
	}
	if err := d.stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestDaemonAnswersWhenItHasStarted(t *testing.T) {
	var code atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(code.Load())) }))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
		},
	}}
	code.Store(http.StatusServiceUnavailable)
	if answers(t.Context(), client) {
		t.Error("a daemon that starts answers")
	}
	code.Store(http.StatusOK)
	if !answers(t.Context(), client) {
		t.Error("a daemon does not answer")
	}
	server.Close()
	if answers(t.Context(), client) {
		t.Error("a daemon that has ended answers")
	}
}

func TestResultOfNamespaces(t *testing.T) {
	if err := (result{}).err(); err != nil {
		t.Error(err)
	}
	err := result{Exit: 4, Error: "the daemon failed"}.err()
	if ExitCode(err) != 4 || !strings.Contains(err.Error(), "the daemon failed") {
		t.Errorf("%v", err)
	}
}

func TestChildIsStartedByRunOnly(t *testing.T) {
	for _, args := range [][]string{{"kind"}, {"kind", "up"}, {"kind", initCommand}} {
		if IsChild(args) {
			t.Errorf("%v is a child", args)
		}
	}
	args := []string{"kind", initCommand, "{}"}
	if !IsChild(args) {
		t.Errorf("%v is no child", args)
	}
	if err := runInit(args, nil); err == nil || !strings.Contains(err.Error(), "run the program without it") {
		t.Errorf("%v is no refusal", err)
	}
}

func TestPollEndsWithContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	n := 0
	err := poll(ctx, settling, func() bool {
		n++
		stop()
		return false
	})
	if err == nil || n != 1 {
		t.Errorf("%v after %d calls", err, n)
	}
	if err := poll(t.Context(), settling, func() bool { n++; return n == 4 }); err != nil || n != 4 {
		t.Errorf("%v after %d calls", err, n)
	}
}
