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
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

// serve forwards what the listener accepts until it is closed.
func (b *balancer) serve(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// As when there are too many open files, which ends by itself.
			slog.Error("A connection was not accepted, retrying", "err", err)
			time.Sleep(interval)
			continue
		}
		b.connections.Go(func() { b.forward(connection) })
	}
}

// forward joins a client with the next endpoint, and closes its connection where none
// is healthy.
func (b *balancer) forward(client net.Conn) {
	defer closeAll(client)
	server := b.dial()
	if server == nil {
		slog.Info("A connection is closed, no endpoint is healthy", "client", client.RemoteAddr())
		return
	}
	defer closeAll(server)
	var both sync.WaitGroup
	both.Go(func() { pipe(server, client) })
	both.Go(func() { pipe(client, server) })
	both.Wait()
}

func (b *balancer) dial() net.Conn {
	for _, endpoint := range b.turn() {
		server, err := net.DialTimeout("tcp", endpoint, dialTimeout)
		if err == nil {
			return server
		}
		slog.Info("An endpoint does not accept, taking the next", "endpoint", endpoint, "err", err)
	}
	return nil
}

// pipe copies one direction of a connection. The end of it is passed on; an error
// ends both directions.
func pipe(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite()
	}
	if err != nil {
		closeAll(to, from)
	}
}

// closeAll ends connections of which nothing more is expected.
func closeAll(connections ...io.Closer) {
	for _, c := range connections {
		c.Close()
	}
}
