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

package operator_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/spf13/pflag"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/control"
	"k8s.io/feature-lifecycle/operator"
)

// Colors lets a Widget have a color.
const Colors componentfeaturegate.Feature = "Colors"

var declared = []lifecycle.Feature{{
	Name:      Colors,
	OnDisable: lifecycle.Tasks{lifecycle.ClearField(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, "spec.color")},
	Control:   lifecycle.Dynamic,
}}

// An operator declares its features, wraps its gate, and starts a replica beside its own
// work. The cluster of this example is an older one without the API features.k8s.io: the
// gate has what the command line says.
func Example() {
	cluster := httptest.NewServer(http.NotFoundHandler())
	defer cluster.Close()
	if err := run(context.Background(), &rest.Config{Host: cluster.URL}, "--feature-gates=Colors=true"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// widgets have colors: true
}

func run(ctx context.Context, client *rest.Config, args ...string) error {
	inner := componentfeaturegate.NewVersionedFeatureGate(version.MustParse("0.1"))
	if err := inner.Add(map[componentfeaturegate.Feature]componentfeaturegate.FeatureSpec{Colors: {PreRelease: componentfeaturegate.Alpha}}); err != nil {
		return err
	}
	gate := featuregate.Wrap(inner)
	// --feature-gates, --central-features and --dynamic-features.
	var decides control.Options
	flags := pflag.NewFlagSet("widget-operator", pflag.ContinueOnError)
	gate.AddFlag(flags)
	decides.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	replica, err := operator.New(operator.Config{
		Namespace: "widgets", Component: "widget-operator", Instance: "widget-operator-0", Version: "v0.1.0",
		Gate: gate, Features: declared, Control: decides, Client: client,
	})
	if err != nil {
		return err
	}
	if _, err := replica.Load(ctx); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	var group wait.Group
	group.StartWithContext(running, func(ctx context.Context) {
		if err := replica.Start(ctx); err != nil {
			fmt.Println(err)
		}
	})
	fmt.Println("widgets have colors:", gate.Enabled(Colors))
	// The operator's own work ends first, then what says that it uses its features.
	stop()
	group.Wait()
	return replica.Close(ctx)
}

// The permissions of the operator's Role and ClusterRole.
func ExampleRules() {
	for _, rule := range operator.Rules("widget-operator") {
		fmt.Println(rule.Resources, rule.Verbs)
	}
	for _, rule := range lifecycle.Rules(declared) {
		fmt.Println("in all namespaces:", rule.Resources, rule.Verbs)
	}
	// Output:
	// [components] [report]
	// [featurereports] [create get update]
	// [leases] [create get update]
	// [features] [create delete]
	// [features/status] [update]
	// [featurevalues] [create update delete]
	// [featurereports] [list watch delete]
	// [featurereports/any] [delete]
	// [leases] [get list watch delete]
	// [events] [create patch]
	// in all namespaces: [widgets] [get list patch]
	// in all namespaces: [customresourcedefinitions] [get]
}
