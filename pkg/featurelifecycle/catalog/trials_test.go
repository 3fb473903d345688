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

package catalog

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/component-base/featuregate"
)

// nodeSources are the folders of upstream's modules with the code of kubelet and kube-proxy.
var nodeSources = map[string][]string{
	kubernetes:       {"pkg/kubelet", "cmd/kubelet", "pkg/volume", "pkg/probe", "pkg/credentialprovider", "pkg/proxy", "cmd/kube-proxy"},
	componentHelpers: {"nodedeclaredfeatures/features"},
}

// gatesOfNodes returns the gates that the code of kubelet or kube-proxy names, with a file
// that does: by the constants of upstream, or as text, as the list of features does that
// nodes declare.
func gatesOfNodes(t *testing.T) map[featuregate.Feature]string {
	t.Helper()
	constants, known := gateConstants(t, kubernetes, "pkg/features"), knownGates(t).GetAll()
	constant, text := regexp.MustCompile(`\b\w*features\.(\w+)`), regexp.MustCompile(`= "(\w+)"`)
	found := map[featuregate.Feature]string{}
	for module, folders := range nodeSources {
		for _, folder := range folders {
			for _, file := range sourceTexts(t, module, folder) {
				for _, match := range constant.FindAllStringSubmatch(file.text, -1) {
					if gate, ok := constants[match[1]]; ok {
						found[gate] = file.name
					}
				}
				if module == kubernetes {
					continue
				}
				for _, match := range text.FindAllStringSubmatch(file.text, -1) {
					if _, ok := known[featuregate.Feature(match[1])]; ok {
						found[featuregate.Feature(match[1])] = file.name
					}
				}
			}
		}
	}
	return found
}

// TestGatesOfNodesHaveTrials checks that each gate that a node queries, and that leaves
// something, was tried on a real node, or says why it cannot be.
func TestGatesOfNodesHaveTrials(t *testing.T) {
	entries, queried, known := verdicts(), gatesOfNodes(t), knownGates(t).GetAll()
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e, file := entries[name], queried[name]
		leaves := e.Stateless == "" || e.Node != ""
		if _, ok := Trials[name]; !ok && leaves && (file != "" || e.Node != "") {
			t.Errorf("gate %s is of nodes (%s), leaves something and has no Trial; turn it off on a real node (test/e2e_kind), or say why that cannot be done, in pkg/featurelifecycle/catalog/trials.go", name, file)
		}
	}
	for name, trial := range Trials {
		if e, ok := entries[name]; !ok || queried[name] == "" && e.Node == "" {
			t.Errorf("%s has a Trial, and is no gate with an Entry that kubelet or kube-proxy query", name)
		}
		if trial.Writes == "" || trial.Pods == "" || (trial.Seen == "") == (trial.Untried == "") {
			t.Errorf("the Trial of %s needs Writes, Pods, and either Seen or Untried: it is %+v", name, trial)
		}
		if spec := known[name]; spec.LockToDefault != (trial.Untried == locked) {
			t.Errorf("the gate %s is locked: %t, and its Trial says %q", name, spec.LockToDefault, trial.Untried)
		}
		for _, text := range []string{trial.Writes, trial.Seen, trial.Untried, trial.Pods} {
			if strings.ContainsAny(text, "|\n") || strings.HasSuffix(text, ".") {
				t.Errorf("the Trial of %s has %q, which breaks its row of the table in docs/gates.md", name, text)
			}
		}
	}
}
