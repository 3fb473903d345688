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

package controller

import (
	"sync"

	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

// mostPutOff is how many times in a row unreported puts off a look at everything.
const mostPutOff = 5

// unreported notices changes of who has been silent for too long. It is safe for
// concurrent use.
type unreported struct {
	mu sync.Mutex
	// versions are those of who is silent, by <component>/<name>.
	versions map[string]string
	putOff   int
}

// changed records who of those that are silent should have reported by now, and says
// whether every feature has to be looked at: all of them show it. While very many
// report that did not, which is noticed every few seconds, or one after the other is
// upgraded, only the last time counts.
func (u *unreported) changed(silent []tracker.Instance) bool {
	now := map[string]string{}
	for i := range tracker.Each(silent) {
		if !i.Reported && !i.Starting {
			now[i.Component+"/"+i.Name] = i.Version
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	came, reported, upgraded := 0, len(u.versions), 0
	for name, version := range now {
		before, known := u.versions[name]
		if !known {
			came++
			continue
		}
		reported--
		if before != version {
			upgraded++
		}
	}
	u.versions = now
	several := reported > manyReports && len(now) > 0 || reported == 0 && upgraded > 0
	if came == 0 && several && u.putOff < mostPutOff {
		u.putOff++
		return false
	}
	late := u.putOff > 0
	u.putOff = 0
	return late || came+reported+upgraded > 0
}
