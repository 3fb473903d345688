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

package storage

import (
	"sync"
	"time"
)

const (
	// countPeriod is the time for which a count of an identity's reports is cached.
	// All kube-proxies are one identity. When a large cluster starts, counting the
	// reports of 5,000 for each new one would cost more than all else.
	countPeriod = time.Second
	// countShare is the part of the counted room that is given away before the next
	// count: an eighth. Each server caches a count of its own, so up to eight servers
	// together do not exceed the room within a second. With nearly no room left, each
	// report is counted.
	countShare = 8
)

// counts remembers how many reports identities have. It is safe for concurrent use.
type counts struct {
	mu     sync.Mutex
	counts map[countKey]*counted
}

// countKey is an identity in a namespace, and one of the kinds of reports that are
// counted apart.
type countKey struct {
	namespace, username string
	onNode              bool
}

// counted is the result of a count, and the reports created since.
type counted struct {
	// at is the time at which the count began, zero before the first has
	// ended.
	at time.Time
	// count is the number of reports counted and created since.
	count int
	// left is the number of reports that may be created before the next count.
	left int
	// counting is the number of counts in progress.
	counting int
	// came is the number of reports created since the first of these began.
	came int
}

// add returns whether an identity has room for one more report, and how many it has
// without it. Count counts them, if the cached count is old or its share of the room
// is used up. A new report counts immediately. If it is not stored in the end, only
// the next count corrects that.
func (c *counts) add(key countKey, limit int, now time.Time, count func() (int, error)) (n int, room bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.of(key, now)
	if known.left > 0 && !now.Before(known.at) && now.Sub(known.at) < countPeriod {
		return known.take(), true, nil
	}
	before := known.came
	n, err = c.unlocked(known, count)
	if err != nil {
		return 0, false, err
	}
	// Discard a count that started before the one already recorded.
	if !now.Before(known.at) {
		// Reports created in the meantime may have been too late for the
		// count.
		n += known.came - before
		known.at, known.count, known.left = now, n, (limit-n)/countShare
	}
	if known.count >= limit {
		return known.count, false, nil
	}
	return known.take(), true, nil
}

// unlocked runs count without the lock, so other requests may count and add
// meanwhile.
func (c *counts) unlocked(known *counted, count func() (int, error)) (int, error) {
	known.counting++
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		known.counting--
	}()
	return count()
}

// of returns the entry of an identity. If there is none, it removes old entries of
// others and adds one.
func (c *counts) of(key countKey, now time.Time) *counted {
	if known := c.counts[key]; known != nil {
		return known
	}
	if c.counts == nil {
		c.counts = map[countKey]*counted{}
	}
	for other, known := range c.counts {
		if known.counting == 0 && now.Sub(known.at) >= countPeriod {
			delete(c.counts, other)
		}
	}
	known := &counted{}
	c.counts[key] = known
	return known
}

// take lets one more come, and returns how many there were before.
func (k *counted) take() int {
	k.count++
	k.left--
	k.came++
	return k.count - 1
}
