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

package leader

import (
	"testing"

	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

// TestOfServers: servers that report and run a flow may lead, and of them those that know
// the gate if any server does.
func TestOfServers(t *testing.T) {
	knows := tracker.Server{ID: "s1", Reported: true, Knows: true}
	plain := tracker.Server{ID: "s2", Reported: true}
	missing := tracker.Server{ID: "s3"}
	ended := tracker.Server{ID: "s4", Reported: true, Knows: true, ControllerStopped: true}
	for sentence, test := range map[string]struct {
		servers []tracker.Server
		leads   string
	}{
		"one that knows the gate":               {[]tracker.Server{knows, plain, missing}, "s1"},
		"no server knows the gate":              {[]tracker.Server{plain, missing}, "s2"},
		"the flow of another has ended":         {[]tracker.Server{ended, knows}, "s1"},
		"those that know the gate have no flow": {[]tracker.Server{ended, plain}, ""},
		"none that reports, and none at all":    {[]tracker.Server{missing}, ""},
	} {
		if got := OfServers("A", test.servers); got != test.leads {
			t.Errorf("%s: %q leads, want %q to", sentence, got, test.leads)
		}
	}
}
