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

package localcluster

import (
	"slices"
	"strings"
)

// ControlOptions are the options of a cluster's control plane, without those of nodes. The
// zero value adds nothing to its command lines.
type ControlOptions struct {
	// FeatureGates are set on kube-apiservers alone: A=true,B=false. Central
	// features have these values in all components.
	FeatureGates string `json:"featureGates,omitempty"`
	// CentralFeatures and DynamicFeatures are their flags of these names. A
	// dynamic feature that is set by feature gates is left out, since
	// kube-apiserver refuses to be told both.
	CentralFeatures []string `json:"centralFeatures,omitempty"`
	DynamicFeatures []string `json:"dynamicFeatures,omitempty"`
	// RuntimeConfig is the flag of this name: the APIs that kube-apiservers serve beside
	// those of the default, <group>/<version>=true.
	RuntimeConfig []string `json:"runtimeConfig,omitempty"`
	// EmulatedVersion is the minor version that kube-apiservers, controller
	// managers and schedulers emulate, "" for their own. Node components have no
	// such flag: they are never newer than servers, so they move first on the way
	// down.
	EmulatedVersion string `json:"emulatedVersion,omitempty"`
}

// args are the flags of a component, in a cluster whose components have the given
// feature gates besides.
func (o ControlOptions) args(component component, featureGates string) []string {
	var args []string
	if o.EmulatedVersion != "" && slices.Contains([]string{APIServer, ControllerManager, Scheduler}, component.binary) {
		args = append(args, "--emulated-version="+o.EmulatedVersion)
	}
	if component.binary != APIServer {
		return args
	}
	if o.FeatureGates != "" {
		args = append(args, "--feature-gates="+o.FeatureGates)
	}
	if len(o.RuntimeConfig) > 0 {
		args = append(args, "--runtime-config="+strings.Join(o.RuntimeConfig, ","))
	}
	if len(o.CentralFeatures) > 0 {
		args = append(args, "--central-features="+strings.Join(o.CentralFeatures, ","))
	}
	if dynamic, _ := o.split(featureGates); len(dynamic) > 0 {
		args = append(args, "--dynamic-features="+strings.Join(dynamic, ","))
	}
	return args
}

// split separates the dynamic features that may be dynamic from those that feature
// gates set.
func (o ControlOptions) split(featureGates string) (dynamic, set []string) {
	var named []string
	for gate := range strings.SplitSeq(featureGates+","+o.FeatureGates, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(gate), "=")
		named = append(named, name)
	}
	for _, feature := range o.DynamicFeatures {
		if slices.Contains(named, feature) {
			set = append(set, feature)
		} else {
			dynamic = append(dynamic, feature)
		}
	}
	return dynamic, set
}

// Control returns the latest options of the control plane.
func (c *Cluster) Control() ControlOptions { return c.state.Control }

// SetControl sets the options of the control plane from its next start on.
func (c *Cluster) SetControl(options ControlOptions) { c.state.Control = options }
