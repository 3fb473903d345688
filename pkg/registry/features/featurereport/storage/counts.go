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

package storage

import (
	"sync"
	"time"
)

const (
	// countPeriod is for how long it is believed how many reports an identity has. All
	// kube-proxies are one identity, and counting the reports of 5,000 for each that
	// comes costs more than all else when a large cluster starts.
	countPeriod = time.Second
	// countShare is which part of the room that was counted is given away before it is
	// counted anew: an eighth. Each server believes a number of its own, so up to eight
	// that are asked within a second give away no more than there is. Where there is
	// nearly no room left, each report is counted for.
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

// counted is what was counted at a time, and what has come since.
type counted struct {
	// at is when the counting began, zero before the first has ended.
	at time.Time
	// count is how many there were and have come since.
	count int
	// left is how many more may come before it is counted anew.
	left int
	// counting is how many count now.
	counting int
	// came is how many have come since the first of these began.
	came int
}

// add says whether an identity has room for one more report, and how many it has,
// itself not counted. Count counts them; a number that is old, or of whose room a
// share is gone, is not believed. What comes counts at once: it may not be stored in
// the end, which nobody knows before the next count.
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
	// Who has counted slowly knows less than one who began after him.
	if !now.Before(known.at) {
		// What has come in the meantime may have come too late to be counted.
		n += known.came - before
		known.at, known.count, known.left = now, n, (limit-n)/countShare
	}
	if known.count >= limit {
		return known.count, false, nil
	}
	return known.take(), true, nil
}

// unlocked counts while others may count, and come.
func (c *counts) unlocked(known *counted, count func() (int, error)) (int, error) {
	known.counting++
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		known.counting--
	}()
	return count()
}

// of returns what is known of an identity. If that is nothing, it forgets what is old
// of others.
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
