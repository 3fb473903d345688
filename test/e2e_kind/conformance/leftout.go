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

package conformance

import (
	"slices"
	"strings"
)

// unable are specs that cannot run in some places. They are left out, and listed.
var unable = []Row{
	{`PrivilegedPod`, "the kernel has no dummy network devices", func(p Place) bool { return !p.DummyDevices }},
	{`Sample API Server`, "the image sample-apiserver is missing", missing("e2e-test-images/sample-apiserver:")},
	{`Update Demo`, "the image nautilus is missing", missing("e2e-test-images/nautilus:")},
}

// knownFailures are specs that run and fail on both clusters.
var knownFailures = []Row{
	{`read only busybox container should not write to root filesystem`,
		"expects the words of busybox's shell, in whose place images made here have bash: that of Debian's busybox keeps variables from commands whose names are none of a shell",
		madeHere},
}

// madeHere is true where images are made, in place of those that cannot be pulled.
func madeHere(p Place) bool { return len(p.Missing) > 0 }

// missing is true where an image is, whose name has this part.
func missing(part string) func(Place) bool {
	return func(p Place) bool {
		return slices.ContainsFunc(p.Missing, func(name string) bool { return strings.Contains(name, part) })
	}
}
