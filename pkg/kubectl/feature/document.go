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
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// document is the output of describe -o json and yaml.
type document struct {
	metav1.TypeMeta `json:",inline"`
	// Feature is the whole object.
	Feature *v1alpha1.Feature `json:"feature"`
	// Uses has its users, as "uses" prints them.
	Uses *usage `json:"uses"`
	// Events are the latest, oldest first.
	Events []corev1.Event `json:"events,omitempty"`
	// EventsUnread has the reason why they could not be read.
	EventsUnread string `json:"eventsUnread,omitempty"`
}

func (d *description) document() *document {
	events := slices.Clone(d.events)
	for i := range events {
		events[i].ManagedFields = nil
	}
	return &document{
		TypeMeta: metav1.TypeMeta{APIVersion: "describe.features.k8s.io/v1alpha1", Kind: "FeatureDescription"},
		Feature:  typed(d.feature), Uses: d.used, Events: events, EventsUnread: d.noEvents,
	}
}

// printer returns a function that prints one description after the other.
func (o *describeOptions) printer() (func(*description) error, error) {
	if structured(o.output) {
		to, err := genericclioptions.NewJSONYamlPrintFlags().ToPrinter(o.output)
		return func(d *description) error {
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d.document())
			if err != nil {
				return err
			}
			return to.PrintObj(&unstructured.Unstructured{Object: object}, o.Out)
		}, err
	}
	shown := false
	return func(d *description) error {
		if shown {
			fmt.Fprint(o.Out, "\n\n")
		}
		shown = true
		return d.print(o.Out)
	}, nil
}
