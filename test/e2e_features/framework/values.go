//go:build linux

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

package framework

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
)

// Request asks for a value of a feature of Kubernetes through the API, as what the
// client is: the spec is JSON, in which null takes a field away.
func Request(ctx context.Context, client versioned.Interface, feature, spec string) error {
	_, err := client.FeaturesV1alpha1().Features(metav1.NamespaceSystem).Patch(ctx, feature, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":%s}`, spec), metav1.PatchOptions{})
	return err
}

// Request asks for a value as an administrator, who has to get it.
func (c *Cluster) Request(feature, spec string) {
	c.t.Helper()
	if err := Request(c.t.Context(), c.Features, feature, spec); err != nil {
		c.t.Fatalf("asking for %s of %s: %v", spec, feature, err)
	}
}

// Reported is what the first process of a component that says so found when it asked
// for a feature, or has it set explicitly. It is nil if there is no such process.
func Reported(reports []v1alpha1.FeatureReport, component, feature string) *v1alpha1.ReportedFeature {
	for _, r := range reports {
		if r.Spec.Component != component {
			continue
		}
		for _, f := range r.Spec.Features {
			if f.Name == feature && (f.Queried || f.Explicit) {
				return &f
			}
		}
	}
	return nil
}

// InEffect are the parts of what a component logs when it takes a value that is set
// centrally.
func InEffect(feature string, enabled bool) []string {
	return []string{"Central feature value in effect", `feature="` + feature + `"`, fmt.Sprintf("enabled=%t", enabled)}
}

// HasLine is true when one line of a text has all parts.
func HasLine(text string, parts ...string) bool {
	for line := range strings.Lines(text) {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			return true
		}
	}
	return false
}

// WaitForLog waits until one line of a component's log has all parts.
func (c *Cluster) WaitForLog(name string, parts ...string) {
	c.t.Helper()
	const all = 100_000
	Eventually(c.t, name+" to log "+strings.Join(parts, " … "), func() error {
		log := c.Log(name, all)
		if HasLine(log, parts...) {
			return nil
		}
		return fmt.Errorf("it has logged %d lines, the last of them:\n%s", strings.Count(log, "\n"), c.Log(name, logLines))
	})
}

// PlainStatefulSet returns one without pods that sets no field of a feature. Servers
// add the field of MaxUnavailableStatefulSet while that is on.
func PlainStatefulSet(name string) *appsv1.StatefulSet {
	set := StatefulSet(name, intstr.FromInt32(1))
	set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{}
	return set
}

// WaitForValue waits until a process of a component has reported a value of what it
// asks for.
func (c *Cluster) WaitForValue(component, feature string, value bool) {
	c.t.Helper()
	c.WaitForReports(fmt.Sprintf("in which %s has %s=%t", component, feature, value), func(reports []v1alpha1.FeatureReport) bool {
		f := Reported(reports, component, feature)
		return f != nil && f.Enabled == value
	})
}
