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

package queried

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// TestMain runs a component when the executable has its name.
func TestMain(m *testing.M) {
	name := filepath.Base(os.Args[0])
	if main, ok := components()[name]; ok {
		os.Exit(run(name, main))
	}
	os.Exit(framework.Isolate(m))
}

func TestLayerSeesAllQueries(t *testing.T) {
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Setenv(recordsDir, dir)
	names := map[string]string{
		localcluster.APIServer: "kube-apiserver", localcluster.ControllerManager: "kube-controller-manager", localcluster.Scheduler: "kube-scheduler",
		localcluster.Kubelet("node-1"): "kubelet", localcluster.Proxy("node-1"): "kube-proxy",
	}
	binaries := map[string]string{}
	for component, name := range names {
		binaries[component] = filepath.Join(dir, name)
		if err := os.Symlink(executable, binaries[component]); err != nil {
			t.Fatal(err)
		}
	}
	framework.Start(t, localcluster.Config{Nodes: 1, RealNodes: true, NodeIP: framework.NodeIP(), Binaries: binaries})
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			var r record
			// What is asked at the start is enough; more may come while it runs.
			var data []byte
			framework.Eventually(t, "the first record", func() error {
				var err error
				data, err = os.ReadFile(filepath.Join(dir, name+".json"))
				return err
			})
			if err := json.Unmarshal(data, &r); err != nil {
				t.Fatal(err)
			}
			t.Logf("upstream recorded %d features, the layer %d", len(r.Upstream), len(r.Layer))
			if len(r.Upstream) < 10 {
				t.Errorf("upstream recorded %v only", r.Upstream)
			}
			for _, feature := range r.Upstream {
				if !slices.Contains(r.Layer, feature) {
					t.Errorf("%s was asked for past the layer", feature)
				}
			}
		})
	}
}
