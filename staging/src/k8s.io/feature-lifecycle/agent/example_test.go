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
	"os"
	"path/filepath"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	kubefake "k8s.io/client-go/kubernetes/fake"
	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/agent"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	"k8s.io/feature-lifecycle/featuregate"
)

// An operator takes the value of a feature from its namespace before its code queries it,
// follows another one while it runs, and reports both.
func Example() {
	server := fake.NewClientset(
		featureOf("Widgets", v1alpha1.ControlCentral, true),
		featureOf("Gadgets", v1alpha1.ControlDynamic, false))
	inner := componentfeaturegate.NewVersionedFeatureGate(version.MustParse("0.1"))
	if err := inner.Add(map[componentfeaturegate.Feature]componentfeaturegate.FeatureSpec{
		"Widgets": {PreRelease: componentfeaturegate.Alpha},
		"Gadgets": {PreRelease: componentfeaturegate.Alpha},
	}); err != nil {
		panic(err)
	}
	gate := featuregate.Wrap(inner)

	dir, err := os.MkdirTemp("", "values")
	if err != nil {
		panic(err)
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			panic(err)
		}
	}()
	process, err := agent.New(agent.Config{
		Reporter: agent.ReporterConfig{
			Namespace: "widgets", Component: "widget-operator", Instance: "widget-operator-0", BinaryVersion: "v0.1.0",
			Source: gate,
			// Real ones are made with agent.ClientConfig of rest.InClusterConfig.
			Clients: agent.Clients{Features: server, Kube: kubefake.NewSimpleClientset()},
		},
		Syncer: &agent.SyncerConfig{
			Gate:        gate,
			Connect:     func() (versioned.Interface, error) { return server, nil },
			File:        filepath.Join(dir, "values.json"),
			LoadTimeout: time.Minute,
		},
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	// The command line is parsed: the values become final.
	gate.BeforeFinal(func() { fmt.Println("values from:", process.Load(ctx)) })
	gate.AddMetrics()
	fmt.Println("Widgets:", gate.Enabled("Widgets"))

	changed := make(chan bool)
	unsubscribe := gate.OnChange(func(now featuregate.Snapshot) { changed <- now.Enabled("Gadgets") }, "Gadgets")
	defer unsubscribe()
	var running sync.WaitGroup
	running.Go(func() { process.Run(ctx) })
	<-process.Started()

	// The dynamic feature is turned on.
	if _, err := server.FeaturesV1alpha1().Features("widgets").Update(ctx, featureOf("Gadgets", v1alpha1.ControlDynamic, true), metav1.UpdateOptions{}); err != nil {
		panic(err)
	}
	fmt.Println("Gadgets:", <-changed)

	cancel()
	running.Wait()
	// A process that ends in order deletes its report.
	if err := process.Remove(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// values from: Server
	// Widgets: true
	// Gadgets: true
}

func featureOf(name string, control v1alpha1.FeatureControl, value bool) *v1alpha1.Feature {
	return &v1alpha1.Feature{
		ObjectMeta: metav1.ObjectMeta{Namespace: "widgets", Name: name},
		Status: v1alpha1.FeatureStatus{
			Control:    control,
			Configured: &v1alpha1.FeatureConfiguration{Value: value, Source: v1alpha1.SourceCommandLine},
		},
	}
}
