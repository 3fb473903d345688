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

// Command clientgo is a client of client-go alone: typed clients in protobuf, apply
// configurations, informers, and what client-go extracts from managed fields.
package main

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	resourceapply "k8s.io/client-go/applyconfigurations/resource/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"k8s.io/kubernetes-features/test/external/clients/driver"
)

// manager is the field manager.
const manager = "clientgo"

func main() {
	driver.Main(map[string]driver.Action{
		"apply":                with((*clients).apply),
		"extract":              with((*clients).extract),
		"extract-unstructured": with((*clients).extractUnstructured),
		"get":                  with((*clients).get),
		"update":               with((*clients).update),
		"watch":                with((*clients).watch),
	})
}

// clients are those of one request.
type clients struct {
	*driver.Request
	kube    kubernetes.Interface
	dynamic dynamic.Interface
}

// with makes clients for an action.
func with(do func(*clients, context.Context) error) driver.Action {
	return func(ctx context.Context, r *driver.Request) error {
		config, err := clientcmd.BuildConfigFromFlags("", r.Kubeconfig)
		if err != nil {
			return err
		}
		config.QPS = -1
		c := &clients{Request: r}
		if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
			return err
		}
		// Typed clients of controllers ask for protobuf.
		typed := rest.CopyConfig(config)
		typed.ContentType, typed.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
		if c.kube, err = kubernetes.NewForConfig(typed); err != nil {
			return err
		}
		return do(c, ctx)
	}
}

// one is an object of the manifest, and how its typed client reaches it.
type one struct {
	kind, namespace, name string
	resource              schema.GroupVersionResource
	gvk                   schema.GroupVersionKind
	rest                  rest.Interface
	manifest              []byte
}

func (o one) object() string { return o.kind + "/" + o.name }

// each does something with each object of the manifest.
func (c *clients) each(do func(one) error) error {
	for _, content := range c.Objects {
		u := unstructured.Unstructured{Object: content}
		manifest, err := json.Marshal(content)
		if err != nil {
			return err
		}
		o := one{kind: u.GetKind(), namespace: u.GetNamespace(), name: u.GetName(), gvk: u.GroupVersionKind(), manifest: manifest}
		switch o.kind {
		case "StatefulSet":
			o.resource, o.rest = o.gvk.GroupVersion().WithResource("statefulsets"), c.kube.AppsV1().RESTClient()
		case "Deployment":
			o.resource, o.rest = o.gvk.GroupVersion().WithResource("deployments"), c.kube.AppsV1().RESTClient()
		case "ResourceSlice":
			o.resource, o.rest = o.gvk.GroupVersion().WithResource("resourceslices"), c.kube.ResourceV1().RESTClient()
		default:
			return fmt.Errorf("no typed client is known for %s %s; add it to each", o.kind, o.name)
		}
		if err := do(o); err != nil {
			return fmt.Errorf("%s: %w", o.object(), err)
		}
	}
	return nil
}

func (o one) read(ctx context.Context) (runtime.Object, error) {
	object, err := scheme.Scheme.New(o.gvk)
	if err != nil {
		return nil, err
	}
	return object, o.rest.Get().NamespaceIfScoped(o.namespace, o.namespace != "").Resource(o.resource.Resource).Name(o.name).Do(ctx).Into(object)
}

// get reads by typed clients.
func (c *clients) get(ctx context.Context) error {
	return c.each(func(o one) error {
		object, err := o.read(ctx)
		if err != nil {
			return err
		}
		return c.Print(driver.Line{Action: "get", Object: o.object(), Content: object})
	})
}

// update reads, changes an annotation, and writes what it read: fields that these types do
// not know would be lost.
func (c *clients) update(ctx context.Context) error {
	return c.each(func(o one) error {
		object, err := o.read(ctx)
		if err != nil {
			return err
		}
		accessor := object.(metav1.Object)
		annotations := accessor.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["updated-by"] = manager
		accessor.SetAnnotations(annotations)
		result, err := scheme.Scheme.New(o.gvk)
		if err != nil {
			return err
		}
		err = o.rest.Put().NamespaceIfScoped(o.namespace, o.namespace != "").Resource(o.resource.Resource).Name(o.name).
			Param("fieldManager", manager).Body(object).Do(ctx).Into(result)
		if err != nil {
			return err
		}
		return c.Print(driver.Line{Action: "update", Object: o.object(), Content: result})
	})
}

// apply applies by typed apply configurations.
func (c *clients) apply(ctx context.Context) error {
	options := metav1.ApplyOptions{FieldManager: manager, Force: true}
	return c.each(func(o one) error {
		var result runtime.Object
		var err error
		switch o.kind {
		case "StatefulSet":
			configuration := &appsapply.StatefulSetApplyConfiguration{}
			if err := json.Unmarshal(o.manifest, configuration); err != nil {
				return err
			}
			result, err = c.kube.AppsV1().StatefulSets(o.namespace).Apply(ctx, configuration, options)
		case "Deployment":
			configuration := &appsapply.DeploymentApplyConfiguration{}
			if err := json.Unmarshal(o.manifest, configuration); err != nil {
				return err
			}
			result, err = c.kube.AppsV1().Deployments(o.namespace).Apply(ctx, configuration, options)
		case "ResourceSlice":
			configuration := &resourceapply.ResourceSliceApplyConfiguration{}
			if err := json.Unmarshal(o.manifest, configuration); err != nil {
				return err
			}
			result, err = c.kube.ResourceV1().ResourceSlices().Apply(ctx, configuration, options)
		}
		if err != nil {
			return err
		}
		return c.Print(driver.Line{Action: "apply", Object: o.object(), Content: result})
	})
}

// extract asks what this manager applied, by the types that are built in.
func (c *clients) extract(ctx context.Context) error {
	return c.each(func(o one) error {
		if o.kind != "Deployment" {
			return nil
		}
		object, err := o.read(ctx)
		if err != nil {
			return err
		}
		extracted, err := appsapply.ExtractDeployment(object.(*appsv1.Deployment), manager)
		if err != nil {
			return err
		}
		return c.Print(driver.Line{Action: "extract", Object: o.object(), Content: extracted})
	})
}

// extractUnstructured asks the same by types that are made of the published documents. An
// error is what the client saw.
func (c *clients) extractUnstructured(ctx context.Context) error {
	extractor, err := metaapply.NewUnstructuredExtractor(c.kube.Discovery())
	if err != nil {
		return err
	}
	return c.each(func(o one) error {
		object, err := c.dynamic.Resource(o.resource).Namespace(o.namespace).Get(ctx, o.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		line := driver.Line{Action: "extract", Object: o.object()}
		extracted, err := extractor.Extract(object, manager)
		if err != nil {
			line.Result, line.Message = "error", err.Error()
		} else {
			line.Content = extracted.Object
		}
		return c.Print(line)
	})
}
