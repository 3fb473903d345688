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

package framework

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Link is the network between a kube-apiserver and etcd. While it is cut, bytes
// get lost on neither side: they do not arrive, as behind a switch that died.
// Neither side gets an error before a timeout of its own.
type Link struct {
	listener net.Listener
	// closed is closed when the test ends.
	closed chan struct{}

	mu sync.Mutex
	// target is the address at the other end.
	target string
	// whole is closed while bytes pass.
	whole chan struct{}
	// delay is how much later bytes arrive, in either direction.
	delay time.Duration
	// ends are all connections, to close them at the end.
	ends []net.Conn
}

// inTransit bounds how many chunks of one direction are under way.
const inTransit = 4096

// chunk is bytes and the time at which they arrive.
type chunk struct {
	data []byte
	due  time.Time
}

// NewLink makes a link; Lead says where to. It lives as long as the test.
func NewLink(t testing.TB) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("the link to etcd: %v", err)
	}
	l := &Link{listener: listener, whole: make(chan struct{}), closed: make(chan struct{})}
	close(l.whole)
	var running sync.WaitGroup
	running.Go(func() { l.serve(&running) })
	t.Cleanup(func() {
		_ = listener.Close()
		close(l.closed)
		l.mu.Lock()
		for _, conn := range l.ends {
			_ = conn.Close()
		}
		l.mu.Unlock()
		running.Wait()
	})
	return l
}

// Lead sets where the link leads to, before its first use.
func (l *Link) Lead(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = target
}

// URL returns where a client reaches the target through the link.
func (l *Link) URL() string { return "https://" + l.listener.Addr().String() }

func (l *Link) serve(running *sync.WaitGroup) {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.mu.Lock()
		target := l.target
		l.mu.Unlock()
		server, err := net.Dial("tcp", target)
		if err != nil {
			// The target is down, which is not the link's fault.
			_ = client.Close()
			continue
		}
		l.mu.Lock()
		l.ends = append(l.ends, client, server)
		l.mu.Unlock()
		l.carry(running, client, server)
		l.carry(running, server, client)
	}
}

// carry passes bytes on until one side ends.
func (l *Link) carry(running *sync.WaitGroup, from, to net.Conn) {
	chunks := make(chan chunk, inTransit)
	running.Go(func() {
		defer close(chunks)
		for {
			buffer := make([]byte, 32<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				chunks <- chunk{buffer[:n], time.Now().Add(l.delayed())}
			}
			if err != nil {
				return
			}
		}
	})
	running.Go(func() {
		open := true
		// Whatever comes after an error is taken, so that the reader ends.
		for c := range chunks {
			open = open && l.arrive(c, to)
			if !open {
				_, _ = from.Close(), to.Close()
			}
		}
		_, _ = from.Close(), to.Close()
	})
}

// arrive writes a chunk when it is due and the link is whole. It returns false when the
// receiver is gone.
func (l *Link) arrive(c chunk, to net.Conn) bool {
	if wait := time.Until(c.due); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.closed:
			return false
		}
	}
	select {
	case <-l.passing():
	case <-l.closed:
		return false
	}
	_, err := to.Write(c.data)
	return err == nil
}

func (l *Link) passing() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.whole
}

func (l *Link) delayed() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.delay
}

// Delay makes bytes that are sent from now on arrive later, in either direction.
func (l *Link) Delay(delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = delay
}

// Sever cuts the link. What was sent, and what is sent later, arrives after Mend.
func (l *Link) Sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.whole:
		l.whole = make(chan struct{})
	default:
	}
}

// Mend ends the cut.
func (l *Link) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.whole:
	default:
		close(l.whole)
	}
}
