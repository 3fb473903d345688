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

package disruption

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// underWay is how many goroutines of one kind more there may be at rest: requests and
// timers that are just under way.
const underWay = 5

// connectionPackages begin goroutines for connections, which come and go. How many there
// are in all is bounded more loosely.
var connectionPackages = []string{"net/http.", "golang.org/x/net/http2.", "google.golang.org/grpc/", "crypto/tls."}

func ofConnections(origin string) bool {
	return slices.ContainsFunc(connectionPackages, func(p string) bool { return strings.HasPrefix(origin, p) })
}

var (
	// goroutineGroup begins goroutines with the same stack in a profile, and frame is
	// each of their functions, the last of which they began with.
	goroutineGroup = regexp.MustCompile(`(?m)^(\d+) @ `)
	frame          = regexp.MustCompile(`(?m)^#\t0x[0-9a-f]+\t(\S+?)\+0x`)
)

// countGoroutines counts those of a profile, those that are in code of this repository,
// and adds all by the function that they began with.
func countGoroutines(profile string, origins map[string]int) (all, ours int) {
	for group := range strings.SplitSeq(profile, "\n\n") {
		match := goroutineGroup.FindStringSubmatch(group)
		if match == nil {
			continue
		}
		n, _ := strconv.Atoi(match[1])
		all += n
		if strings.Contains(group, "k8s.io/feature-lifecycle/") || strings.Contains(group, "k8s.io/kubernetes-features/") {
			ours += n
		}
		if frames := frame.FindAllStringSubmatch(group, -1); len(frames) > 0 {
			origins[frames[len(frames)-1][1]] += n
		}
	}
	return all, ours
}
