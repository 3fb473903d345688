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

package controller_test

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/controller"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// A server flow makes a Feature for each gate that a server reports. Fakes are the cluster
// here. Operators need not call this package: package operator does.
func Example() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	server := fake.NewClientset(&v1alpha1.FeatureReport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "widgets", Name: "widget-operator.a"},
		Spec: v1alpha1.FeatureReportSpec{
			Component: "widget-operator", Instance: "a", BinaryVersion: "v0.1.0", EmulationVersion: "0.1",
			Features: []v1alpha1.ReportedFeature{{Name: "Colors", Stage: v1alpha1.StageAlpha}},
		},
	})
	leases := informers.NewSharedInformerFactoryWithOptions(kubefake.NewSimpleClientset(), 0, informers.WithNamespace("widgets"))
	flow, err := controller.New(controller.Config{
		Namespace: "widgets", Component: "widget-operator", ServerID: "a",
		Features: []lifecycle.Feature{{Name: "Colors"}}, Client: server,
		Tasks:    task.Clients{Dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())},
		Leases:   []cache.SharedIndexInformer{leases.Coordination().V1().Leases().Informer()},
		Recorder: record.NewFakeRecorder(100),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	made, err := server.FeaturesV1alpha1().Features("widgets").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	leases.StartWithContext(ctx)
	var running wait.Group
	running.StartWithContext(ctx, func(ctx context.Context) { flow.Run(ctx, 1, nil) })
	if event, ok := <-made.ResultChan(); ok {
		fmt.Println(event.Type, event.Object.(*v1alpha1.Feature).Name)
	}
	stop()
	running.Wait()
	leases.Shutdown()
	// Output:
	// ADDED Colors
}
