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

package tracker

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

func report(component, instance string, features ...v1alpha1.ReportedFeature) *v1alpha1.FeatureReport {
	return &v1alpha1.FeatureReport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: component + "." + instance},
		Spec:       v1alpha1.FeatureReportSpec{Component: component, Instance: instance, EmulationVersion: "1.36", Features: features},
	}
}

func lease(renewed time.Time, seconds int32) *coordinationv1.Lease {
	t := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "l"},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &t, LeaseDurationSeconds: ptr.To(seconds)},
	}
}

func gate(name string, enabled bool) v1alpha1.ReportedFeature {
	return v1alpha1.ReportedFeature{Name: name, Enabled: enabled, Explicit: enabled, Stage: v1alpha1.StageBeta}
}

func queried(f v1alpha1.ReportedFeature) v1alpha1.ReportedFeature {
	f.Queried = true
	return f
}

// node returns a Node with the condition Ready.
func node(name string, status corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}},
	}}
}

// leaseFor returns the Lease of a reporter, renewed at a time.
func leaseFor(component, instance string, renewed time.Time) *coordinationv1.Lease {
	l := lease(renewed, 40)
	l.Namespace, l.Name, l.Labels = "leases", component+"."+instance, map[string]string{v1alpha1.LabelComponent: component}
	return l
}
