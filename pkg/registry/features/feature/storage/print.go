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

package storage

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/apis/features"
	"k8s.io/kubernetes-features/pkg/registry/features/table"
	"k8s.io/kubernetes/pkg/printers"
)

func addPrintHandlers(h printers.PrintHandler) {
	columns := []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "The feature gate's exact name"},
		{Name: "Stage", Type: "string", Description: "Maturity of the gate"},
		{Name: "State", Type: "string", Description: "What the cluster really is"},
		{Name: "Configured", Type: "string", Description: "Desired value"},
		{Name: "Source", Type: "string", Description: "Where the desired value comes from"},
		{Name: "On", Type: "integer", Description: "Live users that have the feature on"},
		{Name: "Off", Type: "integer", Description: "Live users that have the feature off"},
		{Name: "Doing", Type: "string", Description: "What the server flow is doing or missing"},
		{Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
		{Name: "Control", Type: "string", Priority: 1, Description: "Who decides the value that a binary uses"},
		{Name: "Default", Type: "string", Priority: 1, Description: "Value when nobody sets it"},
		{Name: "Version", Type: "string", Priority: 1, Description: "Minor version whose representation is stored"},
		{Name: "Clean", Type: "string", Priority: 1, Description: "Whether a feature that is off left something behind"},
	}
	utilruntime.Must(h.TableHandler(columns, func(list *features.FeatureList, options printers.GenerateOptions) ([]metav1.TableRow, error) {
		return table.Rows(list.Items, options, printFeature)
	}))
	utilruntime.Must(h.TableHandler(columns, printFeature))
}

func printFeature(feature *features.Feature, _ printers.GenerateOptions) ([]metav1.TableRow, error) {
	status := &feature.Status
	configured, source := table.None, table.None
	if c := status.Configured; c != nil {
		configured, source = onOff(&c.Value), string(c.Source)
	}
	on, off := users(status.Uses)
	return []metav1.TableRow{{
		Object: runtime.RawExtension{Object: feature},
		Cells: []any{
			feature.Name, table.OrNone(string(status.Stage)), table.OrNone(string(status.State)), configured, source, on, off, doing(status),
			table.Age(feature.CreationTimestamp), string(status.Control), onOff(status.Default), status.Version, cleanness(status),
		},
	}}, nil
}

func onOff(value *bool) string {
	switch {
	case value == nil:
		return table.None
	case *value:
		return "On"
	default:
		return "Off"
	}
}

func users(uses []features.FeatureUse) (on, off int64) {
	for _, use := range uses {
		switch {
		case use.Enabled == nil:
		case *use.Enabled:
			on += int64(use.Count)
		default:
			off += int64(use.Count)
		}
	}
	return on, off
}

// maxDoing keeps the table readable; the whole message is in the object.
const maxDoing = 60

// doing says in a few words what is going on, and nothing when all is well.
func doing(status *features.FeatureStatus) string {
	if len(status.Tasks) > 0 {
		task := &status.Tasks[0]
		name, _, _ := strings.Cut(task.Name, "/")
		text := name
		if task.Total > 0 {
			text = fmt.Sprintf("%s %d/%d", name, task.Done, task.Total)
		}
		if task.Message != "" {
			text += ": " + task.Message
		}
		return shorten(text)
	}
	for _, kind := range []string{v1alpha1.ConditionKnown, v1alpha1.ConditionConsistent, v1alpha1.ConditionProgressing, v1alpha1.ConditionUsesMatch, v1alpha1.ConditionClean} {
		c := meta.FindStatusCondition(status.Conditions, kind)
		if c != nil && slices.Contains(troubling[kind], c.Reason) {
			return c.Reason
		}
	}
	return ""
}

// troubling are the reasons that somebody should look at when no task runs.
var troubling = map[string][]string{
	v1alpha1.ConditionKnown:       {v1alpha1.ReasonNotKnown},
	v1alpha1.ConditionConsistent:  {v1alpha1.ReasonServersDisagree, v1alpha1.ReasonReportMissing},
	v1alpha1.ConditionProgressing: {v1alpha1.ReasonPaused, v1alpha1.ReasonMixedVersions},
	v1alpha1.ConditionUsesMatch:   {v1alpha1.ReasonUsersDiffer},
	v1alpha1.ConditionClean:       {v1alpha1.ReasonLeftovers},
}

func shorten(text string) string {
	characters := []rune(text)
	if len(characters) <= maxDoing {
		return text
	}
	return string(characters[:maxDoing-1]) + "…"
}

func cleanness(status *features.FeatureStatus) string {
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionClean)
	if c == nil {
		return string(metav1.ConditionUnknown)
	}
	return string(c.Status)
}
