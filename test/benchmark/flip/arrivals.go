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

package flip

import (
	"sync/atomic"
	"time"

	"k8s.io/kubernetes-features/test/benchmark/measure"
)

// arrivals are when each of some watchers had one change.
type arrivals struct {
	// at are times by number of the watcher, in nanoseconds since 1970, 0 before.
	at   []atomic.Int64
	left atomic.Int64
	// all is closed when all have it.
	all chan struct{}
}

func newArrivals(n int) *arrivals {
	a := &arrivals{at: make([]atomic.Int64, n), all: make(chan struct{})}
	a.left.Store(int64(n))
	return a
}

// note notes that a watcher has the change now. Only the first time counts.
func (a *arrivals) note(number int) {
	if a.at[number].CompareAndSwap(0, time.Now().UnixNano()) && a.left.Add(-1) == 0 {
		close(a.all)
	}
}

// since are the times of all that have it, from a moment on.
func (a *arrivals) since(begun time.Time) *measure.Latencies {
	times := &measure.Latencies{}
	for i := range a.at {
		if at := a.at[i].Load(); at != 0 {
			times.Record(time.Unix(0, at).Sub(begun))
		}
	}
	return times
}

// board has the arrivals of the change that is being made. Watchers write on it from
// their goroutines.
type board struct {
	now atomic.Pointer[change]
}

// change is a change that is being made, and what shows it.
type change struct {
	*arrivals
	value string
}

// anyValue is shown by watchers that do not look at what comes.
const anyValue = ""

// show says that a watcher has a value now.
func (b *board) show(number int, value string) {
	if now := b.now.Load(); now != nil && (value == anyValue || now.value == value) {
		now.note(number)
	}
}
