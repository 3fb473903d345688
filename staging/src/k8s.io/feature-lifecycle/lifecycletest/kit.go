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

package lifecycletest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

const (
	// manager names the kit in managed fields.
	manager = "lifecycletest"
	// servedPatience is the time that a resource may take to be served whose
	// definition the fixture made itself.
	servedPatience = 30 * time.Second
	servedPeriod   = 100 * time.Millisecond
	// admittedPatience is the time that admission plugins may take to see an object that
	// the fixture made itself.
	admittedPatience = 10 * time.Second
)

// Kit does to a cluster what its users and its administrator do. Its methods may be called
// concurrently for cases that share no resources, if Release and Settle may; the fields are
// not changed meanwhile. Clients of client-go and the mapper of KitFor are safe for that:
// the kit resets the mapper, so another one has to be, too.
type Kit struct {
	// Dynamic and Features are clients of an administrator.
	Dynamic  dynamic.Interface
	Features versioned.Interface
	// Mapper finds resources by kinds. It is reset when it does not know one, since the
	// definition may be new.
	Mapper meta.ResettableRESTMapper
	// Namespace is where the Features are.
	Namespace string
	// Release, if it is set, does something else than delete an object that a
	// feature waits for, for example edit it so that it does not use the feature
	// any more. It returns false for what is to be deleted. It may be asked about
	// one object more than once.
	Release func(ctx context.Context, object Object) (released bool, err error)
	// Settle, if it is set, returns when controllers have done with the objects of a
	// case what they do, for example when finalizers and objects of their own are
	// there. Cycle calls it before it looks at the objects.
	Settle func(ctx context.Context, c *Case) error
}

// KitFor makes a kit of an administrator's configuration, with the Features of a
// namespace. It does not ask the server for anything. The configuration is
// copied, and its client-side rate limit left out: the server says who waits.
func KitFor(config *rest.Config, namespace string) (*Kit, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.RateLimiter = -1, nil
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of objects: %w", err)
	}
	features, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of Features: %w", err)
	}
	groups, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of discovery: %w", err)
	}
	return &Kit{Dynamic: objects, Features: features, Mapper: task.NewMapper(groups), Namespace: namespace}, nil
}

// Use creates the objects of a case. The server has to accept every field: a
// field that it drops or does not know is not in use.
func (k *Kit) Use(ctx context.Context, c *Case) error {
	c.uids = map[types.UID]bool{}
	uids := map[string]types.UID{}
	for _, object := range c.Objects {
		uid, err := k.create(ctx, named(object, uids))
		if err != nil {
			return fmt.Errorf("%s: creating %s %s: %w", c.Fixture, object.GetKind(), object.GetName(), err)
		}
		c.uids[uid] = true
		uids[uidOf+object.GetKind()+"/"+object.GetName()] = uid
	}
	return nil
}

// Install applies the objects of manifests, as an administrator does who installs an
// operator: its namespace, definitions and permissions. They stay. It may be repeated;
// nothing is applied of a manifest that cannot be read.
func (k *Kit) Install(ctx context.Context, files ...string) error {
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		objects, err := Parse(data)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, object := range objects {
			client, err := k.client(ctx, object)
			if err == nil {
				_, err = client.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: manager, Force: true})
			}
			if err != nil {
				return fmt.Errorf("%s: applying %s %s: %w", file, object.GetKind(), object.GetName(), err)
			}
		}
	}
	return nil
}

// uidOf begins a text in a fixture that stands for the UID of an object before:
// uid-of:Job/name. Controllers remove references to what does not exist.
const uidOf = "uid-of:"

// named returns the object with UIDs in the place of such texts.
func named(object *unstructured.Unstructured, uids map[string]types.UID) *unstructured.Unstructured {
	var replace func(value any) any
	replace = func(value any) any {
		switch typed := value.(type) {
		case map[string]any:
			for key, child := range typed {
				typed[key] = replace(child)
			}
		case []any:
			for i, child := range typed {
				typed[i] = replace(child)
			}
		case string:
			if uid, ok := uids[typed]; ok {
				return string(uid)
			}
		}
		return value
	}
	copied := object.DeepCopy()
	replace(copied.Object)
	return copied
}

