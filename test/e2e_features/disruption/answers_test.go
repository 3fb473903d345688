//go:build linux

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

package disruption

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/kubernetes-features/test/utils/localcluster/process"
)

const (
	// outcomePrefix begins what is counted of requests.
	outcomePrefix = "requests: "
	// serverGrace is how long after a fault of a server had ended a request may
	// begin and still meet what the fault left. A machine may be busy with all that
	// came back at the same time.
	serverGrace = time.Minute
	// etcdGrace is that of etcd, which all servers miss. It is shorter: etcd goes away
	// about once a minute, and a minute of grace would explain everything always. A
	// server finds etcd again within seconds; a request that began before may last
	// longer and is explained all the same.
	etcdGrace = 30 * time.Second
)

// request is one that was sent to a server at a time.
type request struct {
	server string
	begun  time.Time
}

// outcome counts what became of a request. An answer that no fault explains is an
// error.
func (w *world) outcome(what string, r request, err error) error {
	if !w.passes(r, err) {
		return fmt.Errorf("%s from %s for %s, and no fault explains what came: %w", what, r.server, time.Since(r.begun).Round(time.Millisecond), err)
	}
	return nil
}

// passes is true for what clients meet in a cluster with faults: another attempt may
// succeed. It counts what became of the request.
func (w *world) passes(r request, err error) bool {
	kind, bad := w.faults.classify(r, err)
	w.stats.count(outcomePrefix + kind)
	return !bad
}

// ofServer is true when a fault of the request's server explains what became of it.
func (f *faults) ofServer(r request) bool { return f.explain(r.server, r.begun, serverGrace) }

// ofEtcd is true when one of etcd does.
func (f *faults) ofEtcd(r request) bool { return f.explain(localcluster.Etcd, r.begun, etcdGrace) }

// classify names what became of a request; bad is true when no fault explains it.
// What a fault of one server causes is accepted from that server only, and only
// while the fault lasts and a while longer. From a third of a run on nothing happens to the
// first server any more: it may neither refuse nor lose a connection.
func (f *faults) classify(r request, err error) (kind string, bad bool) {
	status := apierrors.APIStatus(nil)
	switch {
	case err == nil:
		return "done", false
	case errors.As(err, &status):
		return f.classifyStatus(r, status.Status(), err)
	case utilnet.IsConnectionRefused(err):
		return "refused (no server)", !f.ofServer(r)
	case utilnet.IsTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return "timed out (frozen server)", !f.ofServer(r) && !f.ofEtcd(r)
	case utilnet.IsConnectionReset(err), utilnet.IsProbableEOF(err), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), utilnet.IsHTTP2ConnectionLost(err),
		strings.Contains(err.Error(), "http2: "):
		return "connection lost (server ended)", !f.ofServer(r)
	case errors.Is(err, context.Canceled):
		return "given up", false
	default:
		return "not understood", true
	}
}

func (f *faults) classifyStatus(r request, status metav1.Status, err error) (kind string, bad bool) {
	kind = fmt.Sprintf("%d %s", status.Code, status.Reason)
	switch status.Code {
	case http.StatusNotFound, http.StatusConflict, http.StatusGone:
		// Other clients and compactions explain these.
		return kind, false
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		// A server that starts or ends, one whose caches start empty since etcd was
		// away, and requests that were cut off while they waited for it.
		return kind, !f.ofServer(r) && !f.ofEtcd(r)
	case http.StatusInternalServerError:
		// What etcd's client says while etcd is away, upstream's storage passes on
		// as a 500, for every resource.
		for _, text := range []string{"rpc error", "etcdserver:", "context deadline exceeded", "client connection", "connection error"} {
			if strings.Contains(err.Error(), text) {
				return kind + " (of etcd's client)", !f.ofEtcd(r)
			}
		}
		return kind, true
	default:
		// Admission says so while a server starts.
		return kind, status.Code != http.StatusForbidden || !strings.Contains(err.Error(), "not yet ready to handle request") || !f.ofServer(r)
	}
}

func answer(code int32, text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: "Some", Message: text}}
}

// failure is what a client says of a request without an answer.
func failure(err error) error { return &url.Error{Op: "Get", URL: "https://127.0.0.1:1", Err: err} }

