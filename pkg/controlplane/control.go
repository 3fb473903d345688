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

package controlplane

import (
	"fmt"
	"slices"

	componentfeaturegate "k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/kubernetes-features/pkg/catalog"
)

const (
	centralFlag = "central-features"
	dynamicFlag = "dynamic-features"
)

// Control names the features whose value others than each binary's own command
// line decide (KEP-3920, stages 2 and 3). All kube-apiservers have to name the
// same.
type Control struct {
	// Central features have kube-apiserver's value in all binaries from their
	// start on.
	Central []string
	// Dynamic features may also be changed through the API while binaries run.
	Dynamic []string
}

// of is who decides the value of a feature. A feature that is both is dynamic,
// which says more.
func (c Control) of(feature string) v1alpha1.FeatureControl {
	switch {
	case slices.Contains(c.Dynamic, feature):
		return v1alpha1.ControlDynamic
	case slices.Contains(c.Central, feature):
		return v1alpha1.ControlCentral
	default:
		return v1alpha1.ControlLocal
	}
}

// validate returns why features cannot be what they are named as: their gates
// are not known or locked, or their authors do not permit it.
func (c Control) validate(gate componentfeaturegate.MutableVersionedFeatureGate, entries []catalog.Entry) []error {
	var errs []error
	known := gate.GetAll()
	for _, named := range []struct {
		flag     string
		features []string
	}{{centralFlag, c.Central}, {dynamicFlag, c.Dynamic}} {
		for i, feature := range named.features {
			if slices.Contains(named.features[:i], feature) {
				continue
			}
			spec, ok := known[componentfeaturegate.Feature(feature)]
			switch {
			case !ok:
				errs = append(errs, fmt.Errorf("--%s: no feature gate %q is known at the emulation version %s; names are exact, kubectl get features -n kube-system lists them", named.flag, feature, gate.EmulationVersion()))
			case named.flag == dynamicFlag && gate.ExplicitlySet(componentfeaturegate.Feature(feature)):
				errs = append(errs, fmt.Errorf("--%s: feature gate %s is set by --feature-gates of this server, too, which would win over the API; remove it there and set spec.enabled of Feature %s in kube-system", named.flag, feature, feature))
			case spec.LockToDefault:
				errs = append(errs, fmt.Errorf("--%s: feature gate %s is locked to %t and cannot be set by anybody; remove it from the flag", named.flag, feature, spec.Default))
			default:
				if reason := refusal(named.flag, feature, entries); reason != "" {
					errs = append(errs, fmt.Errorf("--%s: feature %s %s", named.flag, feature, reason))
				}
			}
		}
	}
	return errs
}

// refusal is why the declaration of a feature does not permit what a flag asks
// for, "" if it does. Permission to change the value at any time includes that
// to set it from elsewhere.
func refusal(flag, feature string, entries []catalog.Entry) string {
	i := slices.IndexFunc(entries, func(e catalog.Entry) bool { return string(e.Name) == feature })
	if i < 0 {
		return "is not declared in pkg/catalog, so nobody has said that it is safe; set --feature-gates on each component instead"
	}
	switch entry := entries[i]; {
	case entry.Config != "":
		return fmt.Sprintf("has configuration of its own (%s) that a binary refuses while the gate is off, so a value from elsewhere could keep one from starting; set --feature-gates on each component instead", entry.Config)
	case entry.Control == v1alpha1.ControlDynamic:
		return ""
	case entry.Control == v1alpha1.ControlCentral && flag == centralFlag:
		return ""
	case entry.Control == v1alpha1.ControlCentral:
		return "is declared as one that binaries ask for only when they start, so its value cannot change while they run; name it in --" + centralFlag + " instead"
	default:
		return "is not declared as one whose value may come from elsewhere; set --feature-gates on each component instead"
	}
}

// controlled says in a server's report who decides values.
type controlled struct {
	*featuregate.Gate
	control Control
}

// Observations are those of the gate with who decides.
func (c controlled) Observations() []featuregate.Observation {
	observations := c.Gate.Observations()
	for i := range observations {
		if control := c.control.of(observations[i].Name); control != v1alpha1.ControlLocal {
			observations[i].Control = control
		}
	}
	return observations
}
