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

package main

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/ahead"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

func TestKnownChanges(t *testing.T) {
	at := utilversion.MustParse("1.37")
	next := at.AddMinor(1).String()
	alpha := featuregate.VersionedSpecs{{Version: at, PreRelease: featuregate.Alpha}}
	on := featuregate.VersionedSpecs{{Version: at, PreRelease: featuregate.Beta, Default: true}}
	release := &ahead.Release{
		Modules: []ahead.Module{{Path: "k8s.io/kubernetes", Version: "v" + next + ".0-rc.1"}},
		Gates: []ahead.Gate{
			{Name: "Flips", Specs: []ahead.Spec{{Version: next, Stage: "Beta", Default: true}}},
			{Name: "Locked", Specs: []ahead.Spec{{Version: next, Stage: "GA", Default: true, Locked: true}}},
			{Name: "Same", Specs: []ahead.Spec{{Version: next, Stage: "Beta", Default: true}}},
		},
	}
	entries := []catalog.Entry{
		{Feature: lifecycle.Feature{Name: "Flips"}}, {Feature: lifecycle.Feature{Name: "Locked"}, Stateless: "none"},
	}
	text, err := nextVersion(release, entries, map[featuregate.Feature]featuregate.VersionedSpecs{"Flips": alpha, "Locked": on, "Same": on, "Vanishes": on}, at)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`
## Known to change in %[2]s

What `+"`v%[2]s.0-rc.1`"+` has, a release candidate: it may still change, and so may its defaults. `+"`make update-ahead`"+` reads the
gates out of upstream's modules. Nothing is known here of what else the version changes, such as APIs that it removes.
Before an upgrade, `+"`kubectl feature upgrade-check`"+` [finds what of this matters to a cluster](upgrade.md#the-version-after-that).

### Changed in %[2]s

| gate | %[1]s | %[2]s | here |
| --- | --- | --- | --- |
| `+"`Flips`"+` | alpha, off by default | beta, on by default | [leaves something](#flips) |
| `+"`Locked`"+` | beta, on by default | generally available, locked on | leaves nothing |

### Removed in %[2]s

| gate | %[1]s | %[2]s | here |
| --- | --- | --- | --- |
| `+"`Vanishes`"+` | beta, on by default | not there |  |

### New in %[2]s

None.
`, at, next)
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
