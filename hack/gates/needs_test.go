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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// TestNeeds: an API's text has how it is served at the newest version, and from which version
// down that is otherwise.
func TestNeeds(t *testing.T) {
	lamps := catalog.API{
		GroupVersion: schema.GroupVersion{Group: "lamps.k8s.io", Version: "v1"}, Or: []string{"v1beta1"},
		Resources: []string{"bulbs", "lamps"}, Without: "it is dark",
	}
	versions := []*utilversion.Version{utilversion.MustParse("1.9"), utilversion.MustParse("1.8"), utilversion.MustParse("1.7")}
	type state struct {
		has string
		one bool
	}
	for name, test := range map[string]struct {
		states map[string]state
		want   string
	}{
		"a flag": {
			map[string]state{"1.9": {has: "v1"}, "1.8": {has: "v1"}, "1.7": {has: "v1"}},
			"bulbs, lamps in lamps.k8s.io/v1, served with `--runtime-config=lamps.k8s.io/v1=true` of every kube-apiserver; without it it is dark",
		},
		"finished, and another version before": {
			map[string]state{"1.9": {has: "v1", one: true}, "1.8": {has: "v1beta1"}, "1.7": {has: "v1beta1"}},
			"bulbs, lamps in lamps.k8s.io/v1, served by default; while kube-apiserver emulates 1.8 or less, served with `--runtime-config=lamps.k8s.io/v1beta1=true` of every kube-apiserver; without it it is dark",
		},
		"finished, and none before": {
			map[string]state{"1.9": {has: "v1", one: true}, "1.8": {has: "v1", one: true}},
			"bulbs, lamps in lamps.k8s.io/v1, served by default; while kube-apiserver emulates 1.7 or less, no flag serves it, so leave the gate off; without it it is dark",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := needs(lamps, versions, func(_ catalog.API, at *utilversion.Version) ([]schema.GroupVersion, bool) {
				s := test.states[at.String()]
				if s.has == "" {
					return nil, false
				}
				return []schema.GroupVersion{{Group: "lamps.k8s.io", Version: s.has}}, s.one
			})
			if got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// TestNeedsOfFinishedAPIs: no flag is asked for where a binary serves the API by default, and
// none where no flag helps.
func TestNeedsOfFinishedAPIs(t *testing.T) {
	gates, err := catalog.Gates()
	if err != nil {
		t.Fatal(err)
	}
	versions, err := catalog.EmulatedVersions()
	if err != nil {
		t.Fatal(err)
	}
	specs, asked := gates.GetAllVersioned(), 0
	for _, e := range catalog.All() {
		known := knownAt(specs[e.Name], versions)
		for _, a := range e.APIs {
			text := needs(a, known, byDefault)
			has, one := byDefault(a, known[0])
			if flag := a.Flag(); one && strings.Contains(text, flag) || !one && len(has) > 0 && !strings.Contains(text, catalog.API{GroupVersion: has[0]}.Flag()) {
				t.Errorf("%s: %s serves %s by default: %t, and the text is %q", e.Name, known[0], a, one, text)
			}
			oldest := known[len(known)-1]
			if has, _ := byDefault(a, oldest); (len(has) == 0) != strings.Contains(text, "no flag") {
				t.Errorf("%s: %s has the versions %v of %s, and the text is %q", e.Name, oldest, has, a, text)
			}
			if one {
				asked++
			}
		}
	}
	if asked == 0 {
		t.Error("no API is served by default; take this test away with the text about that")
	}
}

// TestHeadNamesWhatTheRolePermits compares the text about the role of a controller with
// upstream's bootstrap policy.
func TestHeadNamesWhatTheRolePermits(t *testing.T) {
	const controller = "storage-version-migrator-controller"
	var verbs []string
	for _, role := range bootstrappolicy.ControllerRoles() {
		for _, rule := range role.Rules {
			if role.Name == "system:controller:"+controller && slices.Contains(rule.Resources, "*") && slices.Contains(rule.APIGroups, "*") {
				verbs = append(verbs, rule.Verbs...)
			}
		}
	}
	if len(verbs) == 0 {
		t.Fatalf("the role of %s permits nothing of everything; take it out of the texts", controller)
	}
	what := strings.Join(verbs, " and ") + " everything"
	source, err := os.ReadFile(filepath.Join("..", "..", "pkg", "featurelifecycle", "catalog", "entry.go"))
	if err != nil {
		t.Fatal(err)
	}
	page := document(nil, nil, []*utilversion.Version{utilversion.MustParse("1.37")})
	for where, text := range map[string]string{"the head of the page": page, "entry.go of the catalog": string(source)} {
		if !strings.Contains(text, controller+"` permits to "+what) && !strings.Contains(text, controller+" may "+what) {
			t.Errorf("%s does not say that %s may %s", where, controller, what)
		}
	}
}
