#!/usr/bin/env bash
# One Create of client-go may be sent eleven times and make eleven objects.
#
# Expected: Request.MaxRetries in k8s.io/client-go/rest speaks of retries after 429, which
#   a server sends before it does anything; a Create that may have been done should come
#   back to its caller.
# Happens: any 5xx with Retry-After is repeated as well, POST included, ten times. With
#   generateName each repetition makes another object. The caller sees one error.
# Versions: k8s.io/client-go v0.36.3.
# Matters: a proxy that answers 503 after the server has done its work multiplies objects;
#   and thousands of processes that were turned away together come back together.
# Here: ClientConfig in staging/src/k8s.io/feature-lifecycle/internal/backoff/client.go takes
#   Retry-After out of answers, so that reports are sent once and wait as the package says.
#   Their names are fixed, so that a report that was sent twice is one.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module client k8s.io/client-go@v0.36.3 k8s.io/api@v0.36.3 k8s.io/apimachinery@v0.36.3
cat >client/main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func create(status int, retryAfter string) {
	var stored []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stored = append(stored, "report-"+strconv.Itoa(len(stored)))
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	leases := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL}).CoordinationV1().Leases("default")
	_, err := leases.Create(context.Background(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{GenerateName: "report-"}}, metav1.CreateOptions{})
	fmt.Printf("%d, Retry-After %q: %d stored, 1 error: %t, reason %q\n", status, retryAfter, len(stored), err != nil, errors.ReasonForError(err))
}

func main() {
	create(http.StatusServiceUnavailable, "")
	create(http.StatusServiceUnavailable, "0")
	create(http.StatusInternalServerError, "0")
}
GO
program client
conclude "a POST is sent eleven times when 500 or 503 come with Retry-After" <<'OUT'
503, Retry-After "": 1 stored, 1 error: true, reason "ServiceUnavailable"
503, Retry-After "0": 11 stored, 1 error: true, reason "ServiceUnavailable"
500, Retry-After "0": 11 stored, 1 error: true, reason "InternalError"
OUT
