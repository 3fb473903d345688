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

package e2ekind

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/e2e_kind/kindcluster"
)

// TestTrialsOfCatalogAreThoseOfTests holds the gates of which the catalog says what was seen
// on a node against those that tests turn off there.
func TestTrialsOfCatalogAreThoseOfTests(t *testing.T) {
	tested := map[featuregate.Feature]bool{featuregate.Feature(gate): true}
	for _, use := range slices.Concat(gateUses(), lateGateUses()) {
		tested[use.gate] = true
	}
	for _, trial := range kubeletTrials {
		for gate := range trial.gates {
			tested[gate] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(catalog.Trials)) {
		if seen := catalog.Trials[name].Seen != ""; seen != tested[name] {
			t.Errorf("the catalog says that %s was seen: %t, and a test turns it off on a node: %t", name, seen, tested[name])
		}
		delete(tested, name)
	}
	for name := range tested {
		t.Errorf("a test turns %s off on a node, and the catalog has no Trial of it", name)
	}
}

// TestPageCountsGatesWithPods holds the numbers of docs/kind.md against the tests.
func TestPageCountsGatesWithPods(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(framework.Root(t), "docs", "kind.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d gates are turned off in one start and %d more in a second", len(gateUses()), len(lateGateUses()))
	if !strings.Contains(string(page), want) {
		t.Errorf("docs/kind.md does not have the words %q", want)
	}
}

// TestEndsOfPodsAreThoseOfCatalog holds what tests expect of a running Pod when its gate is
// turned off against what the catalog says.
func TestEndsOfPodsAreThoseOfCatalog(t *testing.T) {
	used := map[featuregate.Feature]bool{}
	for _, use := range slices.Concat(gateUses(), lateGateUses()) {
		used[use.gate] = true
		pods := catalog.Trials[use.gate].Pods
		begins := "runs on"
		switch {
		case use.deleted:
			begins = "is deleted"
		case use.ends != "":
			begins = "ends,"
		}
		if !strings.HasPrefix(pods, begins) {
			t.Errorf("%s: the catalog says that a Pod %q, and the test expects that it %s", use.gate, pods, begins)
		}
		// The object of a Pod that is deleted need not be waited for.
		if waits := strings.Contains(strings.ReplaceAll(pods, "nothing is waited for", ""), "waited for"); waits != use.waits && !use.deleted {
			t.Errorf("%s: the catalog says that a Pod %q, and the test expects that it is waited for: %t", use.gate, pods, use.waits)
		}
		if stuck := strings.Contains(pods, "starts no container of the Pod again"); stuck != use.stuck {
			t.Errorf("%s: the catalog says that a Pod %q, and the test ends its container for that: %t", use.gate, pods, use.stuck)
		}
	}
	for _, trial := range kubeletTrials {
		for gate, expected := range trial.gates {
			// A gateUse of the gate checks the first sentence, where there is one.
			pods := catalog.Trials[gate].Pods
			if _, after, found := strings.Cut(pods, ". "); found && used[gate] {
				pods = after
			}
			if pods != expected {
				t.Errorf("%s: the catalog says that a Pod %q, and the trial %s checks %q", gate, pods, trial.name, expected)
			}
		}
	}
}

// TestPodsRunOwnPrograms checks that no Pod needs a program of an image of kind, which has
// those that kind needs: those of tests are in an image of this repository's own.
func TestPodsRunOwnPrograms(t *testing.T) {
	n := &usedNode{t: t, name: "node", etcd: "registry.k8s.io/etcd:v1"}
	for _, pod := range slices.Concat(n.pods(), n.devicePods()) {
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			program := ""
			if len(container.Command) > 0 {
				program = container.Command[0]
			}
			own := container.Image == kindcluster.ShellImage && program == "sh" || container.Image == "localhost"+program+":v1"
			if !own && (container.Image != n.etcd || program != "/usr/local/bin/etcd") {
				t.Errorf("the Pod %s runs %q of the image %s", pod.Name, program, container.Image)
			}
			if container.ImagePullPolicy != corev1.PullNever {
				t.Errorf("the Pod %s may pull the image %s, which no registry has", pod.Name, container.Image)
			}
		}
	}
}
