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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/kubernetes-features/pkg/apis/features"
	"k8s.io/kubernetes-features/pkg/registry/features/table"
	"k8s.io/kubernetes/pkg/printers"
)

func addPrintHandlers(h printers.PrintHandler) {
	columns := []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "<component>.<instance>"},
		{Name: "Component", Type: "string", Description: "Kind of process"},
		{Name: "Version", Type: "string", Description: "Version of the binary"},
		{Name: "Node", Type: "string", Description: "Node that the process runs on"},
		{Name: "Liveness", Type: "string", Description: "How the process's liveness is observed"},
		{Name: "Features", Type: "integer", Description: "Number of features reported"},
		{Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
		{Name: "Emulation", Type: "string", Priority: 1, Description: "Minor version that the binary emulates"},
		{Name: "Username", Type: "string", Priority: 1, Description: "Identity that created the report"},
		{Name: "Lease", Type: "string", Priority: 1, Description: "Namespace and name of the Lease that the process renews"},
	}
	utilruntime.Must(h.TableHandler(columns, func(list *features.FeatureReportList, options printers.GenerateOptions) ([]metav1.TableRow, error) {
		return table.Rows(list.Items, options, printReport)
	}))
	utilruntime.Must(h.TableHandler(columns, printReport))
}

func printReport(report *features.FeatureReport, _ printers.GenerateOptions) ([]metav1.TableRow, error) {
	spec := &report.Spec
	liveness, lease := livenessOf(spec)
	return []metav1.TableRow{{
		Object: runtime.RawExtension{Object: report},
		Cells: []any{
			report.Name, spec.Component, spec.BinaryVersion, table.OrNone(spec.NodeName), liveness,
			int64(len(spec.Features)), table.Age(report.CreationTimestamp), spec.EmulationVersion, spec.Username, lease,
		},
	}}, nil
}

// livenessOf returns how a process shows that it is alive, and with which
// Lease.
func livenessOf(spec *features.FeatureReportSpec) (liveness, lease string) {
	switch {
	case spec.Liveness.Lease != nil:
		return "Lease", spec.Liveness.Lease.Namespace + "/" + spec.Liveness.Lease.Name
	case spec.NodeName != "":
		return "Node", table.None
	default:
		return table.None, table.None
	}
}
