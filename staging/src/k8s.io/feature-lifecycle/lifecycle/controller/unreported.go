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

	"k8s.io/apimachinery/pkg/util/sets"
)

// mostPutOff is how many times in a row unreported puts off a look at everything.
const mostPutOff = 5

// unreported notices changes of who has been silent for too long. It is safe for
// concurrent use.
type unreported struct {
	mu     sync.Mutex
	names  []string
	putOff int
}

// changed records who has not reported, and says whether every feature has to be
// looked at: all of them show it. While very many report that did not, which is
// noticed every few seconds, only the last time counts.
func (u *unreported) changed(names []string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	before, now := sets.New(u.names...), sets.New(names...)
	u.names = names
	reported := before.Difference(now).Len()
	if before.IsSuperset(now) && len(names) > 0 && reported > manyReports && u.putOff < mostPutOff {
		u.putOff++
		return false
	}
	late := u.putOff > 0
	u.putOff = 0
	return late || !before.Equal(now)
}
