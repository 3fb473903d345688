//go:build linux

/*
Copyright 2026 The Kubernetes Authors.

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
	"k8s.io/kubernetes-features/cmd/local-up/cluster"
	"k8s.io/kubernetes-features/cmd/local-up/process"
	"k8s.io/kubernetes-features/test/integration/framework"
)

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
		{was(cluster.Etcd, now.Add(-2*etcdGrace)), "none"},
		{is(server), "server"},
		{was(server, now.Add(-serverGrace/2)), "server"},
		{is(cluster.Etcd), "etcd"},
		{was(cluster.Etcd, now.Add(-etcdGrace/2)), "etcd"},
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

// TestAControllerManagerThatLostItsServerIsTold by the end of its log.
func TestAControllerManagerThatLostItsServerIsTold(t *testing.T) {
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
