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

package clear

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"k8s.io/kubernetes-features/test/scale/measure"
)

const (
	// from and to are the marks between which the rate is steady: the shares of
	// all objects that are written. What else is written, by servers about
	// themselves, is far below them.
	from, to = 0.02, 0.98
	// followPeriod is how often etcd is asked for its revision.
	followPeriod = 50 * time.Millisecond
	// followPatience is how long after the end it takes at most to see that.
	followPatience = 5 * time.Second
)

// curve is when a method's writes reached the marks. Etcd's revision tells, which
// grows by one with each; the foreground's own are taken off.
type curve struct {
	from, to time.Time
	done     chan error
}

// follow watches the revision until the second mark or until the context ends, and
// calls the functions at the marks.
func follow(ctx context.Context, w *world, n int, first, last func()) (*curve, error) {
	before, err := measure.DatabaseOf(ctx, w.Etcd)
	if err != nil {
		return nil, err
	}
	// What is under way may be in the revision already and must not be taken off
	// later: with few objects, the last mark would never be reached.
	others, underWay := w.foreground.Writes()
	c := &curve{done: make(chan error, 1)}
	go func() {
		c.done <- wait.PollUntilContextCancel(ctx, followPeriod, true, func(ctx context.Context) (bool, error) {
			now, err := measure.DatabaseOf(ctx, w.Etcd)
			if err != nil {
				return false, err
			}
			succeeded, _ := w.foreground.Writes()
			written := float64(now.Revision-before.Revision-max(0, succeeded-others-underWay)) / float64(n)
			if written >= from && c.from.IsZero() {
				c.from = time.Now()
				first()
			}
			if written >= to && c.to.IsZero() {
				c.to = time.Now()
				last()
			}
			return !c.to.IsZero(), nil
		})
	}()
	return c, nil
}

// wait returns once the curve is whole. All has been written, so that is soon, or
// never: then it stops to follow.
func (c *curve) wait(stop context.CancelFunc) error {
	defer time.AfterFunc(followPatience, stop).Stop()
	err := <-c.done
	if c.from.IsZero() || !c.to.After(c.from) {
		return errors.Join(err, fmt.Errorf("fewer writes than objects: etcd's revision did not pass %.0f %% of them", 100*to))
	}
	return nil
}
