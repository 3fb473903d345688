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

package controller

import (
	"sync"
	"time"
)

// ledFeatures holds since when this server leads each feature it leads. Decisions
// depend on it (transition.View.WatchingSince). It is safe for concurrent use.
type ledFeatures struct {
	mu     sync.Mutex
	sinces map[string]time.Time
}

func newLedFeatures() *ledFeatures { return &ledFeatures{sinces: map[string]time.Time{}} }

// since returns since when this server leads a feature: now, if it does not yet.
func (l *ledFeatures) since(name string, now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if since, ok := l.sinces[name]; ok {
		return since
	}
	return now
}

// take records that this server leads a feature, from now on unless it already does.
func (l *ledFeatures) take(name string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.sinces[name]; !ok {
		l.sinces[name] = now
	}
}

// forget records that this server no longer leads a feature.
func (l *ledFeatures) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sinces, name)
}
