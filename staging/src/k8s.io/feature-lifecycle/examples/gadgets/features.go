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

package main

import (
	"github.com/spf13/pflag"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/control"
)

// GadgetColours lets a Gadget have a colour. It is alpha, so people will turn it
// off again.
const GadgetColours componentfeaturegate.Feature = "GadgetColours"

// gates are the operator's feature gates, as any binary of Kubernetes has them.
var gates = map[componentfeaturegate.Feature]componentfeaturegate.FeatureSpec{
	GadgetColours: {Default: false, PreRelease: componentfeaturegate.Alpha},
}

var gadgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}

// declared says what becomes of what the features leave behind, and who may decide
// their values.
var declared = []lifecycle.Feature{{
	Name:      GadgetColours,
	OnDisable: lifecycle.Tasks{lifecycle.ClearField(gadgets, "spec.colour")},
	Control:   lifecycle.Dynamic,
}}

// options are what the command line says.
type options struct {
	kubeconfig, instance string
	gate                 *featuregate.Gate
	decides              control.Options
}

// parse reads the command line: --feature-gates as ever, and which features are
// set in one place for all replicas. What their authors do not permit newReplica refuses.
func parse(args []string) (*options, error) {
	inner := componentfeaturegate.NewVersionedFeatureGate(version.MustParse("1.0"))
	if err := inner.Add(gates); err != nil {
		return nil, err
	}
	o := &options{gate: featuregate.Wrap(inner)}
	flags := pflag.NewFlagSet(component, pflag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "How to reach the cluster; empty inside of a pod.")
	flags.StringVar(&o.instance, "instance", "", "Name of this replica, for example that of its pod.")
	o.gate.AddFlag(flags)
	o.decides.AddFlags(flags)
	return o, flags.Parse(args)
}
