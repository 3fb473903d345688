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

package gates

import (
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
	"k8s.io/feature-lifecycle/lifecycletest"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// TestOlderVersionTurnsOff uses all features that are on by default in a cluster of this
// version, then has its servers emulate an older version in which they are off by default
// or do not exist. The features go off by that alone, and leave nothing.
func TestOlderVersionTurnsOff(t *testing.T) {
	versions, err := catalog.EmulatedVersions()
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range versions[1:] {
		t.Run(version.String(), func(t *testing.T) {
			var entries []catalog.Entry
			var all []*lifecycletest.Case
			specs := utilfeature.DefaultFeatureGate.DeepCopy().GetAllVersioned()
			for _, entry := range catalog.All() {
				if versionskew.SpecAt(specs[entry.Name], versions[0]).Default && !versionskew.SpecAt(specs[entry.Name], version).Default {
					entries = append(entries, entry)
					all = append(all, newCase(t, entry))
				}
			}
			if len(entries) == 0 {
				t.Fatalf("no feature that is on in %s is off in %s", versions[0], version)
			}
			t.Logf("%d features are on in %s and off in %s: %v", len(entries), versions[0], version, names(entries))
			older := serversWith("--emulated-version=" + version.String())
			passage{
				entries: entries, all: all, turns: [][]*lifecycletest.Case{all}, begin: older, on: serversWith(),
				off:  func(*world, []*lifecycletest.Case) map[string][]string { return older },
				gone: entries,
			}.run(t)
		})
	}
}

// serversWith returns arguments of servers: those that all tests have, and more.
func serversWith(more ...string) map[string][]string {
	arguments := gates{}.arguments()
	for _, component := range []string{localcluster.APIServer, localcluster.ControllerManager, localcluster.Scheduler} {
		arguments[component] = append(arguments[component], more...)
	}
	return arguments
}
