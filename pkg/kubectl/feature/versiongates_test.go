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

package feature

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
)

// withoutCluster runs commands that may not ask for a cluster, and writes them with what they printed.
func withoutCluster(t *testing.T, commands ...string) string {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var all strings.Builder
	for _, command := range commands {
		var out bytes.Buffer
		b := newBase(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out})
		b.connect = func(*rest.Config) (versioned.Interface, error) { return nil, fmt.Errorf("%s connects", command) }
		b.connectCore = func(*rest.Config) (kubernetes.Interface, error) { return nil, fmt.Errorf("%s connects", command) }
		code := b.run(t.Context(), strings.Fields(command))
		fmt.Fprintf(&all, "$ kubectl feature %s\n%s[exit code %d]\n\n", command, out.String(), code)
	}
	return all.String()
}

// TestGates prints histories that are over, which later releases do not change.
func TestGates(t *testing.T) {
	golden(t, "gates.txt", withoutCluster(t,
		"gates SidecarContainers",
		"gates DevicePluginCDIDevices feature/KubeProxyDrainingTerminatingNodes --component=kube-proxy -o wide",
		"gates WatchListClient --no-headers",
		"gates WatchListClient --version=1.34",
		"gates DRAPartitionableDevices --version=1.35 --component=kube-scheduler -o wide",
		"gates DRAPartitionableDevices --version=1.35 -o yaml",
		"gates --version=1.31 --component=kubeadm",
		"gates --version=1.34 --component=client-go -o name",
		"gates SidecarContainers WatchListClient -o name",
		"gates --version=1.29 --component=client-go",
		"gates SidecarContainer watchlist Nothing",
		"gates SidecarContainers --version=1.37",
		"gates SidecarContainers --component=kubeadm",
		"gates WatchListClient --version=1.29 --component=client-go",
		"gates --version=1.36.3",
		"gates --component=kubelets",
		"gates --component=",
		"gates -o table",
		"__complete gates SidecarC",
		"__complete gates --component=kube-",
		"__complete gates --version=1.3",
	))
}

// TestGatesForPrograms: the history of a gate is as in the published data.
func TestGatesForPrograms(t *testing.T) {
	text := withoutCluster(t, "gates SidecarContainers WatchListClient --component=kube-controller-manager -o json")
	_, text, _ = strings.Cut(text, "\n")
	text, _, _ = strings.Cut(text, "[exit code 0]")
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	var got gateHistory
	if err := decoder.Decode(&got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if got.Kind != "GateHistory" || got.APIVersion != gatesVersion || len(got.Items) != 2 || len(got.Source) != len(history.Load().Versions()) {
		t.Fatalf("unexpected list: %s", text)
	}
	for _, g := range got.Items {
		want, _ := history.Load().Gate(g.Name)
		i := slices.IndexFunc(want.Tracks, func(t history.Track) bool { return slices.Contains(t.Components, history.KubeControllerManager) })
		if diff := cmp.Diff([]history.Track{{Components: []string{history.KubeControllerManager}, Changes: want.Tracks[i].Changes}}, g.Tracks); diff != "" {
			t.Errorf("%s (-data +printed):\n%s", g.Name, diff)
		}
	}
}

// TestGatesOfTheNewestRelease lists the newest version without names: not that of a pre-release.
func TestGatesOfTheNewestRelease(t *testing.T) {
	text := withoutCluster(t, "gates -o json")
	_, text, _ = strings.Cut(text, "\n")
	text, _, ok := strings.Cut(text, "[exit code 0]")
	var list gateList
	if err := json.Unmarshal([]byte(text), &list); err != nil || !ok {
		t.Fatalf("%v: %s", err, text)
	}
	if strings.Contains(list.Source, "-") || !strings.HasPrefix(list.Source, "v"+list.Version+".") || history.Load().Source(list.Version) != list.Source {
		t.Errorf("the list is of %s", list.Source)
	}
	names := map[string]bool{}
	for _, g := range list.Items {
		names[g.Name] = true
	}
	for _, g := range history.Load().Gates() {
		known := slices.ContainsFunc(g.Components(), func(c string) bool {
			_, ok := g.At(c, list.Version)
			return ok
		})
		if known != names[g.Name] {
			t.Errorf("%s is known: %t, and listed: %t", g.Name, known, names[g.Name])
		}
	}
}
