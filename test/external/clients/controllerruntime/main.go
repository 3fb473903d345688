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

// Command controllerruntime is a client of controller-runtime: typed and unstructured
// reads, server-side apply, and an operator that insists on what the manifest says.
package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"k8s.io/kubernetes-features/test/external/clients/driver"
)

// manager is the field manager.
const manager = "controllerruntime"

func main() {
	ctrl.SetLogger(logr.Discard())
	driver.Main(map[string]driver.Action{"apply": apply, "get": get, "operate": operate})
}

func connect(r *driver.Request) (*rest.Config, client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", r.Kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	return config, c, err
}

// each does something with each object of the manifest.
func each(r *driver.Request, do func(name string, u *unstructured.Unstructured) error) error {
	for _, content := range r.Objects {
		u := &unstructured.Unstructured{Object: content}
		name := u.GetKind() + "/" + u.GetName()
		if err := do(name, u); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// get reads each object in three ways: typed, unstructured, and metadata alone.
func get(ctx context.Context, r *driver.Request) error {
	_, c, err := connect(r)
	if err != nil {
		return err
	}
	return each(r, func(name string, u *unstructured.Unstructured) error {
		gvk := u.GroupVersionKind()
		typed, err := scheme.Scheme.New(gvk)
		if err != nil {
			return err
		}
		untyped, partial := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}
		untyped.SetGroupVersionKind(gvk)
		partial.SetGroupVersionKind(gvk)
		for _, way := range []struct {
			by     string
			object client.Object
		}{{"typed", typed.(client.Object)}, {"unstructured", untyped}, {"metadata", partial}} {
			if err := c.Get(ctx, client.ObjectKeyFromObject(u), way.object); err != nil {
				return fmt.Errorf("%s: %w", way.by, err)
			}
			if err := r.Print(driver.Line{Action: "get", Object: name, Result: way.by, Content: way.object}); err != nil {
				return err
			}
		}
		return nil
	})
}

// apply applies by server-side apply.
func apply(ctx context.Context, r *driver.Request) error {
	_, c, err := connect(r)
	if err != nil {
		return err
	}
	return each(r, func(name string, u *unstructured.Unstructured) error {
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(manager), client.ForceOwnership); err != nil {
			return err
		}
		return r.Print(driver.Line{Action: "apply", Object: name, Content: u})
	})
}

// operate runs controllers that set in each StatefulSet and Deployment of the manifest what the
// manifest says, whenever one changes, as operators do: they never give up a field. It
// prints each reconciliation, until standard input ends.
func operate(ctx context.Context, r *driver.Request) error {
	ctx = driver.UntilInputEnds(ctx)
	config, _, err := connect(r)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{r.Namespace: {}}},
	})
	if err != nil {
		return err
	}
	err = each(r, func(name string, u *unstructured.Unstructured) error {
		data, err := json.Marshal(u)
		if err != nil {
			return err
		}
		switch u.GetKind() {
		case "StatefulSet":
			wanted := &appsv1.StatefulSet{}
			if err := json.Unmarshal(data, wanted); err != nil {
				return err
			}
			return insist(mgr, r, name, u, func() client.Object { return &appsv1.StatefulSet{} }, func(object client.Object) {
				object.(*appsv1.StatefulSet).Spec.UpdateStrategy = wanted.Spec.UpdateStrategy
			})
		case "Deployment":
			wanted := &appsv1.Deployment{}
			if err := json.Unmarshal(data, wanted); err != nil {
				return err
			}
			return insist(mgr, r, name, u, func() client.Object { return &appsv1.Deployment{} }, func(object client.Object) {
				spec := &object.(*appsv1.Deployment).Spec
				if len(spec.Template.Spec.Containers) == 0 {
					*spec = *wanted.Spec.DeepCopy()
				}
				is, want := &spec.Template.Spec.Containers[0], wanted.Spec.Template.Spec.Containers[0]
				is.Lifecycle, is.RestartPolicy, is.RestartPolicyRules = want.Lifecycle, want.RestartPolicy, want.RestartPolicyRules
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// insist adds a controller of one object.
func insist(mgr ctrl.Manager, r *driver.Request, name string, u *unstructured.Unstructured, empty func() client.Object, set func(client.Object)) error {
	key := client.ObjectKeyFromObject(u)
	return ctrl.NewControllerManagedBy(mgr).For(empty()).Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		if request.NamespacedName != key {
			// Events of an informer come in order: what came before has been reconciled.
			return reconcile.Result{}, r.Print(driver.Line{Action: "reconcile", Object: u.GetKind() + "/" + request.Name, Result: "not managed"})
		}
		object := empty()
		object.SetNamespace(key.Namespace)
		object.SetName(key.Name)
		result, err := controllerutil.CreateOrUpdate(ctx, mgr.GetClient(), object, func() error {
			set(object)
			return nil
		})
		line := driver.Line{Action: "reconcile", Object: name, Result: string(result), Content: object}
		if err != nil {
			line.Result, line.Message = "error", err.Error()
		}
		// A test that does not read any more has ended.
		_ = r.Print(line)
		return reconcile.Result{}, err
	}))
}