func (k *Kit) create(ctx context.Context, object *unstructured.Unstructured) (types.UID, error) {
	client, err := k.client(ctx, object)
	if err != nil {
		return "", err
	}
	object = object.DeepCopy()
	status, hasStatus := object.Object["status"]
	delete(object.Object, "status")
	applied, err := json.Marshal(object.Object)
	if err != nil {
		return "", err
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	// Fixtures have it, since the objects of most people do.
	annotations[corev1.LastAppliedConfigAnnotation] = string(applied)
	object.SetAnnotations(annotations)
	created, err := admitted(ctx, client, object)
	if err != nil {
		return "", err
	}
	if !hasStatus {
		return created.GetUID(), nil
	}
	// A patch: controllers may write the status meanwhile.
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return "", err
	}
	_, err = client.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager, FieldValidation: metav1.FieldValidationStrict}, "status")
	if err != nil {
		return "", fmt.Errorf("its status: %w", err)
	}
	return created.GetUID(), nil
}

// admitted creates an object. Admission plugins read objects that were written before from
// caches, such as the node of a ResourceSlice, so they may refuse for a moment what they
// accept then.
func admitted(ctx context.Context, client dynamic.ResourceInterface, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var created *unstructured.Unstructured
	var last error
	err := wait.PollUntilContextTimeout(ctx, servedPeriod, admittedPatience, true, func(ctx context.Context) (bool, error) {
		created, last = client.Create(ctx, object, metav1.CreateOptions{FieldManager: manager, FieldValidation: metav1.FieldValidationStrict})
		if apierrors.IsForbidden(last) {
			return false, nil
		}
		return true, last
	})
	if err != nil && apierrors.IsForbidden(last) {
		return nil, fmt.Errorf("it was refused for %s: %w", admittedPatience, last)
	}
	return created, err
}

// client is for the resource of an object, which may be one whose definition was
// created a moment ago.
func (k *Kit) client(ctx context.Context, object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	var client dynamic.ResourceInterface
	var last error
	err := wait.PollUntilContextTimeout(ctx, servedPeriod, servedPatience, true, func(context.Context) (bool, error) {
		if client, last = k.served(object); meta.IsNoMatchError(last) {
			k.Mapper.Reset()
			return false, nil
		}
		return true, last
	})
	switch {
	case err == nil:
		return client, nil
	case ctx.Err() != nil:
		// Whoever waits ended it, whatever the server said last.
		return nil, fmt.Errorf("waiting until the server serves %s: %w: %w", kind, ctx.Err(), last)
	case meta.IsNoMatchError(last):
		return nil, fmt.Errorf("the server does not serve %s after %s: %w; does it need a feature gate or --runtime-config?", kind, servedPatience, last)
	default:
		return nil, fmt.Errorf("finding out how the server serves %s: %w", kind, last)
	}
}

// served is client for what is served already, as far as the mapper knows.
func (k *Kit) served(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := k.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return k.Dynamic.Resource(mapping.Resource), nil
	}
	return k.Dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
}

// View reads collections through the API.
func (k *Kit) View(ctx context.Context, resources ...schema.GroupVersionResource) (*View, error) {
	var objects []Object
	for _, resource := range resources {
		list, err := k.Dynamic.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", resource.GroupResource(), err)
		}
		for i := range list.Items {
			objects = append(objects, Object{Unstructured: &list.Items[i], Resource: resource.GroupResource()})
		}
	}
	return NewView(objects, k.Mapper, nil), nil
}

// release deletes an object as an administrator does who has read that it holds a
// feature, unless Release has something better. What is owned by it goes, too.
func (k *Kit) release(ctx context.Context, object Object) error {
	if k.Release != nil {
		if released, err := k.Release(ctx, object); released || err != nil {
			return err
		}
	}
	mapped, err := k.Mapper.ResourceFor(object.Resource.WithVersion(""))
	if err != nil {
		return err
	}
	background, now := metav1.DeletePropagationBackground, int64(0)
	err = k.Dynamic.Resource(mapped).Namespace(object.GetNamespace()).Delete(ctx, object.GetName(), metav1.DeleteOptions{PropagationPolicy: &background, GracePeriodSeconds: &now})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
