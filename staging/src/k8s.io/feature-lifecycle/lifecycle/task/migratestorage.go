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

package task

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

var (
	migrations = schema.GroupResource{Group: "storagemigration.k8s.io", Resource: "storageversionmigrations"}
	crds       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

const (
	// migrationLabel names the feature on a migration that was made for it, and
	// flowLabel the namespace that the Feature is in: migrations are in none, and
	// several operators may have features of one name.
	migrationLabel = "features.k8s.io/feature"
	flowLabel      = "features.k8s.io/namespace"
)

// labelOf returns the value of that label: the feature's name, or a hash of it. Names
// may be longer than labels and end in characters that labels may not end in.
func labelOf(feature string) string {
	if feature != "" && len(validation.IsValidLabelValue(feature)) == 0 {
		return feature
	}
	sum := sha256.Sum256([]byte(feature))
	return "sha256-" + hex.EncodeToString(sum[:16])
}

// MigrateStorage rewrites every object of a resource in the version that the server
// stores now. It drives the in-tree StorageVersionMigration, whose controller is part
// of kube-controller-manager, and waits for it.
func MigrateStorage(resource schema.GroupResource) Task {
	m := migrateStorage{resource: resource}
	return Task{
		Name:        "MigrateStorage/" + resource.String(),
		Description: fmt.Sprintf("rewrite every object of %s in the version that is stored now", resource),
		unlimited:   "a storage version migration rewrites every object of a resource",
		about:       resource,
		Find:        m.find,
		Run:         m.run,
		// Migrations are named after transitions, so rules cannot name them.
		Rules: append([]rbacv1.PolicyRule{rule(migrations, "list", "watch", "create", "delete"), rule(resource, "list")}, definitionRules(resource)...),
	}
}

type migrateStorage struct {
	resource schema.GroupResource
}

// find counts the objects of other versions. Without access to storage only a custom
// resource's definition shows that there may be some; then all count.
func (m migrateStorage) find(ctx context.Context, clients Clients) ([]v1alpha1.ResourceLeftovers, error) {
	definition, err := m.definition(ctx, clients)
	switch {
	case err != nil:
		return nil, fmt.Errorf("finding old versions of %s: %w", m.resource, err)
	case definition == nil && clients.Storage == nil:
		return nil, nil
	case definition == nil:
		return findStored(ctx, clients.Storage, m.resource, func(o StoredObject) bool { return o.Outdated })
	}
	if clients.Storage != nil {
		written := schema.GroupVersion{Group: m.resource.Group, Version: storageVersion(definition)}.String()
		return findStored(ctx, clients.Storage, m.resource, func(o StoredObject) bool { return o.APIVersion != "" && o.APIVersion != written })
	}
	stored, _, _ := unstructured.NestedStringSlice(definition.Object, "status", "storedVersions")
	if len(stored) < 2 {
		return nil, nil
	}
	resource, isServed, err := served(clients, m.resource)
	switch {
	case err != nil:
		return nil, err
	case !isServed:
		return nil, undefined(ctx, clients, m.resource)
	}
	return find(ctx, clients, resource, "", func(*unstructured.Unstructured) bool { return true })
}

// definition returns that of a custom resource, nil for others.
func (m migrateStorage) definition(ctx context.Context, clients Clients) (*unstructured.Unstructured, error) {
	if !mayBeCustom(m.resource) {
		return nil, nil
	}
	definition, err := clients.Dynamic.Resource(crds).Get(ctx, m.resource.String(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return definition, err
}

// storageVersion returns the version in which a definition's objects are stored.
func storageVersion(definition *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if version["storage"] == true {
			name, _ := version["name"].(string)
			return name
		}
	}
	return ""
}

// run makes a migration for this transition, or takes up the one that an earlier
// attempt made, waits until it has ended, and deletes it.
func (m migrateStorage) run(ctx context.Context, clients Clients, attempt Attempt) error {
	resource, isServed, err := served(clients, migrations)
	switch {
	case err != nil:
		return err
	case !isServed:
		return &BlockedError{
			Message: fmt.Sprintf("the API %s is not served: take storagemigration.k8s.io out of kube-apiserver's --runtime-config if that turns it off; before Kubernetes 1.37, turn on the gate StorageVersionMigrator in kube-apiserver and kube-controller-manager, and --runtime-config=storagemigration.k8s.io/v1beta1=true", migrations),
			Until: func(ctx context.Context) error {
				return probe(ctx, func(context.Context) bool {
					_, isServed, err := served(clients, migrations)
					return err == nil && isServed
				})
			},
		}
	}
	client := clients.Dynamic.Resource(resource)
	name := m.name(clients.Flow, attempt)
	migration := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": resource.GroupVersion().String(),
		"kind":       "StorageVersionMigration",
		"metadata":   map[string]any{"name": name, "labels": map[string]any{migrationLabel: labelOf(attempt.Feature), flowLabel: clients.Flow}},
		"spec":       map[string]any{"resource": map[string]any{"group": m.resource.Group, "resource": m.resource.Resource}},
	}}
	if err := m.dropOthers(ctx, client, clients.Flow, attempt, name); err != nil {
		return err
	}
	if _, err := client.Create(ctx, migration, metav1.CreateOptions{FieldManager: clients.fieldManager()}); err != nil && !apierrors.IsAlreadyExists(err) {
		if refuses(err) {
			return &BlockedError{Message: "creating a storage version migration: " + cut(err)}
		}
		return fmt.Errorf("creating storage version migration %s: %w", name, err)
	}
	attempt.Report(Progress{Message: "storage version migration " + name + " is under way"})
	failure, err := m.ended(ctx, clients, resource, name)
	if err != nil {
		return err
	}
	// A failed one goes, too: the next attempt makes another.
	if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting storage version migration %s: %w", name, err)
	}
	if failure != "" {
		// It rewrites the whole collection, and a failure because of an object repeats until
		// that is resolved.
		return &BlockedError{Message: fmt.Sprintf("storage version migration of %s failed: %s", m.resource, failure)}
	}
	return nil
}

