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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// printerFor returns the printer for a value of --output.
func printerFor(output string) (printer, error) {
	switch output {
	case "":
		return printText, nil
	case outputName:
		return printNames, nil
	case outputWide:
		return printTable, nil
	}
	if err := checkOutput(output, upgradeCheckFormats...); err != nil {
		return nil, err
	}
	return func(w io.Writer, r *result) error { return printStructured(w, output, r) }, nil
}

// printText prints what is not safe, and ends with the answer.
func printText(w io.Writer, r *result) error {
	r = printableResult(r)
	// The writers in use fail at the end, if at all.
	for _, safe := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		for _, a := range r.Features {
			// Features of that reason are listed in one line of r.Unknown.
			if a.Safe != safe || a.Reason == reasonOnlyGatesKnown {
				continue
			}
			fmt.Fprintf(w, "%s: %s (%s)\n  Why:  %s\n", a.Name, words[a.Safe], a.Reason, a.Why)
			if a.Next != "" {
				fmt.Fprintf(w, "  Next: %s\n", a.Next)
			}
		}
	}
	for _, a := range r.Features {
		// Why has the change of what is not safe.
		if a.Effect != "" && a.Safe != metav1.ConditionFalse {
			fmt.Fprintf(w, "%s: changes\n  Gate: %s\n  Here: %s\n", a.Name, a.Change, a.Effect)
		}
	}
	for _, text := range r.Unknown {
		fmt.Fprintf(w, "Not known: %s\n", text)
	}
	_, err := fmt.Fprintln(w, r.Message)
	return err
}

// words are printed instead of a condition's status.
var words = map[metav1.ConditionStatus]string{
	metav1.ConditionTrue:    "safe",
	metav1.ConditionFalse:   "not safe",
	metav1.ConditionUnknown: "unknown",
}

// printNames prints the features that are not safe, for other commands.
func printNames(w io.Writer, r *result) error {
	for _, a := range r.Features {
		if a.Safe != metav1.ConditionFalse {
			continue
		}
		if _, err := fmt.Fprintln(w, title(a.Name)); err != nil {
			return err
		}
	}
	return nil
}

// printTable prints all features.
func printTable(w io.Writer, r *result) error {
	r = printableResult(r)
	var rows [][]string
	for _, a := range r.Features {
		rows = append(rows, []string{a.Name, orNone(string(a.State)), string(a.Safe), a.Reason, a.Why})
	}
	text, err := table(false, []string{"NAME", "STATE", "SAFE", "REASON", "WHY"}, rows, nil)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", text, r.Message)
	return err
}

// printableResult returns a copy that is safe to print.
func printableResult(r *result) *result {
	shown := *r
	shown.Message, shown.Unknown, shown.Features = printable(r.Message), printableAll(r.Unknown), nil
	for _, a := range r.Features {
		a.Name, a.State, a.Reason = printable(a.Name), v1alpha1.FeatureState(printable(string(a.State))), printable(a.Reason)
		a.Why, a.Next, a.Change, a.Effect = printable(a.Why), printable(a.Next), printable(a.Change), printable(a.Effect)
		shown.Features = append(shown.Features, a)
	}
	return &shown
}
