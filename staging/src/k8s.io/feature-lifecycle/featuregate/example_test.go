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

package featuregate_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/report"
)

// A binary wraps its gate, parses flags as ever, and asks as ever; the layer
// knows what was asked.
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
		fmt.Printf("%s: enabled %t, asked %t, explicit %t\n", o.Name, o.Enabled, o.Asked, o.Explicit)
	}
	// Output:
	// Widgets enabled: true
	// Gadgets: enabled true, asked false, explicit false
	// Widgets: enabled true, asked true, explicit true
}

// A binary reports what it asks for from when its values are final until it
// ends. Where the cluster has no such API, or does not allow it, the binary goes
// on as without a reporter.
func Example_reporting() {
	inner := componentfeaturegate.NewFeatureGate()
	if err := inner.Add(map[componentfeaturegate.Feature]componentfeaturegate.FeatureSpec{
		"Widgets": {PreRelease: componentfeaturegate.Alpha},
	}); err != nil {
		panic(err)
	}
	gate := featuregate.Wrap(inner)
	flags := pflag.NewFlagSet("widget-operator", pflag.ExitOnError)
	gate.AddFlag(flags)
	if err := flags.Parse(os.Args[1:]); err != nil {
		panic(err)
	}
	// Kubernetes' own binaries call it too; package reporting of the fork starts
	// its reporter then (gate.OnAddMetrics).
	gate.AddMetrics()

	config, err := rest.InClusterConfig()
	if err != nil {
		fmt.Println("not in a cluster:", err)
		return
	}
	reporter, err := report.New(report.Config{
		Namespace:     "widgets",
		Component:     "widget-operator",
		Instance:      os.Getenv("POD_NAME"),
		BinaryVersion: "v1.2.3",
		Source:        gate,
		Features:      versioned.NewForConfigOrDie(config),
		Kube:          kubernetes.NewForConfigOrDie(config),
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		reporter.Run(ctx)
	}()

	if gate.Enabled("Widgets") {
		fmt.Println("with widgets")
	}

	<-ctx.Done()
	<-done
	if err := reporter.Remove(context.Background()); err != nil {
		fmt.Println("the report stays behind:", err)
	}
}
