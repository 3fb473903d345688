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

package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// line is what a driver prints (test/external/clients/driver), or an event that kubectl
// prints.
type line struct {
	Action, Object, Result, Message string
	Content                         map[string]any
}

// UnmarshalJSON implements json.Unmarshaler. Events of kubectl have a type and an object.
func (l *line) UnmarshalJSON(data []byte) error {
	var event struct {
		Type   string
		Object json.RawMessage
	}
	if err := json.Unmarshal(data, &event); err != nil {
		return err
	}
	if event.Type == "" {
		type plain line
		return json.Unmarshal(data, (*plain)(l))
	}
	l.Action = strings.ToLower(event.Type)
	if err := json.Unmarshal(event.Object, &l.Content); err != nil {
		return err
	}
	l.Object = l.object().GetKind() + "/" + l.object().GetName()
	return nil
}

// key is the informer and the object that an event is about.
func (l line) key() string {
	kind, _, _ := strings.Cut(l.Object, "/")
	return fmt.Sprintf("%s %s %s/%s", l.Result, kind, l.object().GetNamespace(), l.object().GetName())
}

// String shows the line without content.
func (l line) String() string {
	return strings.TrimSpace(strings.Join([]string{l.Action, l.Object, l.Result, l.Message}, " "))
}

func (l line) object() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: l.Content}
}

// stream is a client that runs until it is ended, and what it has printed.
type stream struct {
	name   string
	stdin  io.Closer
	wait   func() error
	errors bytes.Buffer

	mu   sync.Mutex
	seen []line
	err  error
	news chan struct{}
}

// follow starts a client that prints lines of a driver until its input ends.
func follow(t *testing.T, name, binary string, args ...string) *stream {
	t.Helper()
	s := &stream{name: name, news: make(chan struct{})}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Stderr = &s.errors
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v; build it with \"make client-drivers\"", name, err)
	}
	done := make(chan struct{})
	s.stdin = stdin
	s.wait = sync.OnceValue(func() error {
		<-done
		return cmd.Wait()
	})
	go func() {
		defer close(done)
		s.read(stdout)
	}()
	t.Cleanup(func() { _, _ = s.stdin.Close(), s.wait() })
	return s
}

// read takes lines until the client has ended.
func (s *stream) read(from io.Reader) {
	decoder := json.NewDecoder(from)
	for {
		var l line
		err := decoder.Decode(&l)
		s.mu.Lock()
		if err != nil {
			s.err = err
		} else {
			s.seen = append(s.seen, l)
		}
		close(s.news)
		s.news = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// lines are all lines so far, a channel that is closed when there are others, and why there are
// none any more.
func (s *stream) lines() ([]line, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[:len(s.seen):len(s.seen)], s.news, s.err
}

// until waits until the lines so far are as wanted.
func (s *stream) until(t *testing.T, what string, wanted func([]line) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), framework.Patience)
	defer cancel()
	for {
		seen, news, err := s.lines()
		if wanted(seen) {
			return
		}
		if err == nil {
			select {
			case <-news:
				continue
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		t.Fatalf("waiting for %s to see %s: %v; it has printed %d lines, the last of them:\n%s\n%s", s.name, what, err, len(seen), tail(seen), s.errors.String())
	}
}

// tail shows the last lines.
func tail(lines []line) string {
	var all []string
	for _, l := range lines[max(0, len(lines)-20):] {
		all = append(all, l.String())
	}
	return strings.Join(all, "\n")
}

// last is the number of lines so far.
func (s *stream) last() int {
	seen, _, _ := s.lines()
	return len(seen)
}

// end ends the client in order.
func (s *stream) end(t *testing.T) {
	t.Helper()
	_ = s.stdin.Close()
	if err := s.wait(); err != nil {
		t.Errorf("%s ended: %v\n%s", s.name, err, s.errors.String())
	}
	if _, _, err := s.lines(); !errors.Is(err, io.EOF) {
		t.Errorf("reading what %s printed: %v", s.name, err)
	}
}
