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
	"fmt"
	"strings"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"

	"k8s.io/kubernetes-features/pkg/featurelifecycle/ahead"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

// nextVersion is the text about the next minor version, against the gates of a build at its
// own version.
func nextVersion(next *ahead.Release, entries []catalog.Entry, build map[featuregate.Feature]featuregate.VersionedSpecs, at *utilversion.Version) (string, error) {
	changes, err := next.Changes(build, at)
	if err != nil {
		return "", err
	}
	has := map[string]catalog.Entry{}
	for _, e := range entries {
		has[string(e.Name)] = e
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\n## Known to change in %s\n\n", next.Minor())
	fmt.Fprintf(&text, "What `%s` has, %s%s. `make update-ahead` reads the\n", next.Version(), next.Kind(), map[bool]string{true: ": it may still change, and so may its defaults"}[next.Prerelease()])
	text.WriteString("gates out of upstream's modules. Nothing is known here of what else the version changes, such as APIs that it removes.\n" +
		"Before an upgrade, `kubectl feature upgrade-check` [finds what of this matters to a cluster](upgrade.md#the-version-after-that).\n")
	rows := func(title, before, after string, take func(ahead.Change) bool) {
		fmt.Fprintf(&text, "\n### %s in %s\n\n", title, next.Minor())
		none := true
		for _, c := range changes {
			if !take(c) {
				continue
			}
			if none {
				fmt.Fprintf(&text, "| gate | %s | %s | here |\n| --- | --- | --- | --- |\n", before, after)
				none = false
			}
			fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", c.Name, ahead.Describe(c.Before), ahead.Describe(c.After), here(c, has))
		}
		if none {
			text.WriteString("None.\n")
		}
	}
	from, to := at.String(), next.Minor().String()
	rows("Changed", from, to, func(c ahead.Change) bool { return c.Before.Known && c.After.Known })
	rows("Removed", from, to, func(c ahead.Change) bool { return !c.After.Known })
	rows("New", from, to, func(c ahead.Change) bool { return !c.Before.Known })
	return text.String(), nil
}

// here is what this page has about a gate.
func here(c ahead.Change, entries map[string]catalog.Entry) string {
	e, ok := entries[c.Name]
	switch {
	case !ok && !c.Before.Known && !c.After.Locked:
		return "no verdict yet"
	case !ok:
		return ""
	case e.Stateless != "":
		return "leaves nothing"
	default:
		return fmt.Sprintf("[leaves something](#%s)", strings.ToLower(c.Name))
	}
}
