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

package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	commands "k8s.io/kubernetes-features/test/docs"
	"k8s.io/kubernetes-features/test/utils/examplegates"
)

// turnsOn finds the feature that a command turns on, plans to turn on, or waits for in
// a new cluster to be off.
var turnsOn = []*regexp.Regexp{
	regexp.MustCompile(`kubectl feature enable (?:-n \S+ )?([A-Z]\w+)`),
	regexp.MustCompile(`kubectl feature plan ([A-Z]\w+) --enable`),
	regexp.MustCompile(`kubectl patch feature -n \S+ ([A-Z]\w+) [^\n]*(?:\\\n)?[^\n]*"enabled":true`),
	regexp.MustCompile(`feature-gates=(?:\S+,)?([A-Z]\w+)=true`),
	regexp.MustCompile(`kubectl wait features? -n kube-system ([A-Z]\w+) [^\n]*'{.status.state}'=Off`),
}

// ofTheirOwn are gates that a page turns on because it is about them.
var ofTheirOwn = map[string]string{
	"GenericWorkload": "its collections have another form in each version",
}

// TestPagesTurnOnExampleGates: a command that turns on what is on already shows nothing.
func TestPagesTurnOnExampleGates(t *testing.T) {
	gates, err := catalog.Gates()
	if err != nil {
		t.Fatal(err)
	}
	specs := gates.GetAll()
	names, err := commands.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	turned := map[string]bool{}
	for _, name := range names {
		blocks, err := commands.Read(root, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks {
			for _, gate := range turnedOn(block.Text + "\n" + block.Instead) {
				spec, known := specs[featuregate.Feature(gate)]
				if !known {
					continue // an operator's
				}
				turned[gate] = true
				if spec.Default {
					t.Errorf("%s:%d turns on %s, which is on by default", name, block.Line, gate)
				}
				if !slices.Contains(examplegates.All(), gate) && ofTheirOwn[gate] == "" {
					t.Errorf("%s:%d turns on %s; use one of %s (test/utils/examplegates)", name, block.Line, gate, strings.Join(examplegates.All(), ", "))
				}
			}
		}
	}
	for _, gate := range examplegates.All() {
		if !turned[gate] {
			t.Errorf("no page turns on %s of test/utils/examplegates", gate)
		}
	}
}

// turnedOn returns the gates that the commands of a block turn on.
func turnedOn(block string) []string {
	var found []string
	for _, command := range turnsOn {
		for _, match := range command.FindAllStringSubmatch(block, -1) {
			found = append(found, match[1])
		}
	}
	return found
}

// TestTurnedOn holds the patterns against commands as pages have them.
func TestTurnedOn(t *testing.T) {
	for command, want := range map[string][]string{
		"kubectl feature enable Apples --wait --timeout=5m":                                                 {"Apples"},
		"kubectl feature enable -n widgets WidgetColor --wait":                                              {"WidgetColor"},
		"kubectl feature plan Apples --enable --as=anna":                                                    {"Apples"},
		"kubectl feature plan Apples --disable":                                                             nil,
		`kubectl patch feature -n kube-system Apples --type=merge -p '{"spec":{"enabled":true}}'`:           {"Apples"},
		"kubectl patch feature -n kube-system Apples --type=merge \\\n  -p '{\"spec\":{\"enabled\":true}}'": {"Apples"},
		`kubectl patch feature -n kube-system Apples --type=merge -p '{"spec":{"enabled":false}}'`:          nil,
		"local-up restart --server-feature-gates=Apples=false,Bread=true":                                   {"Bread"},
		"kubectl wait feature -n kube-system Apples --for=jsonpath='{.status.state}'=Off --timeout=2m":      {"Apples"},
	} {
		if got := turnedOn(command); !slices.Equal(got, want) {
			t.Errorf("%s: found %v, want %v", command, got, want)
		}
	}
}
