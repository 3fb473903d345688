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
	"fmt"
	"io"
	"strings"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// printMissing prints instances with missing reports, and unreachable ones.
func printMissing(w io.Writer, counts []v1alpha1.FeatureUse) {
	for _, use := range counts {
		who := printable(strings.TrimSpace(use.Component + " " + use.Version))
		if use.Enabled == nil {
			fmt.Fprintf(w, "Not reported: %d of %s, for example %s\n", use.Expected, who, printable(strings.Join(use.Examples, ", ")))
		} else if use.Stale > 0 {
			fmt.Fprintf(w, "Unreachable: %d of %s that had the feature %s\n", use.Stale, who, transition.OnOff(*use.Enabled))
		}
	}
}

// printCounts prints the servers' counts of users.
func printCounts(w io.Writer, palette palette, f *v1alpha1.Feature, mismatched, noHeaders bool) error {
	value, known := expectedValue(f)
	var rows [][]string
	var colors []color
	for _, use := range f.Status.Uses {
		other := differs(use, value, known)
		if mismatched && !other {
			continue
		}
		text, mark, matches := "not reported", plain, yesNo(!other)
		switch {
		case use.Enabled == nil:
			mark, matches = yellow, "-"
		case isObserved(f) && !known:
			text, matches = valueOf(use.Enabled), notKnown
		case other:
			text, mark = valueOf(use.Enabled), red
		default:
			text = valueOf(use.Enabled)
		}
		rows = append(rows, []string{
			use.Component, orNone(use.Version), text, fmt.Sprint(use.Count), expectedOf(use), fmt.Sprint(use.Stale), matches, strings.Join(use.Examples, ","),
		})
		colors = append(colors, mark)
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, none)
		return err
	}
	columns := []string{"COMPONENT", "VERSION", "VALUE", "COUNT", "EXPECTED", "STALE", "MATCHES", "EXAMPLES"}
	if noHeaders {
		columns = nil
	}
	text, err := table(palette, columns, rows, colors)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

// expectedOf returns the expected number, where the cluster can know it.
func expectedOf(use v1alpha1.FeatureUse) string {
	if use.Expected == 0 {
		return "-"
	}
	return fmt.Sprint(use.Expected)
}

func yesNo(value bool) string {
	if value {
		return "yes"
	}
	return "no"
}
