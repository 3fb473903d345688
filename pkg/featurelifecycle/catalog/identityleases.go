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

package catalog

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/utils/ptr"
)

// The label of the Leases and its value are those of IdentityLeaseComponentLabelKey and
// KubeAPIServer in upstream's pkg/controlplane/apiserver. That package links whole servers,
// and kubectl feature has this catalog; a test compares them.
const (
	identityLeaseLabel  = "apiserver.kubernetes.io/identity"
	identityLeaseServer = "kube-apiserver"
)

// deleteIdentityLeases deletes the Leases with which kube-apiservers show that
// they are alive. Other servers may have Leases of that kind and a gate of their
// own. A server that ends in order deletes its own. The Lease of a crashed one
// stays, since the collector of expired ones stops with the gate. Servers that
// renew theirs have the gate on, which has ended when tasks run. The server flow
// may delete Leases in kube-system in any case (pkg/registry/features/rest,
// FlowRules), so the task needs no rule for those of all namespaces.
func deleteIdentityLeases() task.Task {
	return lifecycle.Func(task.Own{
		Name: "IdentityLeases", Description: "delete the identity Leases of API servers that crashed",
		Find: findIdentityLeases, Run: runIdentityLeases, Try: tryIdentityLeases,
		Fields: []task.Field{{Resource: leases.GroupResource(), Path: "metadata.labels{" + identityLeaseLabel + "}"}},
	})
}

// identityLeases lists the Leases. They are few: one for each server.
func identityLeases(ctx context.Context, clients task.Clients) ([]unstructured.Unstructured, error) {
	list, err := clients.Dynamic.Resource(leases).Namespace(metav1.NamespaceSystem).List(ctx,
		metav1.ListOptions{LabelSelector: identityLeaseLabel + "=" + identityLeaseServer})
	if err != nil {
		return nil, fmt.Errorf("listing identity Leases: %w", err)
	}
	return list.Items, nil
}

func findIdentityLeases(ctx context.Context, clients task.Clients) ([]v1alpha1.ResourceLeftovers, error) {
	found, err := identityLeases(ctx, clients)
	return task.Leftovers(leases.GroupResource(), "", found), err
}

func runIdentityLeases(ctx context.Context, clients task.Clients, attempt task.Attempt) error {
	found, err := identityLeases(ctx, clients)
	if err != nil {
		return err
	}
	var held []string
	for i, lease := range found {
		if finalizers := lease.GetFinalizers(); len(finalizers) > 0 {
			held = append(held, fmt.Sprintf("%s (%s)", lease.GetName(), strings.Join(finalizers, ", ")))
		}
		err := deleteIdentityLease(ctx, clients, &lease)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting Lease %s: %w", lease.GetName(), err)
		}
		attempt.Report(task.Progress{Done: int64(i+1) - int64(len(held)), Total: int64(len(found))})
	}
	if len(held) > 0 {
		return &task.BlockedError{Message: fmt.Sprintf("identity Leases in %s are being deleted and held by finalizers: %s; the controllers or users that set them have to remove them", metav1.NamespaceSystem, strings.Join(held, ", "))}
	}
	return nil
}

// deleteIdentityLease deletes one, and none of the same name.
func deleteIdentityLease(ctx context.Context, clients task.Clients, lease *unstructured.Unstructured, dryRun ...string) error {
	return clients.Dynamic.Resource(leases).Namespace(lease.GetNamespace()).Delete(ctx, lease.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: ptr.To(lease.GetUID())}, DryRun: dryRun,
	})
}

func tryIdentityLeases(ctx context.Context, clients task.Clients, _ task.Attempt) (trial task.Trial, err error) {
	found, err := identityLeases(ctx, clients)
	for i := range found {
		trial.Note(found[i].GetNamespace()+"/"+found[i].GetName(), deleteIdentityLease(ctx, clients, &found[i], metav1.DryRunAll))
	}
	return trial, err
}
