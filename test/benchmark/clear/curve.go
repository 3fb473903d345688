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

package clear

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/kubernetes-features/test/benchmark/measure"
)

const (
	// from and to are the marks between which the rate is steady: the shares of
	// all objects that are written.
	from, to = 0.02, 0.98
	// followPatience is how long after the end it takes at most to see that.
	followPatience = 5 * time.Second
)

// curve is the time at which a method's writes reached the marks. Etcd tells: each object is counted
// when it is written for the first time since it was loaded, and nothing else is.
type curve struct {
	from, to time.Time
	done     chan error
}

// follow watches the objects in etcd until the second mark or until the context ends,
// and calls the functions at the marks.
func follow(ctx context.Context, w *world, n int, first, last func()) (*curve, error) {
	before, err := measure.DatabaseOf(ctx, w.Etcd)
	if err != nil {
		return nil, err
	}
	c := &curve{done: make(chan error, 1)}
	events := w.Etcd.Watch(clientv3.WithRequireLeader(ctx), prefix, clientv3.WithPrefix(), clientv3.WithRev(before.Revision+1), clientv3.WithFilterDelete())
	go func() { c.done <- c.follow(events, n, first, last) }()
	return c, nil
}

func (c *curve) follow(events clientv3.WatchChan, n int, first, last func()) error {
	written := 0
	for response := range events {
		if err := response.Err(); err != nil {
			return fmt.Errorf("watching the objects in etcd: %w", err)
		}
		for _, event := range response.Events {
			// Loading made the first version.
			if event.Kv.Version == 2 {
				written++
			}
		}
		share := float64(written) / float64(n)
		if share >= from && c.from.IsZero() {
			c.from = time.Now()
			first()
		}
		// One answer may have all of few objects.
		if share >= to {
			c.to = time.Now()
			last()
			return nil
		}
	}
	return fmt.Errorf("%d of %d objects were written", written, n)
}

// wait returns once the curve is whole. All has been written, so that is soon, or
// never: then it stops to follow.
func (c *curve) wait(stop context.CancelFunc) error {
	defer time.AfterFunc(followPatience, stop).Stop()
	err := <-c.done
	if c.from.IsZero() || !c.to.After(c.from) {
		return errors.Join(err, fmt.Errorf("the writes of %.0f %% to %.0f %% of the objects were not seen", 100*from, 100*to))
	}
	return nil
}
