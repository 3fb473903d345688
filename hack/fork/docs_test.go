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
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// TestTheTableOfUpstreamsFiles: docs/contributors/fork.md names each file of upstream that
// landing edits, and no other.
func TestTheTableOfUpstreamsFiles(t *testing.T) {
	page := read(t, filepath.Join(root, "docs", "contributors", "fork.md"))
	_, table, ok := strings.Cut(page, "\nWritten by `make fork`, besides the mains:\n")
	if !ok {
		t.Fatal("docs/contributors/fork.md has no table of what make fork writes")
	}
	table, _, _ = strings.Cut(strings.TrimSpace(table), "\n\n")
	named := map[string]bool{}
	for row := range strings.Lines(table) {
		for _, match := range quoted.FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			named[match[1]] = false
		}
	}
	edited := 0
	for name, target := range whole(t).files {
		if target.base == nil || isMain(name) {
			continue
		}
		edited++
		found := false
		for entry := range named {
			if below(name, entry) {
				named[entry], found = true, true
			}
		}
		if !found {
			t.Errorf("landing edits upstream's %s, which the table of docs/contributors/fork.md does not have", name)
		}
	}
	for entry, is := range named {
		if !is {
			t.Errorf("the table of docs/contributors/fork.md has %s, which landing does not edit", entry)
		}
	}
	if edited < 10 {
		t.Errorf("landing edits %d files of upstream", edited)
	}
}

// TestOwners: upstream's OWNERS_ALIASES knows all who own what lands.
func TestOwners(t *testing.T) {
	p := whole(t)
	known, err := p.base.read("OWNERS_ALIASES")
	if err != nil {
		t.Fatal(err)
	}
	var aliases struct{ Aliases map[string][]string }
	if err := yaml.UnmarshalStrict(known, &aliases); err != nil {
		t.Fatal(err)
	}
	files := 0
	for name, target := range p.files {
		if path.Base(name) != "OWNERS" {
			continue
		}
		files++
		var owners struct {
			Options                      map[string]bool
			Approvers, Reviewers, Labels []string
		}
		if err := yaml.UnmarshalStrict(target.data, &owners); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(owners.Approvers) == 0 || len(owners.Reviewers) == 0 {
			t.Errorf("%s has %d approvers and %d reviewers", name, len(owners.Approvers), len(owners.Reviewers))
		}
		for _, owner := range append(owners.Approvers, owners.Reviewers...) {
			if aliases.Aliases[owner] == nil {
				t.Errorf("%s: upstream's OWNERS_ALIASES does not have %s", name, owner)
			}
		}
	}
	if files < 10 {
		t.Errorf("%d files OWNERS land", files)
	}
}

// TestAllowDifferent: only what says yes turns the comparison off.
func TestAllowDifferent(t *testing.T) {
	for value, want := range map[string]bool{"": false, "0": false, "false": false, "no": false, "1": true, "true": true} {
		said, err := command(t.Context(), root, nil, nil, "make", "--no-print-directory", "-n", "fork", "KUBE_ROOT=x", "ALLOW_DIFFERENT="+value)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(said), "--allow-different"); got != want {
			t.Errorf("with ALLOW_DIFFERENT=%s: %s", value, said)
		}
	}
}
