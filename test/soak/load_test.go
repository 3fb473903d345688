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

package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// read reads something through one of the servers, as clients do.
func (w *world) read(ctx context.Context, random *rand.Rand) error {
	s := w.any(random)
	features, reports := s.features.FeaturesV1alpha1().Features(systemNS), s.features.FeaturesV1alpha1().FeatureReports(systemNS)
	var err error
	switch random.IntN(6) {
	case 0:
		_, err = features.Get(ctx, static, metav1.GetOptions{})
	case 1:
		_, err = features.List(ctx, metav1.ListOptions{})
	case 2:
		_, err = features.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	case 3:
		_, err = reports.List(ctx, metav1.ListOptions{Limit: 50})
	case 4:
		_, err = s.kube.AppsV1().StatefulSets(objectNS).List(ctx, metav1.ListOptions{Limit: 100})
	default:
		_, err = s.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	}
	return w.outcome("read", err)
}

// watch watches for a moment.
func (w *world) watch(ctx context.Context, random *rand.Rand) error {
	s := w.any(random)
	timeout := int64(1 + random.IntN(10))
	options := metav1.ListOptions{TimeoutSeconds: &timeout}
	var watching watch.Interface
	var err error
	switch random.IntN(3) {
	case 0:
		watching, err = s.features.FeaturesV1alpha1().Features(systemNS).Watch(ctx, options)
	case 1:
		watching, err = s.features.FeaturesV1alpha1().FeatureReports(systemNS).Watch(ctx, options)
	default:
		watching, err = s.kube.AppsV1().StatefulSets(objectNS).Watch(ctx, options)
	}
	if err == nil {
		// Some let the server end it, others end it themselves.
		ended := time.After(between(random, 0, 15*time.Second))
		for open := true; open; {
			select {
			case event, ok := <-watching.ResultChan():
				open = ok
				if event.Type == watch.Error {
					err = apierrors.FromObject(event.Object)
				}
			case <-ended:
				open = false
			}
		}
		watching.Stop()
	}
	return w.outcome("watch", err)
}

// write writes something that has nothing to do with features.
func (w *world) write(ctx context.Context, random *rand.Rand) error {
	maps := w.any(random).kube.CoreV1().ConfigMaps(objectNS)
	name := fmt.Sprintf("soaked-%d", random.IntN(50))
	patch := fmt.Sprintf(`{"data":{"some":"%d"}}`, random.IntN(1000))
	_, err := maps.Patch(ctx, name, mergePatch, []byte(patch), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{soaked: "true"}}}, metav1.CreateOptions{})
	}
	return w.outcome("write", err)
}

// outcome counts what became of a request. An answer that no fault explains is an
// error.
func (w *world) outcome(what string, err error) error {
	kind, bad := w.stats.classify(err)
	w.stats.count(outcomePrefix + kind)
	if bad {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// outcomePrefix begins what is counted of requests.
const outcomePrefix = "requests: "

// stats counts. It is safe for concurrent use.
type stats struct {
	mu     sync.Mutex
	counts map[string]int
	// away is when etcd was away last; zero time for never, and the future while
	// it is.
	away time.Time
	// longest is the longest time until all states were as configured, and right
	// until the uses were right.
	longest, right time.Duration
	// transitions that were seen, by feature.
	transitions map[string]int
	// leftovers are those in the end, by kind; nil before.
	leftovers map[string][]string
	// retained are the reports of processes that crashed within the last hour.
	retained int
	// missed is how many versions of Features were not seen.
	missed atomic.Int64
}

func newStats() *stats { return &stats{counts: map[string]int{}, transitions: map[string]int{}} }

func (s *stats) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

// storeAway says that etcd goes away, and that it is back.
func (s *stats) storeAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = time.Now()
	if away {
		s.away = s.away.Add(time.Hour)
	}
}

// storeTrouble is true while etcd is away or was lately: answers may be late.
func (s *stats) storeTrouble() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.away.IsZero() && time.Since(s.away) < 30*time.Second
}

// classify names an answer; bad is true for one that no fault explains.
func (s *stats) classify(err error) (kind string, bad bool) {
	status := apierrors.APIStatus(nil)
	switch {
	case err == nil:
		return "done", false
	case errors.As(err, &status):
		return s.classifyStatus(status.Status(), err)
	case utilnet.IsConnectionRefused(err):
		return "refused (no server)", false
	case utilnet.IsTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return "timed out (frozen server)", false
	case utilnet.IsConnectionReset(err), utilnet.IsProbableEOF(err), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), utilnet.IsHTTP2ConnectionLost(err),
		strings.Contains(err.Error(), "http2: "):
		return "connection lost (server ended)", false
	case errors.Is(err, context.Canceled):
		return "given up", false
	default:
		return "not understood", true
	}
}

func (s *stats) classifyStatus(status metav1.Status, err error) (kind string, bad bool) {
	kind = fmt.Sprintf("%d %s", status.Code, status.Reason)
	switch status.Code {
	case http.StatusNotFound, http.StatusConflict, http.StatusGone, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return kind, false
	case http.StatusInternalServerError:
		// What etcd's client says while etcd is away, upstream's storage passes on
		// as a 500, for every resource.
		for _, text := range []string{"rpc error", "etcdserver:", "context deadline exceeded", "client connection", "connection error"} {
			if strings.Contains(err.Error(), text) {
				return kind + " (of etcd's client)", !s.storeTrouble()
			}
		}
		return kind, true
	default:
		// Admission says so while a server starts.
		return kind, status.Code != http.StatusForbidden || !strings.Contains(err.Error(), "not yet ready to handle request")
	}
}

// passes is true for an error that another attempt may not meet.
func (s *stats) passes(err error) bool {
	kind, bad := s.classify(err)
	s.count(outcomePrefix + kind)
	return !bad
}

// closeIdle closes connections that a server and this process keep for later.
func closeIdle(s server) {
	for _, client := range []rest.Interface{s.kube.CoreV1().RESTClient(), s.features.FeaturesV1alpha1().RESTClient()} {
		if c, ok := client.(*rest.RESTClient); ok && c.Client != nil {
			c.Client.CloseIdleConnections()
		}
	}
}
