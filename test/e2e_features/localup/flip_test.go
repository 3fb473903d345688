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

package localup

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/examplegates"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// promise is how soon a value that is changed through the API is in all reports,
// as docs/central-and-dynamic.md says. It is measured here; what makes the test fail is
// framework.Patience, since the machine may be busy.
const promise = 2 * time.Second

// flips is how often the value is changed.
const flips = 10

// values are what processes say of a feature that they have asked for, by the names
// of their reports.
func values(reports []v1alpha1.FeatureReport, feature string) map[string]bool {
	found := map[string]bool{}
	for _, r := range reports {
		for _, f := range r.Spec.Features {
			if f.Name == feature && f.Queried {
				found[r.Name] = f.Enabled
			}
		}
	}
	return found
}

// TestAFlipIsInAllReports: on the cluster of "make up", a dynamic feature is
// turned on and off by a patch, and every live process that asks for it follows.
func TestAFlipIsInAllReports(t *testing.T) {
	t.Parallel()
	// No kubelet queries it: there are no pods.
	const feature = examplegates.Dynamic
	users := []string{localcluster.APIServer, localcluster.ControllerManager, localcluster.Scheduler}
	dir := framework.DataDir(t)
	flags := []string{"--data-dir=" + dir, "--bin-dir=" + framework.BinDir(t)}
	downAtTheEnd(t, flags)
	if output, err := run(t, append([]string{"up"}, flags...)...); err != nil {
		t.Fatalf("local-up up: %v\n%s", err, output)
	}
	c := framework.Connect(t, dir+"/admin.kubeconfig")
	c.WaitForFeature(feature, "dynamic", func(f *v1alpha1.Feature) bool { return f.Status.Control == v1alpha1.ControlDynamic })
	started := c.WaitForReports("of all users of "+feature, func(reports []v1alpha1.FeatureReport) bool {
		return slices.Equal(components(values(reports, feature)), users)
	})
	asking := slices.Sorted(maps.Keys(values(started, feature)))

	worst := map[string]time.Duration{}
	for i := range flips {
		on := i%2 == 0
		begun := time.Now()
		took := map[string]time.Duration{}
		c.Request(feature, fmt.Sprintf(`{"enabled":%t}`, on))
		c.WaitForReports(fmt.Sprintf("in which all have %s=%t", feature, on), func(reports []v1alpha1.FeatureReport) bool {
			for name, value := range values(reports, feature) {
				if _, seen := took[name]; !seen && value == on {
					took[name] = time.Since(begun)
					worst[name] = max(worst[name], took[name])
				}
			}
			return !slices.ContainsFunc(asking, func(name string) bool { _, ok := took[name]; return !ok })
		})
		var line []string
		for _, name := range slices.Sorted(maps.Keys(took)) {
			component, _, _ := strings.Cut(name, ".")
			line = append(line, fmt.Sprintf("%s %s", component, took[name].Round(time.Millisecond)))
		}
		t.Logf("%s=%t is in the reports after: %s", feature, on, strings.Join(line, ", "))
	}
	for name, took := range worst {
		if took > promise {
			t.Logf("NOTE: %s took %s; docs/central-and-dynamic.md promises %s on a machine that is not busy", name, took.Round(time.Millisecond), promise)
		}
	}
	if got := components(worst); !slices.Equal(got, users) {
		t.Errorf("measured for %v, want %v", got, users)
	}
}

// components are those of reports' names, sorted.
func components[V any](reports map[string]V) []string {
	var found []string
	for name := range reports {
		component, _, _ := strings.Cut(name, ".")
		found = append(found, component)
	}
	slices.Sort(found)
	return found
}
