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

package storage

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/kubernetes-features/pkg/apis/features"
	conversion "k8s.io/kubernetes-features/pkg/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/registry/features/table"
	"k8s.io/kubernetes/pkg/printers"
)

func addPrintHandlers(h printers.PrintHandler) {
	columns := []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "The feature gate's exact name"},
		{Name: "Stage", Type: "string", Description: "Maturity of the gate"},
		{Name: "State", Type: "string", Description: "Observed state of the cluster"},
		{Name: "Configured", Type: "string", Description: "Desired value"},
		{Name: "Source", Type: "string", Description: "Source of the desired value"},
		{Name: "On", Type: "integer", Description: "Live users that have the feature on"},
		{Name: "Off", Type: "integer", Description: "Live users that have the feature off"},
		{Name: "Progress", Type: "string", Description: "Progress of the transition, or the problem that holds it"},
		{Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
		{Name: "Control", Type: "string", Priority: 1, Description: "Source of the value that a binary uses"},
		{Name: "Default", Type: "string", Priority: 1, Description: "Value when none is set"},
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
	// It shares what it points to with the internal form, and is only read.
	var as v1alpha1.FeatureStatus
	if err := conversion.Convert_features_FeatureStatus_To_v1alpha1_FeatureStatus(status, &as, nil); err != nil {
		return nil, err
	}
	on, off := transition.LiveUsers(as.Uses)
	return []metav1.TableRow{{
		Object: runtime.RawExtension{Object: feature},
		Cells: []any{
			feature.Name, table.OrNone(string(status.Stage)), table.OrNone(string(status.State)), configured, source, on, off, transition.Shorten(transition.Progress(&as), transition.MaxProgress),
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

func cleanness(status *features.FeatureStatus) string {
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionClean)
	if c == nil {
		return string(metav1.ConditionUnknown)
	}
	return string(c.Status)
}
