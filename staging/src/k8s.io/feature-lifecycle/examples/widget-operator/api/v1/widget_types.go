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

// Package v1 is the API of the widget operator: the kind Widget of the group
// widgets.example.com. Deep copies and config/crd.yaml are made of it by
// controller-gen (hack/update-codegen.sh of the repository).
//
// +kubebuilder:object:generate=true
// +groupName=widgets.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and the version of this package.
	GroupVersion = schema.GroupVersion{Group: "widgets.example.com", Version: "v1"}
	// Widgets is the resource of the kind Widget.
	Widgets = GroupVersion.WithResource("widgets")

	schemeBuilder = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(GroupVersion, &Widget{}, &WidgetList{})
		metav1.AddToGroupVersion(scheme, GroupVersion)
		return nil
	})
	// AddToScheme adds the kinds of this package to a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

// ConditionReady is True when the ConfigMap of a Widget is as its spec says.
const ConditionReady = "Ready"

// Reasons of the condition Ready.
const (
	// ReasonWritten is that of True.
	ReasonWritten = "Written"
	// ReasonNameTaken means that the ConfigMap of the Widget's name does not belong to
	// the Widget.
	ReasonNameTaken = "NameTaken"
	// ReasonNotWritten means that the ConfigMap could not be written. The operator retries.
	ReasonNotWritten = "NotWritten"
)

// WidgetSpec is the desired state of a Widget.
type WidgetSpec struct {
	// size is how large it is, in the unit of your choice.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Size int32 `json:"size,omitempty"`
	// text is what stands on it.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Text string `json:"text,omitempty"`
	// color is the color that it has. It is alpha: the operator looks at it only while its
	// feature gate WidgetColor is on, and turning the gate off removes it from all Widgets.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Color string `json:"color,omitempty"`
}

// WidgetStatus is the observed state of a Widget.
type WidgetStatus struct {
	// conditions has Ready, which says whether the Widget's ConfigMap is as spec says.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Widget is something with a size and a text, for each of which the operator keeps a
// ConfigMap of the same name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Text",type=string,JSONPath=`.spec.text`
// +kubebuilder:printcolumn:name="Color",type=string,JSONPath=`.spec.color`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
type Widget struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	Spec WidgetSpec `json:"spec,omitempty"`
	// status is the observed state.
	// +optional
	Status WidgetStatus `json:"status,omitempty"`
}

// WidgetList is a list of Widgets.
//
// +kubebuilder:object:root=true
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}
