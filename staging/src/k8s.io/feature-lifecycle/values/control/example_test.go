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

package control_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/client/clientset/versioned/scheme"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/controller"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/report"
	"k8s.io/feature-lifecycle/values"
	"k8s.io/feature-lifecycle/values/control"
)

// An operator whose features are set in its own namespace, by its own replicas:
//
//	widget-operator --dynamic-features=Widgets
//	kubectl patch feature -n widgets Widgets --type=merge -p '{"spec":{"enabled":true}}'
//
// It needs RBAC in that namespace: all of features, features/status,
// featurereports and leases, and to create events.
func Example() {
	config, err := rest.InClusterConfig()
	if err != nil {
		fmt.Println("not in a cluster:", err)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	replica := operator{instance: os.Getenv("POD_NAME"), features: versioned.NewForConfigOrDie(config), kube: kubernetes.NewForConfigOrDie(config),
		dynamic: dynamic.NewForConfigOrDie(config)}
	if err := replica.run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// The author of a feature decides what may become of it; nobody can name it as
// more.
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
	// [--dynamic-features=Gadgets] --dynamic-features: feature Gadgets is declared as one that binaries ask for only when they start, so its value cannot change while they run; name it in --central-features instead
	// [--central-features=Gizmos] --central-features: feature Gizmos is not declared as one whose value may come from elsewhere (Control of its lifecycle.Feature), so nobody has said that it is safe; set --feature-gates on each component instead
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

// options reads a command line: the gate, and who decides its features.
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
	return gate, decides, errors.Join(decides.Validate(control.Rules{Namespace: namespace, Gate: gate, Declared: declared})...)
}

// operator is one replica.
type operator struct {
	instance string
	features versioned.Interface
	kube     kubernetes.Interface
	dynamic  dynamic.Interface
	// work is what the operator is there for.
	work func(ctx context.Context, gate *featuregate.Gate)
}

// run serves until the context ends.
func (o *operator) run(ctx context.Context, args []string) error {
	gate, decides, err := options(args)
	if err != nil {
		return err
	}
	follower, err := values.New(values.Config{
		Namespace: namespace, Component: component, Instance: o.instance, Gate: gate,
		Connect:     func() (versioned.Interface, error) { return o.features, nil },
		AlwaysWatch: true,
		Only:        decides.Follows,
	})
	if err != nil {
		return err
	}
	reporter, err := report.New(report.Config{
		Namespace: namespace, Component: component, Instance: o.instance, BinaryVersion: "v1.2.3",
		ListAll: true, Source: decides.Source(gate), Features: o.features, Kube: o.kube,
	})
	if err != nil {
		return err
	}
	events := record.NewBroadcaster()
	defer events.Shutdown()
	leases := informers.NewSharedInformerFactoryWithOptions(o.kube, 0, informers.WithNamespace(namespace))
	flow, err := controller.New(controller.Config{
		Namespace: namespace, Component: component, ServerID: o.instance, Features: declared, Client: o.features,
		Tasks:    task.Clients{Dynamic: o.dynamic},
		Leases:   []cache.SharedIndexInformer{leases.Coordination().V1().Leases().Informer()},
		Recorder: events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component}),
	})
	if err != nil {
		return err
	}
	// The values that people asked for are there before the operator's code asks.
	gate.BeforeFinal(func() { follower.Load(ctx) })
	gate.AddMetrics()

	var running wait.Group
	defer running.Wait()
	running.StartWithContext(ctx, follower.Run)
	running.StartWithContext(ctx, reporter.Run)
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: o.kube.CoreV1().Events("")})
	leases.StartWithContext(ctx)
	defer leases.Shutdown()
	running.StartWithContext(ctx, func(ctx context.Context) {
		select {
		case <-reporter.Started():
			flow.Run(ctx, 1, nil)
		case <-ctx.Done():
		}
	})
	if o.work != nil {
		running.StartWithContext(ctx, func(ctx context.Context) { o.work(ctx, gate) })
	}
	<-ctx.Done()
	return nil
}
