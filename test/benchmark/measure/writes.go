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
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// Where etcd has what this system stores.
const (
	ReportsPrefix  = "/registry/featurereports/"
	FeaturesPrefix = "/registry/features/"
	// LeasesPrefix is that of Leases of reporters other than servers; nodes have none.
	LeasesPrefix = "/registry/leases/" + v1alpha1.LeaseNamespace + "/"
)

// foregroundPrefix is where etcd has what the foreground writes, which is not counted.
const foregroundPrefix = "/registry/configmaps/" + foregroundNamespace + "/"

var errWatchEnded = errors.New("the watch ended at once")

// Writes counts what is written to etcd, by prefix, but for the foreground's own.
type Writes struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	counts map[string]int
	total  int
	err    error
}

// CountWrites counts writes from now on until Stop is called.
func CountWrites(ctx context.Context, etcd *clientv3.Client) (*Writes, error) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	w := &Writes{cancel: cancel, counts: map[string]int{}}
	responses := etcd.Watch(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	if created, ok := <-responses; !ok || created.Err() != nil {
		defer cancel()
		return nil, fmt.Errorf("watching etcd: %w", cmp.Or(created.Err(), ctx.Err(), errWatchEnded))
	}
	w.done.Go(func() {
		for response := range responses {
			w.mu.Lock()
			if response.Err() != nil && ctx.Err() == nil {
				w.err = response.Err()
			}
			for _, event := range response.Events {
				if strings.HasPrefix(string(event.Kv.Key), foregroundPrefix) {
					continue
				}
				w.total++
				for _, prefix := range []string{ReportsPrefix, FeaturesPrefix, LeasesPrefix} {
					if strings.HasPrefix(string(event.Kv.Key), prefix) {
						w.counts[prefix]++
					}
				}
			}
			w.mu.Unlock()
		}
	})
	return w, nil
}

// Written is what was written to etcd: of reports, Features and Leases of reporters, and
// in all.
type Written struct {
	Reports, Features, Leases, Writes int
}

func (w Written) with(o Written) Written {
	return Written{Reports: w.Reports + o.Reports, Features: w.Features + o.Features, Leases: w.Leases + o.Leases, Writes: w.Writes + o.Writes}
}

// Take returns the writes since the last time.
func (w *Writes) Take() (Written, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := Written{Reports: w.counts[ReportsPrefix], Features: w.counts[FeaturesPrefix], Leases: w.counts[LeasesPrefix], Writes: w.total}
	clear(w.counts)
	w.total = 0
	return taken, w.err
}

// Stop ends the counting.
func (w *Writes) Stop() {
	w.cancel()
	w.done.Wait()
}
