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
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
)

// file is the data from this directory.
var file = filepath.Join("..", "..", filepath.FromSlash(dataFile))

// TestDataAgreesWithThisBuild: stage, default, lock and dependencies of all gates, in each component.
func TestDataAgreesWithThisBuild(t *testing.T) {
	if err := verifyFile(file); err != nil {
		t.Error(err)
	}
}

// TestVerifyFindsDifferences changes the data.
func TestVerifyFindsDifferences(t *testing.T) {
	versions, err := catalog.EmulatedVersions()
	if err != nil {
		t.Fatal(err)
	}
	newest := versions[0].String()
	h := history.Load()
	source := map[string]string{}
	for _, v := range h.Versions() {
		source[v] = h.Source(v)
	}
	for want, change := range map[string]func(all map[string]facts){
		"WatchList in kubelet: the data has no such gate, and this build": func(all map[string]facts) { delete(all[newest][history.Kubelet], "WatchList") },
		"Bulb in kubelet: the data has Alpha, false by default, and this build no such gate": func(all map[string]facts) {
			all[newest][history.Kubelet]["Bulb"] = history.Spec{Stage: "Alpha"}
		},
		"WatchListClient in client-go": func(all map[string]facts) {
			all[newest][history.ClientGo]["WatchListClient"] = history.Spec{Stage: "Deprecated", Locked: true}
		},
		"RootlessControlPlane in kubeadm": func(all map[string]facts) { delete(all[newest][history.Kubeadm], "RootlessControlPlane") },
		"and the list of gates of v1.": func(all map[string]facts) {
			delete(all[versions[0].AddMinor(1).String()][history.KubeControllerManager], "WatchList")
		},
	} {
		all := factsOf(h)
		change(all)
		changed, err := join(source, all)
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(t.Context(), changed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	source[newest] = "v" + newest + ".99"
	other, err := join(source, factsOf(h))
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(t.Context(), other); err == nil || !strings.Contains(err.Error(), "run hack/update-history.sh") {
		t.Errorf("another patch release: %v", err)
	}
}

// TestEmulatedVersions: what this build's binaries have while they emulate a version is what the binaries of that version
// have, but for what upstream changed afterwards: rules below, and gates that are listed one by one.
func TestEmulatedVersions(t *testing.T) {
	versions, err := catalog.EmulatedVersions()
	if err != nil {
		t.Fatal(err)
	}
	all := factsOf(history.Load())
	for _, v := range versions[1:] {
		built, err := builtFacts(v)
		if err != nil {
			t.Fatal(err)
		}
		found, byRule := map[string]string{}, map[string]int{}
		for _, component := range servers {
			recorded := all[v.String()][component]
			names := maps.Clone(recorded)
			maps.Copy(names, built[component])
			for name := range names {
				before, known := recorded[name]
				after, knows := built[component][name]
				switch rule := explanation(before, after, known, knows); {
				case rule != "":
					byRule[rule]++
				case describe(recorded, name) != describe(built[component], name):
					found[name] = fmt.Sprintf("%s, and emulated %s", describe(recorded, name), describe(built[component], name))
				}
			}
		}
		t.Logf("%s: %v", v, byRule)
		if diff := cmp.Diff(rewritten[v.String()], found); diff != "" {
			t.Errorf("%s (-explained +found):\n%s", v, diff)
		}
	}
}

// explanation returns the rule by which a gate differs between a version and a binary that emulates it, "" if
// there is none.
func explanation(before, after history.Spec, known, knows bool) string {
	withoutNeeds := func(s history.Spec) history.Spec {
		s.DependsOn = nil
		return s
	}
	switch {
	case known && !knows && before.Locked:
		return "final gates are removed at once for all versions"
	case !known && knows && after.Default && !after.Locked && (after.Stage == "GA" || after.Stage == "Deprecated"):
		return "a way back to what was always so is declared for all versions"
	case known && knows && !reflect.DeepEqual(before, after) && reflect.DeepEqual(withoutNeeds(before), withoutNeeds(after)):
		return "dependencies have no versions"
	default:
		return ""
	}
}

// TestUpdateReadsNothingTwice: the data has all releases that it has to have, so it is written as it is, without
// the network.
func TestUpdateReadsNothingTwice(t *testing.T) {
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := update(t.Context(), &got, file, options{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("-file +written:\n%s", diff)
	}
	if err := update(t.Context(), &got, file, options{releases: []string{"1.37"}}); err == nil || !strings.Contains(err.Error(), "write it like v1.37.2") {
		t.Errorf("unexpected error: %v", err)
	}
}

func TestJoin(t *testing.T) {
	alpha, beta := history.Spec{Stage: "Alpha"}, history.Spec{Stage: "Beta", Default: true}
	source := map[string]string{"1.8": "v1.8.1", "1.9": "v1.9.1", "1.10": "v1.10.1"}
	all := map[string]facts{
		"1.8":  {"kubelet": {"A": alpha}, "kube-proxy": {"A": alpha}},
		"1.9":  {"kubelet": {"A": beta}, "kube-proxy": {"A": beta}, "kubeadm": {"A": alpha}},
		"1.10": {"kubelet": {"B": alpha}, "kube-proxy": {"B": alpha}},
	}
	h, err := join(source, all)
	if err != nil {
		t.Fatal(err)
	}
	data, err := h.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "$schema": "gates.schema.json",
  "source": {
    "1.8": "v1.8.1",
    "1.9": "v1.9.1",
    "1.10": "v1.10.1"
  },
  "gates": [
    {"name":"A","tracks":[{"components":["kube-proxy","kubelet"],"changes":[{"version":"1.8","stage":"Alpha","default":false},{"version":"1.9","stage":"Beta","default":true},{"version":"1.10","removed":true}]},{"components":["kubeadm"],"changes":[{"version":"1.9","stage":"Alpha","default":false},{"version":"1.10","removed":true}]}]},
    {"name":"B","tracks":[{"components":["kube-proxy","kubelet"],"changes":[{"version":"1.10","stage":"Alpha","default":false}]}]}
  ]
}
`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(all, factsOf(h)); diff != "" {
		t.Errorf("taken apart again (-want +got):\n%s", diff)
	}
}

func TestNormalize(t *testing.T) {
	got := normalize(map[string]history.Spec{
		"AllAlpha": {Stage: "ALPHA"}, "AllBeta": {Stage: "BETA"}, "Coming": {Stage: "PRE-ALPHA"},
		"A": {Stage: "ALPHA"}, "B": {Stage: "BETA", Default: true}, "Final": {Default: true, Locked: true},
		"Old": {Stage: "DEPRECATED", DependsOn: []string{"B", "A"}},
	})
	want := map[string]history.Spec{
		"A": {Stage: "Alpha"}, "B": {Stage: "Beta", Default: true}, "Final": {Stage: "GA", Default: true, Locked: true},
		"Old": {Stage: "Deprecated", DependsOn: []string{"A", "B"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