func TestAnswersAreJudged(t *testing.T) {
	const server, other = "kube-apiserver-2", "kube-apiserver-3"
	const never, ofServer, ofEtcd, ofBoth, always = "", "server", "etcd", "server etcd", "server etcd other"
	now := time.Now()
	// What was long ago explains nothing any more.
	was := func(component string, ended time.Time) *faults {
		f := newFaults()
		f.ended[component] = ended
		return f
	}
	is := func(component string) *faults {
		f := newFaults()
		f.begin(component)
		return f
	}
	worlds := []struct {
		faults *faults
		name   string
	}{
		{newFaults(), "none"},
		{is(other), "other"},
		{was(server, now.Add(-2*serverGrace)), "none"},
		{was(localcluster.Etcd, now.Add(-2*etcdGrace)), "none"},
		{is(server), "server"},
		{was(server, now.Add(-serverGrace/2)), "server"},
		{is(localcluster.Etcd), "etcd"},
		{was(localcluster.Etcd, now.Add(-etcdGrace/2)), "etcd"},
	}
	for _, test := range []struct {
		err error
		// by are the faults that explain it; always needs none.
		by string
	}{
		{nil, always},
		{answer(404, "not found"), always},
		{answer(409, "the object has been modified"), always},
		{answer(410, "too old resource version"), always},
		{answer(503, "apiserver is shutting down"), ofBoth},
		{answer(504, "request did not complete within requested timeout"), ofBoth},
		{answer(429, "storage is (re)initializing"), ofBoth},
		{answer(500, "rpc error: code = Unavailable desc = error reading from server: EOF"), ofEtcd},
		{answer(500, "etcdserver: request timed out"), ofEtcd},
		{answer(500, "runtime error: invalid memory address or nil pointer dereference"), never},
		{answer(502, "bad gateway"), never},
		{answer(403, "nodes is forbidden: not yet ready to handle request"), ofServer},
		{answer(403, "nodes is forbidden: User cannot list"), never},
		{failure(syscall.ECONNREFUSED), ofServer},
		{failure(syscall.ECONNRESET), ofServer},
		{failure(os.ErrDeadlineExceeded), ofBoth},
	} {
		for _, w := range worlds {
			want := test.by != always && !slices.Contains(strings.Fields(test.by), w.name)
			if kind, bad := w.faults.classify(request{server, now}, test.err); bad != want || kind == "" {
				t.Errorf("%v with a fault of %s (%v, %v): %q, unexplained: %t, want %t", test.err, w.name, w.faults.active, w.faults.ended, kind, bad, want)
			}
		}
	}
}

func TestFaultsOverlap(t *testing.T) {
	f := newFaults()
	begun := time.Now()
	thaw := f.begin("a", "b")
	start := f.begin("a")
	thaw()
	if !f.explain("a", time.Now().Add(time.Hour), 0) {
		t.Error("a is taken for well while one of two faults lasts")
	}
	start()
	if f.explain("a", time.Now().Add(time.Hour), time.Minute) || f.explain("c", begun, time.Hour) {
		t.Error("a fault explains what came an hour later, or of who had none")
	}
	if !f.explain("b", begun, 0) {
		t.Error("a fault that began and ended during a request does not explain it")
	}
}

// TestLostServerDetectedInControllerManagerLog checks the end of the log.
func TestLostServerDetectedInControllerManagerLog(t *testing.T) {
	for line, want := range map[string]bool{
		`E1125 16:57:50.042898    2249 controllermanager.go:278] "Error building controllers" err="failed to create Kubernetes client for \"certificate-controller\": serviceaccounts \"certificate-controller\" is forbidden: User \"system:kube-controller-manager\" cannot get resource \"serviceaccounts\" in API group \"\" in the namespace \"kube-system\""`: true,
		`E1125 16:57:50.042898    2249 controllermanager.go:278] "Error building controllers" err="Get \"https://127.0.0.1:1/api\": dial tcp 127.0.0.1:1: connect: connection refused"`:                                                                                                                                                                             true,
		`E1125 16:57:50.042898    2249 namespace.go:1] "Unable to get any supported resources from server"`:                                                                                                                                                                                                                                                         true,
		// Others are its own.
		`E1125 16:57:50.042840    2249 controllermanager.go:637] "Error initializing a controller" err="configmaps \"x\" is forbidden: User \"system:node:a\""`: false,
		`E1125 16:57:50.042988    2249 run.go:72] "command failed" err="leaderelection lost"`:                                                                   false,
	} {
		if got := lostServer.MatchString(line); got != want {
			t.Errorf("%s: %t, want %t", line, got, want)
		}
	}
}

func TestPanicsAreFound(t *testing.T) {
	p := process.Process{Name: "some", LogFile: filepath.Join(t.TempDir(), "log")}
	for text, want := range map[string]int{
		"I1122 all is well\nE1122 FinishRequest: post-timeout activity - panicked: false, err: context canceled, panic-reason: <nil>\n": 0,
		"E1122 \"Observed a panic\" panic=\"assignment to entry in nil map\"\n\tsome stack\n":                                           1,
		"panic: runtime error: index out of range\n\ngoroutine 1 [running]:\n":                                                          2,
		"fatal error: concurrent map writes": 1,
		"E1122 FinishRequest: post-timeout activity - panicked: true, err: <nil>, panic-reason: assignment to entry in nil map\nI1122 fine\n": 1,
	} {
		if err := os.WriteFile(p.LogFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if lines, err := framework.Panics(p); err != nil || len(lines) != want {
			t.Errorf("%q: found %q (%v), want %d lines", text, lines, err, want)
		}
	}
	if err := os.WriteFile(p.LogFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := framework.Panics(p); err == nil {
		t.Error("an empty log is taken for one without panics")
	}
}
