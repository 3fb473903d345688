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
	"bytes"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/kubernetes-features/pkg/kubectl/observe"
)

// printTable prints features with the columns that the server gives "kubectl get"
// (pkg/registry/features/feature/storage): the same words mean the same.
func (o *listOptions) printTable(features []v1alpha1.Feature) error {
	columns := []string{"NAME", "STAGE", "STATE", "CONFIGURED", "SOURCE", "ON", "OFF", "PROGRESS", "SINCE"}
	wide := o.output == outputWide
	if wide {
		columns = append(columns, "CONTROL", "DEFAULT", "VERSION", "CLEAN")
	}
	if o.allNamespaces {
		columns = append([]string{"NAMESPACE"}, columns...)
	}
	observed := observedOf(o.client)
	if observed != nil {
		columns = append(columns, "OBSERVED BY")
	}
	if o.inUse {
		columns = append(columns, "IN USE")
	}
	rows := make([][]string, 0, len(features))
	colors := make([]color, 0, len(features))
	for i := range features {
		row := cells(&features[i], wide)
		if o.allNamespaces {
			row = append([]string{features[i].Namespace}, row...)
		}
		if observed != nil {
			row = append(row, o.observedCell(observed, features[i].Name))
		}
		if o.inUse {
			row = append(row, o.used.cell(features[i].Name))
		}
		rows, colors = append(rows, row), append(colors, colorOf(&features[i].Status))
	}
	if o.noHeaders {
		columns = nil
	}
	text, err := table(o.palette, columns, rows, colors)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(o.Out, text)
	return err
}

// observedCell says where the configured value was observed, or with -o wide all values.
func (o *listOptions) observedCell(c *observe.Cluster, name string) string {
	if o.output == outputWide {
		return orNone(c.From(name))
	}
	return orNone(c.From(name, observe.APIServer))
}

// cells are the columns of one feature.
func cells(f *v1alpha1.Feature, wide bool) []string {
	status := &f.Status
	configured, source := none, none
	if c := status.Configured; c != nil {
		configured, source = valueOf(&c.Value), string(c.Source)
	}
	on, off := transition.LiveUsers(status.Uses)
	activity := transition.Progress(status)
	if !wide {
		activity = transition.Shorten(activity, transition.MaxProgress)
	}
	row := []string{
		f.Name, orNone(string(status.Stage)), stateText(f), configured, source,
		fmt.Sprint(on), fmt.Sprint(off), activity, ago(since(f).Time),
	}
	if wide {
		clean := metav1.ConditionUnknown
		if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionClean); c != nil {
			clean = c.Status
		}
		row = append(row, orNone(string(status.Control)), valueOf(status.Default), orNone(status.Version), string(clean))
	}
	return row
}

// table lines up rows under columns, each row in its color. Cells may have text
// from the cluster. A color is put around a whole line, since sequences within
// would count as characters.
func table(palette palette, columns []string, rows [][]string, colors []color) (string, error) {
	var text bytes.Buffer
	to := printers.GetNewTabWriter(&text)
	if len(columns) > 0 {
		fmt.Fprintln(to, strings.Join(printableAll(columns), "\t"))
	}
	for _, row := range rows {
		fmt.Fprintln(to, strings.Join(printableAll(row), "\t"))
	}
	if err := to.Flush(); err != nil {
		return "", err
	}
	lines := strings.SplitAfter(text.String(), "\n")
	var painted strings.Builder
	for i, line := range lines[:len(lines)-1] {
		line = strings.TrimRight(line, " \n")
		switch row := i - min(1, len(columns)); {
		case row < 0:
			line = palette.paint(bold, line)
		case row < len(colors):
			line = palette.paint(colors[row], line)
		}
		painted.WriteString(line + "\n")
	}
	return painted.String(), nil
}

// colorOf returns red where a feature needs attention, and yellow where a
// transition is under way.
func colorOf(status *v1alpha1.FeatureStatus) color {
	reason := ""
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing); c != nil {
		reason = c.Reason
	}
	switch {
	case transition.Blocking(status) != "", reason == v1alpha1.ReasonBlocked, reason == v1alpha1.ReasonRolloutHalted, dangling(status):
		return red
	case status.Transition != nil, reason == v1alpha1.ReasonPaused:
		// Users that have not followed yet are what it waits for.
		return yellow
	case mismatched(status):
		return red
	default:
		return plain
	}
}

func valueOf(value *bool) string {
	switch {
	case value == nil:
		return none
	case *value:
		return "On"
	default:
		return "Off"
	}
}
