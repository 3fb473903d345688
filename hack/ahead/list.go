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
	"io"
	"text/tabwriter"

	"k8s.io/kubernetes-features/pkg/featurelifecycle/ahead"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

// list writes what differs between this build and a version, with what the catalog has
// of each gate.
func list(out io.Writer, r *ahead.Release) error {
	gates, err := catalog.Gates()
	if err != nil {
		return err
	}
	versions, err := catalog.EmulatedVersions()
	if err != nil {
		return err
	}
	build := versions[0]
	changes, err := r.Changes(gates.GetAllVersioned(), build)
	if err != nil {
		return err
	}
	entries := map[string]catalog.Entry{}
	for _, e := range catalog.All() {
		entries[string(e.Name)] = e
	}
	counts := map[string]int{}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "GATE\t%s\t%s\tCATALOG\n", build, r.Version())
	for _, c := range changes {
		entry, has := entries[c.Name]
		kind, next := verdict(c, entry, has)
		counts[kind]++
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", c.Name, ahead.Describe(c.Before), ahead.Describe(c.After), next)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s, %s, against %s: %d gates are new, %d gone, %d changed\n", r.Version(), r.Kind(), build, counts["new"], counts["gone"], counts["changed"])
	return err
}

// verdict returns the kind of a change, and what it means for the catalog.
func verdict(c ahead.Change, entry catalog.Entry, has bool) (kind, next string) {
	switch {
	case !c.Before.Known && c.After.Locked:
		return "new", "no entry: locked"
	case !c.Before.Known:
		return "new", "needs an entry"
	case !c.After.Known && !has:
		return "gone", "no entry"
	case !c.After.Known:
		return "gone", "entry will have no gate" + what(entry)
	case !has:
		return "changed", "no entry"
	case c.After.Locked:
		return "changed", "entry is for versions below" + what(entry)
	default:
		return "changed", "entry stays" + what(entry)
	}
}

// what shows whether a gate leaves something.
func what(entry catalog.Entry) string {
	if entry.Stateless != "" {
		return ": leaves nothing"
	}
	return fmt.Sprintf(": leaves something, tasks: %d", len(entry.OnDisable))
}
