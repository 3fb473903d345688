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
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// backend is an API server that answers with its name, by TLS.
type backend struct {
	*httptest.Server
	unhealthy atomic.Bool
}

func newBackend(t *testing.T, name string) *backend {
	t.Helper()
	b := &backend{}
	b.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" && b.unhealthy.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
		fmt.Fprint(w, name)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *backend) address() string { return b.Listener.Addr().String() }

func started(t *testing.T, endpoints ...string) *balancer {
	t.Helper()
	b := newBalancer()
	t.Cleanup(b.connections.Wait)
	t.Cleanup(b.close)
	if err := b.apply(config{listen: "127.0.0.1:0", endpoints: endpoints, health: "/healthz"}); err != nil {
		t.Fatal(err)
	}
	b.check(t.Context())
	return b
}

// get sends one request on a connection of its own.
func get(t *testing.T, b *balancer, from *backend) (string, error) {
	t.Helper()
	client := from.Client()
	client.Transport.(*http.Transport).DisableKeepAlives = true
	response, err := client.Get("https://" + b.listener.Addr().String() + "/name")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	name, err := io.ReadAll(response.Body)
	return string(name), err
}

func names(t *testing.T, b *balancer, from *backend, n int) string {
	t.Helper()
	var all strings.Builder
	for range n {
		name, err := get(t, b, from)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(name)
	}
	return all.String()
}

func TestConnectionsGoRoundRobin(t *testing.T) {
	x, y, z := newBackend(t, "x"), newBackend(t, "y"), newBackend(t, "z")
	b := started(t, x.address(), y.address(), z.address())
	if got := names(t, b, x, 6); got != "xyzxyz" {
		t.Error(got)
	}
}

func TestUnhealthyEndpointIsSkipped(t *testing.T) {
	x, y := newBackend(t, "x"), newBackend(t, "y")
	x.unhealthy.Store(true)
	b := started(t, x.address(), y.address())
	if got := names(t, b, x, 3); got != "yyy" {
		t.Error(got)
	}
	x.unhealthy.Store(false)
	b.check(t.Context())
	if got := names(t, b, x, 4); strings.Count(got, "x") != 2 {
		t.Error(got)
	}
}

func TestEndpointBeforeItsFirstCheckIsUsed(t *testing.T) {
	x, y := newBackend(t, "x"), newBackend(t, "y")
	b := started(t, x.address())
	if err := b.apply(config{listen: b.config.listen, endpoints: []string{y.address()}, health: "/healthz"}); err != nil {
		t.Fatal(err)
	}
	if got := names(t, b, y, 1); got != "y" {
		t.Error(got)
	}
}

func TestEndpointThatDoesNotAcceptIsSkipped(t *testing.T) {
	x, y := newBackend(t, "x"), newBackend(t, "y")
	b := started(t, x.address(), y.address())
	// It ends between two checks.
	x.Close()
	if got := names(t, b, y, 3); got != "yyy" {
		t.Error(got)
	}
	y.Close()
	b.check(t.Context())
	if name, err := get(t, b, y); err == nil {
		t.Errorf("%s answered", name)
	}
}

func TestHalfClosedConnectionIsPassedOn(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		connection, err := server.Accept()
		if err != nil {
			return
		}
		defer closeAll(connection)
		content, _ := io.ReadAll(connection)
		fmt.Fprintf(connection, "read %s", content)
	}()
	b := newBalancer()
	t.Cleanup(b.connections.Wait)
	t.Cleanup(b.close)
	if err := b.apply(config{listen: "127.0.0.1:0", endpoints: []string{server.Addr().String()}}); err != nil {
		t.Fatal(err)
	}
	b.check(t.Context())
	connection, err := net.Dial("tcp", b.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(connection)
	fmt.Fprint(connection, "all")
	if err := connection.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(connection)
	if err != nil || string(answer) != "read all" {
		t.Errorf("%q, %v", answer, err)
	}
}

func TestApplyKeepsListenerOfSameAddress(t *testing.T) {
	b := started(t)
	before := b.listener
	if err := b.apply(config{listen: "127.0.0.1:0", endpoints: []string{"127.0.0.1:1"}}); err != nil {
		t.Fatal(err)
	}
	if b.listener != before {
		t.Error("the listener is another one")
	}
	if err := b.apply(config{}); err != nil {
		t.Fatal(err)
	}
	if b.listener != nil {
		t.Error("it listens without a listener")
	}
	if err := b.apply(config{listen: "256.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), "256.0.0.1:1") {
		t.Errorf("%v does not name the address", err)
	}
}

func TestReadConfigurationOfKind(t *testing.T) {
	f := files{clusters: filepath.Join("testdata", "cds.yaml"), listeners: filepath.Join("testdata", "lds.yaml")}
	got, err := f.read()
	if err != nil {
		t.Fatal(err)
	}
	want := config{listen: "0.0.0.0:6443", endpoints: []string{"kind-control-plane:6443", "kind-control-plane2:6443"}, health: "/healthz"}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(config{})); d != "" {
		t.Error(d)
	}
	bootstrap, err := readBootstrap(filepath.Join("testdata", "envoy.yaml"))
	if err != nil || bootstrap != (files{clusters: "/etc/envoy/cds.yaml", listeners: "/etc/envoy/lds.yaml"}) {
		t.Errorf("%+v, %v", bootstrap, err)
	}
}

func TestReadErrorsNameFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "lds.yaml")
	if _, err := readBootstrap(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Error(err)
	}
	for content, want := range map[string]string{
		"resources: 1": "lds.yaml",
		"resources: [{address: {}}, {address: {}}]": "2 listeners",
		"x: {}": "dynamic_resources",
	} {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := files{clusters: filepath.Join("testdata", "cds.yaml"), listeners: file}.read()
		if err == nil {
			_, err = readBootstrap(file)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v is no error with %q", content, err, want)
		}
	}
}

func TestFollowFiles(t *testing.T) {
	x := newBackend(t, "x")
	dir := t.TempDir()
	f := files{clusters: filepath.Join(dir, "cds.yaml"), listeners: filepath.Join(dir, "lds.yaml")}
	// As kind's command writes them first.
	for _, name := range []string{f.clusters, f.listeners} {
		if err := os.WriteFile(name, []byte("resources: []"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b := newBalancer()
	t.Cleanup(b.connections.Wait)
	t.Cleanup(b.close)
	ctx, stop := context.WithCancel(t.Context())
	tick, done := make(chan time.Time), make(chan struct{})
	go func() { defer close(done); b.follow(ctx, f, tick) }()
	tick <- time.Time{}
	if err := os.WriteFile(f.listeners, []byte("{resources: [{address: {socket_address: {address: 127.0.0.1, port_value: 0}}}]}"), 0o644); err != nil {
		t.Fatal(err)
	}
	content := strings.ReplaceAll("{resources: [{health_checks: [{http_health_check: {path: /healthz}}], load_assignment: "+
		"{endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: PORT}}}}]}]}}]}",
		"PORT", fmt.Sprint(x.Listener.Addr().(*net.TCPAddr).Port))
	if err := os.WriteFile(f.clusters, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	// The second of these ticks is taken after the check that follows the first.
	tick <- time.Time{}
	tick <- time.Time{}
	if got := names(t, b, x, 1); got != "x" {
		t.Error(got)
	}
	if err := os.WriteFile(f.clusters, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	tick <- time.Time{}
	tick <- time.Time{}
	if got := names(t, b, x, 1); got != "x" {
		t.Errorf("%s: a file that cannot be parsed has changed the configuration", got)
	}
	stop()
	<-done
}
