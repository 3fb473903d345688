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

package feature

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// printerFor returns the printer for a value of --output.
func printerFor(output string) (printer, error) {
	switch output {
	case "":
		return printText, nil
	case "name":
		return printNames, nil
	case "wide":
		return printTable, nil
	}
	flags := genericclioptions.NewJSONYamlPrintFlags()
	to, err := flags.ToPrinter(output)
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return nil, fmt.Errorf("unknown output format %q; use json, yaml, name or wide", output)
	}
	if err != nil {
		return nil, err
	}
	return func(w io.Writer, r *result) error {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
		if err != nil {
			return err
		}
		return to.PrintObj(&unstructured.Unstructured{Object: object}, w)
	}, nil
}

// printText prints what is not safe, and ends with the answer.
func printText(w io.Writer, r *result) error {
	r = printableResult(r)
	// The writers in use fail at the end, if at all.
	for _, safe := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		for _, a := range r.Features {
			if a.Safe != safe {
				continue
			}
			fmt.Fprintf(w, "%s: %s (%s)\n  Why:  %s\n", a.Name, words[a.Safe], a.Reason, a.Why)
			if a.Next != "" {
				fmt.Fprintf(w, "  Next: %s\n", a.Next)
			}
		}
	}
	for _, text := range r.Unknown {
		fmt.Fprintf(w, "Not known: %s\n", text)
	}
	_, err := fmt.Fprintln(w, r.Message)
	return err
}

// words are what people read instead of a condition's status.
var words = map[metav1.ConditionStatus]string{
	metav1.ConditionTrue:    "safe",
	metav1.ConditionFalse:   "not safe",
	metav1.ConditionUnknown: "cannot tell",
}

// printNames prints the features that are not safe, for other commands.
func printNames(w io.Writer, r *result) error {
	for _, a := range r.Features {
		if a.Safe != metav1.ConditionFalse {
			continue
		}
		if _, err := fmt.Fprintf(w, "feature.%s/%s\n", v1alpha1.GroupName, a.Name); err != nil {
			return err
		}
	}
	return nil
}

// printTable prints all features.
func printTable(w io.Writer, r *result) error {
	r = printableResult(r)
	table := printers.GetNewTabWriter(w)
	fmt.Fprintln(table, "NAME\tSTATE\tSAFE\tREASON\tWHY")
	for _, a := range r.Features {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", a.Name, a.State, a.Safe, a.Reason, a.Why)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, r.Message)
	return err
}

// printableResult is a copy for people.
func printableResult(r *result) *result {
	shown := *r
	shown.Message, shown.Unknown, shown.Features = printable(r.Message), printableAll(r.Unknown), nil
	for _, a := range r.Features {
		a.Name, a.State, a.Reason = printable(a.Name), v1alpha1.FeatureState(printable(string(a.State))), printable(a.Reason)
		a.Why, a.Next = printable(a.Why), printable(a.Next)
		shown.Features = append(shown.Features, a)
	}
	return &shown
}
