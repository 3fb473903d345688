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

package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

// TestKubectlFeature runs the plugin beside kubectl: what the shell completes, what
// it says of a feature and of the processes that use it, and what one user may see.
func TestKubectlFeature(t *testing.T) {
	c := shared.Cluster(t)
	// Each server asks for it when it starts.
	const asked = "APIServerIdentity"
	for _, name := range []string{known, "PodDeletionCost"} {
		c.WaitForFeature(name, "created", func(f *v1alpha1.Feature) bool { return f.Status.State != "" })
	}
	c.WaitForFeature(asked, "used by the server", func(f *v1alpha1.Feature) bool {
		return slices.ContainsFunc(f.Status.Uses, func(use v1alpha1.FeatureUse) bool { return use.Count == 1 })
	})
	user, admin := c.Kubectl("jane", "system:authenticated"), c.Kubectl("")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"names of gates":  {[]string{"feature", "describe", "PodDel"}, "PodDeletionCost\tOn\n:4\n"},
		"more than one":   {[]string{"feature", "describe", "PodDeletionCost", known[:len(known)-3]}, known + "\tOff\n:4\n"},
		"commands":        {[]string{"feature", "upg"}, "upgrade-check\tShow whether a cluster, or what files set, may move to another minor version\n:4\n"},
		"values of flags": {[]string{"feature", "describe", "--output", ""}, "json\nyaml\n:4\n"},
	} {
		if diff := cmp.Diff(test.want, user.Output(t, append([]string{"__complete"}, test.args...)...)); diff != "" {
			t.Errorf("completion of %s (-want +got)\n%s", name, diff)
		}
	}
	if output := user.Output(t, "feature", "describe", known); !strings.Contains(output, known) || !strings.Contains(output, "Off") {
		t.Errorf("kubectl feature describe:\n%s", output)
	}
	// One server runs, and asks for this gate.
	uses := []string{"feature", "uses", asked, "--output=json"}
	var seen struct {
		Unread    string
		Processes []struct {
			Component string
			Alive     *bool
		}
	}
	if err := json.Unmarshal([]byte(admin.Output(t, uses...)), &seen); err != nil {
		t.Fatal(err)
	}
	if len(seen.Processes) != 1 || seen.Processes[0].Component != "kube-apiserver" || !ptr.Deref(seen.Processes[0].Alive, false) {
		t.Errorf("kubectl feature uses: %+v, want one server that is alive", seen)
	}
	if output := user.Output(t, uses...); !strings.Contains(output, "you may not list FeatureReports in kube-system") {
		t.Errorf("kubectl feature uses does not tell a user why there are no processes:\n%s", output)
	}
}
