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

package versionskew

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// Refuses reports whether binaries of the other version would refuse to start with the
// flags that processes have now. The result names the flags with which they would
// start. Plans, conditions and upgrade-check all use it.
func (q Input) Refuses() (Result, bool) {
	var why, next []string
	for _, refused := range []func() (why, next string){q.refusesValue, q.refusesControl, q.RefusesDependencies} {
		if w, n := refused(); w != "" {
			why, next = append(why, w), append(next, n)
		}
	}
	return Result{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRefusesToStart, Why: strings.Join(why, "; "), Next: strings.Join(next, "; ")}, len(why) > 0
}

// refusesValue is about values of gates, anywhere (component-base/featuregate,
// SetFromMap).
func (q Input) refusesValue() (why, next string) {
	var refused []string
	for _, s := range q.Explicit {
		if !q.Target.Known || q.Target.Locked && s.Enabled != q.Target.Default {
			refused = append(refused, fmt.Sprintf("%s/%s sets %s=%t", s.Component, s.Instance, q.Feature.Name, s.Enabled))
		}
	}
	if len(refused) == 0 {
		return "", ""
	}
	has := "does not have the gate"
	if q.Target.Known {
		has = fmt.Sprintf("has the gate locked to %t", q.Target.Default)
	}
	return fmt.Sprintf("%s %s and its binaries would refuse to start: %s", q.To, has, few(refused)),
		fmt.Sprintf("take %s out of --feature-gates, or of featureGates in the configuration file, before the binary is replaced", q.Feature.Name)
}

// refusesControl is about the flags that let others than a server's own command
// line decide the value: kube-apiserver refuses gates in them that its emulation
// version does not have, or has locked.
func (q Input) refusesControl() (why, next string) {
	if len(q.Controlled) == 0 || q.Target.Known && !q.Target.Locked {
		return "", ""
	}
	var refused []string
	for _, c := range q.Controlled {
		refused = append(refused, fmt.Sprintf("%s/%s has %s as %s", c.Component, c.Instance, q.Feature.Name, c.Control))
	}
	has := "does not have the gate"
	if q.Target.Known {
		has = "has the gate locked"
	}
	return fmt.Sprintf("%s %s and its servers would refuse to start with it in --central-features or --dynamic-features: %s", q.To, has, few(refused)),
		fmt.Sprintf("take %s out of --central-features and --dynamic-features of all servers, before they are restarted as %s", q.Feature.Name, q.To)
}

// few names some processes, and counts the rest.
func few(names []string) string {
	const most = 5
	if n := len(names); n > most {
		names = append(names[:most:most], fmt.Sprintf("%d more", n-most))
	}
	return strings.Join(names, ", ")
}
