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
	"net"
	"sync"
	"testing"
)

// link is the network between a kube-apiserver and etcd. While it is cut, bytes
// get lost on neither side: they do not arrive, as behind a switch that died.
// Neither side gets an error before a timeout of its own.
type link struct {
	listener net.Listener

	mu sync.Mutex
	// target is the address at the other end.
	target string
	// whole is closed while bytes pass.
	whole chan struct{}
	// ends are all connections, to close them at the end.
	ends []net.Conn
}

// newLink makes a link; lead says where to. It lives as long as the test.
func newLink(t *testing.T) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("the link to etcd: %v", err)
	}
	l := &link{listener: listener, whole: make(chan struct{})}
	close(l.whole)
	var running sync.WaitGroup
	running.Go(func() { l.serve(&running) })
	t.Cleanup(func() {
		listener.Close()
		l.mend()
		l.mu.Lock()
		for _, conn := range l.ends {
			_ = conn.Close()
		}
		l.mu.Unlock()
		running.Wait()
	})
	return l
}

// lead returns where the link leads to, before its first use.
func (l *link) lead(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = target
}

// url is where a client reaches the target through the link.
func (l *link) url() string { return "https://" + l.listener.Addr().String() }

func (l *link) serve(running *sync.WaitGroup) {
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
		running.Go(func() { l.carry(client, server) })
		running.Go(func() { l.carry(server, client) })
	}
}

// carry passes bytes on until one side ends. What arrives during a cut waits for
// its end.
func (l *link) carry(from, to net.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		<-l.passing()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *link) passing() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.whole
}

// sever cuts the link.
func (l *link) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.whole:
		l.whole = make(chan struct{})
	default:
	}
}

// mend ends the cut.
func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.whole:
	default:
		close(l.whole)
	}
}
