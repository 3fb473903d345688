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

package agent_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	kubefake "k8s.io/client-go/kubernetes/fake"
	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/agent"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	"k8s.io/feature-lifecycle/featuregate"
)

// A process reports which gates its code has queried, and the values that it observed. The
// cluster here is a fake; a process has clients that are made with ClientConfig.
func ExampleReporter() {
	inner := componentfeaturegate.NewVersionedFeatureGate(version.MustParse("0.1"))
	if err := inner.Add(map[componentfeaturegate.Feature]componentfeaturegate.FeatureSpec{
		"Colors": {PreRelease: componentfeaturegate.Alpha}, "Shapes": {PreRelease: componentfeaturegate.Alpha},
	}); err != nil {
		fmt.Println(err)
		return
	}
	gate := featuregate.Wrap(inner)
	gate.Finalize()
	// Shapes is not queried.
	gate.Enabled("Colors")

	server := fake.NewClientset()
	reporter, err := agent.NewReporter(agent.ReporterConfig{
		Namespace: "widgets", Component: "widget-operator", Instance: "widget-operator-0", BinaryVersion: "v0.1.0",
		Source: gate, Clients: agent.Clients{Features: server, Kube: kubefake.NewSimpleClientset()},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	var running wait.Group
	running.StartWithContext(ctx, reporter.Run)
	<-reporter.Started()
	written, err := server.FeaturesV1alpha1().FeatureReports("widgets").Get(ctx, "widget-operator.widget-operator-0", metav1.GetOptions{})
	if err != nil {
		fmt.Println(err)
	}
	for _, feature := range written.Spec.Features {
		fmt.Println(feature.Name, "is on:", feature.Enabled)
	}
	stop()
	running.Wait()
	// A process that ends in order deletes its report.
	if err := reporter.Remove(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Colors is on: false
}
