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

package catalog

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// storedPage is how many stored objects are read at once.
const storedPage = 500

// rewriteCBOR rewrites the custom resources that are stored as CBOR. Servers
// with the gate off read them and write JSON, so a write that changes nothing
// suffices. Other servers, of versions before CBOR, could not read them.
//
// Which objects are custom resources is known only while it runs, so the rule is
// for all resources, as that of the in-tree storage version migrator is.
func rewriteCBOR() task.Task {
	return lifecycle.Func("RewriteCBOR", "rewrite custom resources that are stored as CBOR", findCBOR, runCBOR,
		rbacv1.PolicyRule{APIGroups: []string{crds.Group}, Resources: []string{crds.Resource}, Verbs: []string{"list"}},
		rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"patch"}})
}

// findCBOR counts them. What encoding is used is seen nowhere but in storage.
func findCBOR(ctx context.Context, clients task.Clients) ([]v1alpha1.ResourceLeftovers, error) {
	if clients.Storage == nil {
		return nil, nil
	}
	var found []v1alpha1.ResourceLeftovers
	err := eachDefinition(ctx, clients, func(definition definition) error {
		leftovers := v1alpha1.ResourceLeftovers{Group: definition.resource.Group, Resource: definition.resource.Resource}
		err := eachCBOR(ctx, clients.Storage, definition.resource.GroupResource(), func(object task.StoredObject) error {
			countLeftover(&leftovers, object.Namespace, object.Name)
			return nil
		})
		if leftovers.Count > 0 {
			found = append(found, leftovers)
		}
		return err
	})
	return found, err
}

func runCBOR(ctx context.Context, clients task.Clients, attempt task.Attempt) error {
	if clients.Storage == nil {
		return errors.New("how custom resources are stored is known to kube-apiserver only")
	}
	var progress task.Progress
	var refused []string
	err := eachDefinition(ctx, clients, func(definition definition) error {
		return eachCBOR(ctx, clients.Storage, definition.resource.GroupResource(), func(object task.StoredObject) error {
			progress.Total++
			err := rewrite(ctx, clients, definition, object)
			switch {
			case err == nil:
				progress.Done++
			case ctx.Err() != nil:
				return ctx.Err()
			default:
				refused = append(refused, fmt.Sprintf("%s %s/%s: %v", definition.resource.GroupResource(), object.Namespace, object.Name, err))
			}
			attempt.Report(progress)
			return nil
		})
	})
	switch {
	case err != nil:
		return err
	case len(refused) > 0:
		return &task.BlockedError{Message: fmt.Sprintf("%d custom resources are stored as CBOR and cannot be written: %v", len(refused), refused[:min(len(refused), maxExamples)])}
	default:
		return nil
	}
}

// rewrite has the server write one object as it is. Gone is no error, and
// neither is another object of the same name: nothing is changed in it.
func rewrite(ctx context.Context, clients task.Clients, d definition, object task.StoredObject) error {
	if d.resource.Version == "" {
		return errors.New("no version of it is served")
	}
	_, err := clients.Dynamic.Resource(d.resource).Namespace(object.Namespace).
		Patch(ctx, object.Name, apitypes.MergePatchType, []byte("{}"), metav1.PatchOptions{FieldManager: "feature-lifecycle"})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// definition is a CustomResourceDefinition's resource. The version is one that
// is served, "" when none is.
type definition struct {
	resource schema.GroupVersionResource
}

// eachDefinition calls visit for every CustomResourceDefinition.
func eachDefinition(ctx context.Context, clients task.Clients, visit func(definition) error) error {
	list, err := clients.Dynamic.Resource(crds).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing definitions of custom resources: %w", err)
	}
	for i := range list.Items {
		if err := visit(definitionOf(&list.Items[i])); err != nil {
			return err
		}
	}
	return nil
}

func definitionOf(object *unstructured.Unstructured) definition {
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(object.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
	d := definition{schema.GroupVersionResource{Group: group, Resource: plural}}
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if version["served"] == true {
			d.resource.Version, _ = version["name"].(string)
		}
	}
	return d
}

// eachCBOR calls visit for every object of a resource that is stored as CBOR.
func eachCBOR(ctx context.Context, storage task.Storage, resource schema.GroupResource, visit func(task.StoredObject) error) error {
	for from := ""; ; {
		page, next, err := storage.List(ctx, resource, storedPage, from)
		if err != nil {
			return err
		}
		for _, object := range page {
			if object.MediaType != runtime.ContentTypeCBOR {
				continue
			}
			if err := visit(object); err != nil {
				return err
			}
		}
		if from = next; from == "" {
			return nil
		}
	}
}
