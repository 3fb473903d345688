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
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/kubernetes-features/cmd/local-up/cluster"
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
func (f *faults) ofEtcd(r request) bool { return f.explain(cluster.Etcd, r.begun, etcdGrace) }

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
		// A server that starts or ends, one whose caches begin anew since etcd was
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
