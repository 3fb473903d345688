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

package lifecycletest_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycletest"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// fixture is what an author keeps beside the declaration.
const fixture = `
apiVersion: example.com/v1
kind: Widget
metadata: {name: round, namespace: default}
spec: {size: 3, color: red}
`

// onUsedOffPristine is what an operator's suite does with each of its features.
// The suite has to be able to start the operator with another value of the gate.
func onUsedOffPristine(ctx context.Context, kit *lifecycletest.Kit, feature lifecycle.Feature, restart func(ctx context.Context, enabled bool) error) ([]string, error) {
	objects, err := lifecycletest.Parse([]byte(fixture))
	if err != nil {
		return nil, err
	}
	c := &lifecycletest.Case{Feature: feature, Fixture: "Colors.yaml", Objects: objects}
	return kit.Cycle(ctx, c, restart)
}

// An operator takes a feature of its own, which adds a field to Widgets, through
// on, used, off and pristine. Here fakes are the cluster and the operator; a suite
// has clients of a real one.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for _, feature := range []lifecycle.Feature{
		{Name: "Colors", OnDisable: lifecycle.Tasks{lifecycle.ClearField(widgets, "spec.color")}},
		{Name: "Shapes", OnDisable: lifecycle.Tasks{lifecycle.ClearField(widgets, "spec.shape")}},
	} {
		kit, restart := fakes(feature)
		problems, err := onUsedOffPristine(ctx, kit, feature, restart)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %d problems\n", feature.Name, len(problems))
		for _, problem := range problems {
			fmt.Println(problem)
		}
	}
	// Output:
	// Colors: 0 problems
	// Shapes: 1 problems
	// Shapes: task ClearField/widgets.example.com/spec.shape finds nothing of the fixture; add an object to Colors.yaml that has widgets.example.com spec.shape, or remove the task if the server does not store that (it has widgets.example.com default/round)
}

// fakes are a cluster that serves Widgets, and an operator that does the tasks of
// its feature when it is started with the gate off.
func fakes(feature lifecycle.Feature) (*lifecycletest.Kit, func(context.Context, bool) error) {
	objects := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{widgets: "WidgetList"})
	objects.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		created, err := meta.Accessor(action.(clienttesting.CreateAction).GetObject())
		if err == nil {
			created.SetUID(types.UID(created.GetName()))
		}
		return false, nil, err
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(widgets.GroupVersion().WithKind("Widget"), meta.RESTScopeNamespace)
	kit := &lifecycletest.Kit{
		Dynamic:   objects,
		Features:  fake.NewClientset(&v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Name: string(feature.Name), Namespace: "widgets"}}),
		Mapper:    static{mapper},
		Namespace: "widgets",
	}
	return kit, func(ctx context.Context, enabled bool) error {
		state := v1alpha1.StateOn
		if !enabled {
			state = v1alpha1.StateOff
			for _, t := range feature.OnDisable {
				if err := t.Run(ctx, task.Clients{Dynamic: kit.Dynamic, Mapper: kit.Mapper}, task.Attempt{Report: func(task.Progress) {}}); err != nil {
					return err
				}
			}
		}
		features := kit.Features.FeaturesV1alpha1().Features(kit.Namespace)
		f, err := features.Get(ctx, string(feature.Name), metav1.GetOptions{})
		if err != nil {
			return err
		}
		f.Status.State = state
		_, err = features.UpdateStatus(ctx, f, metav1.UpdateOptions{})
		return err
	}
}

// static is a mapper that has nothing to forget.
type static struct{ meta.RESTMapper }

func (static) Reset() {}
