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
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/kubernetes-features/pkg/apis/features"
	"k8s.io/kubernetes-features/pkg/registry/features/table"
	"k8s.io/kubernetes/pkg/printers"
)

func addPrintHandlers(h printers.PrintHandler) {
	columns := []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the feature"},
		{Name: "Control", Type: "string", Description: "When processes take the value: Central ones at their start, Dynamic ones at once"},
		{Name: "Value", Type: "string", Description: "Value that processes take"},
		{Name: "Rollout", Type: "string", Description: "Processes that take the value, if not all"},
		{Name: "Others", Type: "string", Description: "Value of the other processes"},
		{Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
		{Name: "Feature-Version", Type: "string", Priority: 1, Description: "Resource version of the Feature that the value was derived from"},
		{Name: "Report-Within", Type: "string", Priority: 1, Description: "Time over which processes spread their reports of the value"},
	}
	utilruntime.Must(h.TableHandler(columns, func(list *features.FeatureValueList, options printers.GenerateOptions) ([]metav1.TableRow, error) {
		return table.Rows(list.Items, options, printValue)
	}))
	utilruntime.Must(h.TableHandler(columns, printValue))
}

func printValue(value *features.FeatureValue, _ printers.GenerateOptions) ([]metav1.TableRow, error) {
	others := table.None
	if value.Previous != nil {
		others = onOff(*value.Previous)
	}
	return []metav1.TableRow{{
		Object: runtime.RawExtension{Object: value},
		Cells: []any{
			value.Name, string(value.Control), onOff(value.Value), rolloutOf(value.Rollout), others, table.Age(value.CreationTimestamp),
			value.FeatureVersion, strconv.Itoa(int(value.ReportWithinSeconds)) + "s",
		},
	}}, nil
}

func onOff(value bool) string {
	if value {
		return "on"
	}
	return "off"
}

// rolloutOf returns who takes a value, as "25% of kubelet,kube-proxy".
func rolloutOf(rollout *features.FeatureRollout) string {
	if rollout == nil {
		return table.None
	}
	percent := int32(100)
	if rollout.Percent != nil {
		percent = *rollout.Percent
	}
	text := strconv.Itoa(int(percent)) + "%"
	if len(rollout.Components) > 0 {
		text += " of " + strings.Join(rollout.Components, ",")
	}
	if rollout.At != nil {
		text += ", all at " + rollout.At.UTC().Format(time.RFC3339)
	}
	return text
}
