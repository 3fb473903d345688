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

package tracker

import (
	"testing"
	"time"
)

func TestLeaseTimeout(t *testing.T) {
	seconds := func(s int32) *int32 { return &s }
	for name, test := range map[string]struct {
		seconds *int32
		want    time.Duration
	}{
		"it does not say":             {nil, MaxLeaseTimeout},
		"nonsense":                    {seconds(0), MaxLeaseTimeout},
		"less than nothing":           {seconds(-5), MaxLeaseTimeout},
		"shorter":                     {seconds(15), 15 * time.Second},
		"kube-apiserver's identities": {seconds(3600), MaxLeaseTimeout},
	} {
		if got := LeaseTimeout(test.seconds); got != test.want {
			t.Errorf("%s: LeaseTimeout is %s, want %s", name, got, test.want)
		}
	}
}
