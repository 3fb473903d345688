/*
Copyright 2026 The Kubernetes Authors.

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

package reporting

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/values"
	"k8s.io/kubernetes-features/pkg/features"
)

func TestWhoTakesValuesFromWhere(t *testing.T) {
	server := kubeconfig(t, "https://server")
	for name, tc := range map[string]struct {
		component           Component
		args                []string
		reportsAs, instance string
		always              bool
		noServer, later     bool
	}{
		"a scheduler":          {component: Component{Name: "kube-scheduler"}, args: []string{"--kubeconfig=" + server}, reportsAs: "kube-scheduler", always: true},
		"a hollow kubelet":     {component: Component{Name: "kubemark", Node: true}, args: []string{"--kubeconfig=" + server, "--morph=kubelet", "--name=n1"}, reportsAs: "kubelet", instance: "n1"},
		"a hollow proxy":       {component: Component{Name: "kubemark", Node: true}, args: []string{"--kubeconfig=" + server, "--morph=proxy", "--name=n1"}, reportsAs: "kube-proxy", instance: "n1"},
		"a kubelet alone":      {component: Component{Name: "kubelet", Node: true}, args: []string{"--hostname-override=n1"}, reportsAs: "kubelet", instance: "n1", noServer: true},
		"outside of a cluster": {component: Component{Name: "kube-scheduler"}, reportsAs: "kube-scheduler", always: true, noServer: true},
		"a kubeconfig to come": {component: Component{Name: "kubelet", Node: true}, args: []string{"--hostname-override=n1", "--kubeconfig=" + server + ".not"}, reportsAs: "kubelet", instance: "n1", later: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &process{component: tc.component, gate: gateWith(t, nil), arguments: parseArguments(tc.args), flags: newValueFlags(tc.component)}
			got, err := p.valuesConfig()
			if err != nil {
				t.Fatal(err)
			}
			if got.Component != tc.reportsAs || (tc.instance != "" && got.Instance != tc.instance) || got.AlwaysWatch != tc.always || got.Namespace != "kube-system" {
				t.Errorf("unexpected configuration %+v", got)
			}
			_, err = got.Connect()
			if errors.Is(err, values.ErrNoServer) != tc.noServer || (err != nil) != (tc.noServer || tc.later) {
				t.Errorf("connecting: %v", err)
			}
			if _, err := values.New(got); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWithTheGateOffNothingIsTaken is S6: no client, no file, no waiting.
func TestWithTheGateOffNothingIsTaken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "values.json")
	if err := os.WriteFile(file, []byte("not touched"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := newValueFlags(Component{Name: "kubelet", Node: true})
	if err := flags.Parse([]string{"--feature-values-file=" + file}); err != nil {
		t.Fatal(err)
	}
	p := &process{component: Component{Name: "kubelet", Node: true}, gate: gateWith(t, map[string]bool{string(features.FeatureLifecycle): false}),
		arguments: parseArguments([]string{"--kubeconfig=" + file}), flags: flags}
	p.resolve(t.Context())
	if p.follower != nil {
		t.Error("it follows values")
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "not touched" {
		t.Errorf("the file was touched: %q, %v", content, err)
	}
}

// TestACommandThatAsksEarly finds final values when it runs.
func TestACommandThatAsksEarly(t *testing.T) {
	gate := gateWith(t, nil)
	const feature = "MaxUnavailableStatefulSet"
	gate.BeforeFinal(func() { gate.SetRemote(map[componentfeaturegate.Feature]featuregate.Remote{feature: {Value: false}}) })
	found := true
	c := &cobra.Command{RunE: func(*cobra.Command, []string) error {
		found = gate.Enabled(feature)
		return nil
	}}
	c.SetArgs([]string{})
	finalizeFirst(c, gate)
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	if found {
		t.Error("the command found the default")
	}
}
