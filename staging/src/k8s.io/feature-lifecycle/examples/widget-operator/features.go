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
	utilversion "k8s.io/apimachinery/pkg/util/version"
	componentfeaturegate "k8s.io/component-base/featuregate"
	widgetsv1 "k8s.io/feature-lifecycle/examples/widget-operator/api/v1"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
)

// version is the operator's own. Its gates are made with the minor version of it.
const version = "v0.1.0"

const (
	// WidgetColor lets Widgets have a color (spec.color), which their ConfigMaps get.
	//
	// alpha: v0.1
	WidgetColor componentfeaturegate.Feature = "WidgetColor"

	// WidgetUppercase writes the text of Widgets to their ConfigMaps in capitals. It
	// stores nothing in Widgets.
	//
	// alpha: v0.1
	WidgetUppercase componentfeaturegate.Feature = "WidgetUppercase"
)

// gates are the operator's feature gates, as any binary of Kubernetes has them.
var gates = map[componentfeaturegate.Feature]componentfeaturegate.VersionedSpecs{
	WidgetColor: {
		{Version: utilversion.MustParse("0.1"), Default: false, PreRelease: componentfeaturegate.Alpha},
	},
	WidgetUppercase: {
		{Version: utilversion.MustParse("0.1"), Default: false, PreRelease: componentfeaturegate.Alpha},
	},
}

// declared says what becomes of what the features leave behind in the namespace whose
// Widgets the operator looks after, and who may decide their values. The reconciler asks
// for both each time, so they may change while it runs.
//
// Another installation of the operator may look after another namespace, with the same
// definition and features of its own, so tasks leave its Widgets alone.
func declared(namespace string) []lifecycle.Feature {
	return []lifecycle.Feature{
		{
			Name:      WidgetColor,
			OnDisable: lifecycle.InNamespace(namespace, lifecycle.ClearField(widgetsv1.Widgets, "spec.color")),
			Control:   lifecycle.Dynamic,
		},
		{
			// The reconciler rewrites ConfigMaps after the value has changed, maybe a
			// moment after the feature is Off: no task waits for it.
			Name:    WidgetUppercase,
			Control: lifecycle.Dynamic,
		},
	}
}

// newGate makes the operator's gate with the reporting layer in front of it.
func newGate() (*featuregate.Gate, error) {
	own, err := utilversion.ParseSemantic(version)
	if err != nil {
		return nil, err
	}
	inner := componentfeaturegate.NewVersionedFeatureGate(utilversion.MajorMinor(own.Major(), own.Minor()))
	if err := inner.AddVersioned(gates); err != nil {
		return nil, err
	}
	return featuregate.Wrap(inner), nil
}
