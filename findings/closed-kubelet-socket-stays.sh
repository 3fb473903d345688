#!/usr/bin/env bash
# The socket of a server that kubelet has closed is still in its directory.
#
# Expected: Close of a listener on a Unix socket removes the socket's file, as Go's net does for those
#   that it made.
# Happens: CreateListener of k8s.io/cri-client/pkg/util, by which kubelet serves its sockets for pods,
#   pod resources and devices, listens under a temporary name and then renames the socket. Go removes
#   the name that it listened on, which is gone; the file with the right name stays, and whoever
#   connects to it is refused.
# Versions: k8s.io/cri-client v0.37.2.
# Matters: that kubelet's pods-api.sock exists does not tell that a kubelet with the gate PodsAPI runs.
#   After the gate is turned off the file stays in every case, not only after a crash.
# Here: pkg/featurelifecycle/catalog/node.go says so, test/e2e_kind/node_test.go tries it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module socket k8s.io/cri-client@v0.37.2
cat >socket/main.go <<'GO'
package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/cri-client/pkg/util"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

func main() {
	dir, err := os.MkdirTemp("", "s")
	must(err)
	defer os.RemoveAll(dir)
	plain := filepath.Join(dir, "plain.sock")
	l, err := net.Listen("unix", plain)
	must(err)
	must(l.Close())
	fmt.Println("a listener of net, closed: its file is there:", exists(plain))
	kubelets := filepath.Join(dir, "kubelet.sock")
	l, err = util.CreateListener("unix://" + kubelets)
	must(err)
	must(l.Close())
	_, err = net.Dial("unix", kubelets)
	fmt.Println("a listener of cri-client, closed: its file is there:", exists(kubelets), "and connecting is refused:", err != nil)
}
GO
(cd socket && go mod tidy) >"$work/log" 2>&1 || cannot "go mod tidy"
program socket

conclude "a listener of cri-client that is closed leaves its socket's file" <<'SEEN'
a listener of net, closed: its file is there: false
a listener of cri-client, closed: its file is there: true and connecting is refused: true
SEEN
