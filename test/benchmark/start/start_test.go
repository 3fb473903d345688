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

package start

import (
	"testing"
	"time"
)

func TestRatiosAreThoseOfEachRepetition(t *testing.T) {
	found := figures{}
	for _, seconds := range [][2]int{{4, 4}, {10, 5}, {3, 2}} {
		found["cold"+ours] = append(found["cold"+ours], figure{ready: time.Duration(seconds[0]) * time.Second})
		found["cold"+peer] = append(found["cold"+peer], figure{ready: time.Duration(seconds[1]) * time.Second})
	}
	if got := found.ratio("cold", ours, ready); got != 1.5 {
		t.Errorf("the ratio is %v, want 1.5, the middle of 1, 2 and 1.5", got)
	}
}
