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

package control_test

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/control"
)

// The author of a feature decides which control it may have; flags cannot name it as more.
func ExampleOptions_Validate() {
	for _, args := range [][]string{
		{"--central-features=Gadgets"},
		{"--dynamic-features=Gadgets"},
		{"--central-features=Gizmos"},
		{"--dynamic-features=Widgets", "--feature-gates=Widgets=true"},
	} {
		_, _, err := options(args)
		fmt.Println(args, err)
	}
	// Output:
	// [--central-features=Gadgets] <nil>
	// [--dynamic-features=Gadgets] --dynamic-features: feature Gadgets is declared as one that binaries query only when they start, so its value cannot change while they run; name it in --central-features instead
	// [--central-features=Gizmos] --central-features: feature Gizmos is not declared as one whose value may come from elsewhere (Control of its lifecycle.Feature); set --feature-gates on each component instead
	// [--dynamic-features=Widgets --feature-gates=Widgets=true] --dynamic-features: feature gate Widgets is set by --feature-gates of this server, too, which would win over the API; remove it there and set spec.enabled of Feature Widgets in widgets
}

const (
	namespace = "widgets"
	component = "widget-operator"
)

// declared is what the authors of the operator's features permit.
var declared = []lifecycle.Feature{
	{Name: "Widgets", Control: lifecycle.Dynamic},
	{Name: "Gadgets", Control: lifecycle.Central},
}

// options reads a command line: the gate, and the control of its features.
func options(args []string) (*featuregate.Gate, control.Options, error) {
	inner := componentfeaturegate.NewFeatureGate()
	if err := inner.Add(map[componentfeaturegate.Feature]componentfeaturegate.FeatureSpec{
		"Widgets": {PreRelease: componentfeaturegate.Alpha},
		"Gadgets": {PreRelease: componentfeaturegate.Beta, Default: true},
		"Gizmos":  {PreRelease: componentfeaturegate.Alpha},
	}); err != nil {
		return nil, control.Options{}, err
	}
	gate := featuregate.Wrap(inner)
	var decides control.Options
	flags := pflag.NewFlagSet(component, pflag.ContinueOnError)
	gate.AddFlag(flags)
	decides.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return nil, control.Options{}, err
	}
	return gate, decides, errors.Join(decides.Validate(control.Constraints{Namespace: namespace, Gate: gate, Declared: declared})...)
}
