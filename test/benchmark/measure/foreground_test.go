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

package measure

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestRequestsBelongToTheWindowInWhichTheyWereSent has one request, which is answered in the
// window after the one in which it was sent.
func TestRequestsBelongToTheWindowInWhichTheyWereSent(t *testing.T) {
	arrived, answer := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-answer
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	f := &Foreground{client: kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL}), period: time.Hour, now: newForegroundWindow()}
	var ctx context.Context
	ctx, f.stop = context.WithCancel(t.Context())
	defer f.Stop()
	f.done.Go(func() { f.run(ctx) })
	<-arrived
	sent := f.Take()
	waited := make(chan ForegroundStats)
	go func() { waited <- sent.Wait() }()
	close(answer)
	if got := <-waited; got.All.Count() != 1 || got.By[OpGet].Count() != 1 || got.Refused() != 1 || got.All.Max() < ForegroundTimeout {
		t.Errorf("the window in which the request was sent has %+v", got)
	}
	if got := f.Take().Wait(); got.All.Count() != 0 || got.Failed() != 0 {
		t.Errorf("the window in which it was answered has %+v", got)
	}
}
