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
	"slices"

	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

// OfServers returns the server that leads a feature: the first by rendezvous hashing
// among the live servers that know the gate or, when none does, among all that report.
// Servers whose controller has stopped are left out. If all that know the gate have
// stopped, no server leads: the others lack the tasks of the feature.
func OfServers(feature string, servers []tracker.Server) string {
	knows := func(s tracker.Server) bool { return s.Knows }
	if slices.ContainsFunc(servers, knows) {
		servers = slices.DeleteFunc(slices.Clone(servers), func(s tracker.Server) bool { return !knows(s) })
	}
	return Of(feature, Candidates(servers))
}

// Candidates returns the IDs of the servers that may lead something: they report, and run
// the controller. A server that does not report runs no controller either.
func Candidates(servers []tracker.Server) []string {
	var ids []string
	for _, server := range servers {
		if server.Reported && !server.ControllerStopped {
			ids = append(ids, server.ID)
		}
	}
	return ids
}
