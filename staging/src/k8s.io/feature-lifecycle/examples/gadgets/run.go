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
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/client/clientset/versioned/scheme"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/lifecycle/controller"
	"k8s.io/feature-lifecycle/report"
	"k8s.io/feature-lifecycle/values"
)

// run is one replica, until the context ends.
func run(ctx context.Context, o *options, c *clients) error {
	follower, err := values.New(values.Config{
		Namespace: namespace, Component: component, Instance: o.instance, Gate: o.gate,
		Connect:     func() (versioned.Interface, error) { return c.own, nil },
		AlwaysWatch: true,
		Only:        o.decides.Follows,
	})
	if err != nil {
		return err
	}
	reporter, err := report.New(report.Config{
		Namespace: namespace, Component: component, Instance: o.instance, BinaryVersion: "v1.0.0",
		ListAll: true, Source: o.decides.Source(o.gate), Features: c.own, Kube: c.kube,
	})
	if err != nil {
		return err
	}
	// The values that people asked for are there before the operator's code asks.
	o.gate.BeforeFinal(func() { follower.Load(ctx) })
	o.gate.AddMetrics()

	// A replica that ends in order takes its report with it.
	defer func() {
		if err := reporter.Remove(context.WithoutCancel(ctx)); err != nil {
			fmt.Println("the report stays behind:", err)
		}
	}()
	var running wait.Group
	defer running.Wait()
	// What runs ends also when the server flow cannot begin.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	running.StartWithContext(ctx, follower.Run)
	running.StartWithContext(ctx, reporter.Run)
	running.StartWithContext(ctx, func(ctx context.Context) { work(ctx, o.gate) })
	select {
	case <-reporter.Started():
		return serve(ctx, o, c)
	case <-ctx.Done():
		return nil
	}
}

// serve runs the server flow of the operator's features. A cluster without the
// API, which takes no reports, never gets here.
func serve(ctx context.Context, o *options, c *clients) error {
	events := record.NewBroadcaster(record.WithContext(ctx))
	defer events.Shutdown()
	leases := informers.NewSharedInformerFactoryWithOptions(c.kube, 0, informers.WithNamespace(namespace))
	flow, err := controller.New(controller.Config{
		Namespace: namespace, Component: component, ServerID: o.instance,
		Features: declared, Client: c.features, Tasks: c.tasks,
		Leases:   []cache.SharedIndexInformer{leases.Coordination().V1().Leases().Informer()},
		Recorder: events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component}),
	})
	if err != nil {
		return err
	}
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.kube.CoreV1().Events(namespace)})
	leases.StartWithContext(ctx)
	defer leases.Shutdown()
	flow.Run(ctx, 1, nil)
	return nil
}

// work is what the operator is there for. It asks the gate as ever, and again
// when the value has changed.
func work(ctx context.Context, gate *featuregate.Gate) {
	changed := make(chan struct{}, 1)
	unsubscribe := gate.OnChange(func(featuregate.Snapshot) {
		select {
		case changed <- struct{}{}:
		default: // work looks anyhow
		}
	}, GadgetColours)
	defer unsubscribe()
	for {
		if gate.Enabled(GadgetColours) {
			fmt.Println("gadgets may have colours")
		} else {
			fmt.Println("gadgets have no colours")
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
