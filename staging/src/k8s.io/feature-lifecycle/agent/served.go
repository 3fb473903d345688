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

package agent

import (
	"context"
	"sync"
	"time"

	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/klog/v2"
)

// served holds whether the server accepts reports. It is safe for concurrent use.
type served struct {
	mu      sync.Mutex
	is      bool
	changed chan struct{}
}

func (s *served) get() (is bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.is, s.changed
}

func (s *served) set(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.is == is {
		return
	}
	s.is = is
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Reporting returns true if the server has accepted a report of this process and, as far as
// known, still has the API. It is false before the first report, and again when a server
// without the API replaces one that had it. A controller of the API may stop until it is
// true. A server that is down or fails changes nothing. The channel is closed when the
// result has changed.
func (r *Reporter) Reporting() (reporting bool, changed <-chan struct{}) { return r.served.get() }

// suspend stops renewing the Lease when the server does not have the API any more: no
// controller there checks whether this process is alive. When the server has the API again,
// the process starts as with its first report, because a controller may act on a report
// with an expired Lease: the Lease comes first.
func (r *Reporter) suspend() {
	r.served.set(false)
	if !r.confirmed || r.config.LeaseNamespace == "" {
		return
	}
	r.stopRenewing()
	r.renewing.Wait()
	r.confirmed, r.written = false, nil
}

// finish returns the pause after a write or a check. After a failure, only Retry shortens
// it.
func (r *Reporter) finish(ctx context.Context, err error) time.Duration {
	if err == nil {
		requestsTotal.WithLabelValues(resultDone).Inc()
		r.served.set(true)
		if r.logged != "" {
			klog.FromContext(ctx).Info("Reporting feature gates again", "featureReport", klog.KRef(r.config.Namespace, r.name))
		}
		r.failures, r.rejections, r.logged, r.retryAt = 0, 0, "", time.Time{}
		if r.ownerless() {
			return ownerPeriod + backoff.Jitter(ownerPeriod)
		}
		// News wakes Run earlier.
		return r.checkPeriod() + backoff.Jitter(r.checkPeriod()/10)
	}
	pause := r.failure(ctx, err)
	r.retryAt = r.config.Clock.Now().Add(pause)
	return pause
}
