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

// Command flux is what Flux's kustomize-controller applies and detects drift with.
package main

import (
	"context"

	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"

	"k8s.io/kubernetes-features/test/external/clients/driver"
)

func main() {
	ctrl.SetLogger(logr.Discard())
	driver.Main(map[string]driver.Action{"apply": apply, "diff": diff})
}

// connect returns the engine as kustomize-controller makes it, and the objects.
func connect(r *driver.Request) (*ssa.ResourceManager, []*unstructured.Unstructured, error) {
	config, err := clientcmd.BuildConfigFromFlags("", r.Kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, nil, err
	}
	// Nothing is waited for, so there is no poller.
	manager := ssa.NewResourceManager(c, nil, ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"})
	var objects []*unstructured.Unstructured
	for _, content := range r.Objects {
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	manager.SetOwnerLabels(objects, "web", r.Namespace)
	return manager, objects, normalize.UnstructuredList(objects)
}

// apply applies what has drifted.
func apply(ctx context.Context, r *driver.Request) error {
	manager, objects, err := connect(r)
	if err != nil {
		return err
	}
	changes, err := manager.ApplyAllStaged(ctx, objects, ssa.DefaultApplyOptions())
	if err != nil {
		return err
	}
	for _, change := range changes.Entries {
		if err := r.Print(driver.Line{Action: "apply", Object: change.ObjMetadata.GroupKind.Kind + "/" + change.ObjMetadata.Name, Result: string(change.Action)}); err != nil {
			return err
		}
	}
	return nil
}

// diff detects drift.
func diff(ctx context.Context, r *driver.Request) error {
	manager, objects, err := connect(r)
	if err != nil {
		return err
	}
	for _, object := range objects {
		change, _, _, err := manager.Diff(ctx, object, ssa.DefaultDiffOptions())
		if err != nil {
			return err
		}
		if err := r.Print(driver.Line{Action: "diff", Object: object.GetKind() + "/" + object.GetName(), Result: string(change.Action)}); err != nil {
			return err
		}
	}
	return nil
}
