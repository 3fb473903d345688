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

// countPeriod is for how long it is believed how many reports an identity has. All
// kube-proxies are one identity, and counting the reports of 5,000 for each that
// comes costs more than all else when a large cluster starts.
const countPeriod = time.Second

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
	at    time.Time
	count int
}

// add says whether an identity has room for one more report, and how many it has,
// itself not counted. Count counts them; a number that is old, or that leaves no
// room, is not believed. What comes counts at once: it may not be stored in the end,
// which nobody knows before the next count.
func (c *counts) add(key countKey, limit int, now time.Time, count func() (int, error)) (n int, room bool, err error) {
	c.mu.Lock()
	known := c.counts[key]
	if known != nil && !now.Before(known.at) && now.Sub(known.at) < countPeriod && known.count < limit {
		n = known.count
		known.count++
		c.mu.Unlock()
		return n, true, nil
	}
	c.mu.Unlock()
	// Others may count at the same time; that is all.
	if n, err = count(); err != nil {
		return 0, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[countKey]*counted{}
	}
	for other, known := range c.counts {
		if now.Sub(known.at) >= countPeriod {
			delete(c.counts, other)
		}
	}
	room = n < limit
	c.counts[key] = &counted{at: now, count: n + 1}
	return n, room, nil
}