// dropOthers deletes the migrations of transitions of the same feature that were
// replaced.
func (m migrateStorage) dropOthers(ctx context.Context, client dynamic.ResourceInterface, flow string, attempt Attempt, name string) error {
	of := labels.Set{migrationLabel: labelOf(attempt.Feature), flowLabel: flow}
	ours, err := client.List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(of).String()})
	if err != nil {
		return fmt.Errorf("listing storage version migrations: %w", err)
	}
	for i := range ours.Items {
		other := &ours.Items[i]
		resource, _, _ := unstructured.NestedStringMap(other.Object, "spec", "resource")
		if other.GetName() == name || resource["group"] != m.resource.Group || resource["resource"] != m.resource.Resource {
			continue
		}
		if err := client.Delete(ctx, other.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting storage version migration %s of an earlier transition: %w", other.GetName(), err)
		}
	}
	return nil
}

// name returns the same for every attempt of one transition. A server that continues
// after a crash finds the migration, and one of an earlier transition is not taken for
// this one's.
func (m migrateStorage) name(flow string, attempt Attempt) string {
	sum := sha256.Sum256([]byte(flow + "/" + attempt.Feature + "/" + attempt.TransitionID + "/" + m.resource.String()))
	return "feature-lifecycle-" + hex.EncodeToString(sum[:8])
}

// ended waits until a migration succeeded or failed, and returns why it failed.
func (m migrateStorage) ended(ctx context.Context, clients Clients, resource schema.GroupVersionResource, name string) (failure string, err error) {
	err = watchOne(ctx, clients, clients.Dynamic.Resource(resource), name, func(migration *unstructured.Unstructured) (bool, error) {
		if migration == nil {
			return false, fmt.Errorf("storage version migration %s was deleted by another client", name)
		}
		message, failed := hasCondition(migration, "Failed")
		if failed {
			failure = message
		}
		_, succeeded := hasCondition(migration, "Succeeded")
		return failed || succeeded, nil
	})
	return failure, err
}

// hasCondition returns whether a condition of an object is true, and its message, or
// its reason if there is none.
func hasCondition(object *unstructured.Unstructured, kind string) (message string, is bool) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == kind && condition["status"] == string(metav1.ConditionTrue) {
			message, _ = condition["message"].(string)
			if message == "" {
				message, _ = condition["reason"].(string)
			}
			return message, true
		}
	}
	return "", false
}
