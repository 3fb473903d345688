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
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"sync"
	"time"
)

const (
	// dialTimeout bounds the wait for an endpoint's host.
	dialTimeout  = time.Second
	checkTimeout = 3 * time.Second
)

// balancer forwards connections by the configuration that it was last given.
type balancer struct {
	client *http.Client
	// connections are those that are forwarded.
	connections sync.WaitGroup

	mu       sync.Mutex
	config   config
	listener net.Listener
	healthy  map[string]bool
	next     int
}

func newBalancer() *balancer {
	return &balancer{client: &http.Client{
		Timeout: checkTimeout,
		Transport: &http.Transport{
			// As kind configures Envoy: a check asks whether the server is ready, and
			// clients verify the server themselves through the connection.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			// Each check shows that the endpoint accepts.
			DisableKeepAlives: true,
		},
	}}
}

// follow reads the files and checks the endpoints at each tick until ctx ends.
func (b *balancer) follow(ctx context.Context, f files, tick <-chan time.Time) {
	var last error
	for {
		c, err := f.read()
		if err == nil {
			err = b.apply(c)
		}
		if err != nil && (last == nil || err.Error() != last.Error()) {
			slog.Error("The configuration is not used, retrying", "err", err)
		}
		last = err
		b.check(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// apply makes c the configuration. Connections stay.
func (b *balancer) apply(c config) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if reflect.DeepEqual(b.config, c) {
		return nil
	}
	if b.listener != nil && c.listen != b.config.listen {
		b.listener.Close()
		b.listener = nil
	}
	if b.listener == nil && c.listen != "" {
		listener, err := net.Listen("tcp", c.listen)
		if err != nil {
			return fmt.Errorf("cannot listen on %s, the listener's address: %w", c.listen, err)
		}
		b.listener = listener
		b.connections.Go(func() { b.serve(listener) })
	}
	b.config = c
	slog.Info("The configuration is used", "listen", c.listen, "endpoints", c.endpoints, "health", c.health)
	return nil
}

// check notes which endpoints are healthy, all at once.
func (b *balancer) check(ctx context.Context) {
	b.mu.Lock()
	c := b.config
	b.mu.Unlock()
	results := make([]error, len(c.endpoints))
	var all sync.WaitGroup
	for i, endpoint := range c.endpoints {
		all.Go(func() { results[i] = b.ask(ctx, endpoint, c.health) })
	}
	all.Wait()
	healthy := map[string]bool{}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, endpoint := range c.endpoints {
		healthy[endpoint] = results[i] == nil
		if b.healthy[endpoint] != healthy[endpoint] {
			slog.Info("An endpoint's health has changed", "endpoint", endpoint, "healthy", healthy[endpoint], "err", results[i])
		}
	}
	b.healthy = healthy
}

func (b *balancer) ask(ctx context.Context, endpoint, path string) error {
	if path == "" {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+endpoint+path, nil)
	if err != nil {
		return err
	}
	response, err := b.client.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// turn returns the endpoints that are healthy or not yet checked. The first one is the
// next in turn.
func (b *balancer) turn() (endpoints []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.config.endpoints
	for i := range all {
		endpoint := all[(b.next+i)%len(all)]
		if healthy, checked := b.healthy[endpoint]; healthy || !checked {
			endpoints = append(endpoints, endpoint)
		}
	}
	b.next++
	return endpoints
}

// close ends the listener. Connections are the process', and end with it.
func (b *balancer) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.listener != nil {
		b.listener.Close()
		b.listener = nil
	}
}
