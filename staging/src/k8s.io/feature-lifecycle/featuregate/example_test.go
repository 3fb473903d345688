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

package featuregate_test

import (
	"fmt"

	"github.com/spf13/pflag"

	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/featuregate"
)

// A binary wraps its gate, parses flags as ever, and queries as ever; the layer
// knows what was queried.
func Example() {
	inner := componentfeaturegate.NewFeatureGate()
	if err := inner.Add(map[componentfeaturegate.Feature]componentfeaturegate.FeatureSpec{
		"Widgets": {PreRelease: componentfeaturegate.Alpha},
		"Gadgets": {PreRelease: componentfeaturegate.Beta, Default: true},
	}); err != nil {
		panic(err)
	}
	gate := featuregate.Wrap(inner)

	flags := pflag.NewFlagSet("example", pflag.ContinueOnError)
	gate.AddFlag(flags)
	if err := flags.Parse([]string{"--feature-gates=Widgets=true"}); err != nil {
		panic(err)
	}

	fmt.Println("Widgets enabled:", gate.Enabled("Widgets"))
	for _, o := range gate.Observations() {
		fmt.Printf("%s: enabled %t, queried %t, explicit %t\n", o.Name, o.Enabled, o.Queried, o.Explicit)
	}
	// Output:
	// Widgets enabled: true
	// Gadgets: enabled true, queried false, explicit false
	// Widgets: enabled true, queried true, explicit true
}
