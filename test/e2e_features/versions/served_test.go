//go:build linux

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

package versions

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
)

// resource is a collection that a server serves.
type resource struct {
	schema.GroupVersionResource
	metav1.APIResource
	client dynamic.NamespaceableResourceInterface
}

// object is one that a server serves.
type object struct {
	*unstructured.Unstructured
	resource resource
}

// String names the object for messages.
func (o object) String() string {
	return strings.TrimPrefix(fmt.Sprintf("%s %s/%s", o.resource.GroupVersionResource.GroupResource(), o.GetNamespace(), o.GetName()), "/")
}

// in is the client for the object.
func (o object) in() dynamic.ResourceInterface {
	if !o.resource.Namespaced {
		return o.resource.client
	}
	return o.resource.client.Namespace(o.GetNamespace())
}

// resources discovers all collections, in all versions. Nothing of discovery may
// fail.
func (b *binaries) resources(t *testing.T) []resource {
	t.Helper()
	_, lists, err := discovery.NewDiscoveryClientForConfigOrDie(b.Config).ServerGroupsAndResources()
	if err != nil {
		t.Fatalf("discovery: %v", err)
	}
	var found []resource
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && !strings.Contains(r.Name, "/") {
				gvr := version.WithResource(r.Name)
				found = append(found, resource{gvr, r, b.kit.Dynamic.Resource(gvr)})
			}
		}
	}
	return found
}

// allServed is served, where every collection has to be listed.
func (b *binaries) allServed(t *testing.T) []object {
	t.Helper()
	objects, failed := b.served(t)
	for _, problem := range failed {
		t.Error(problem)
	}
	return objects
}

// served lists every collection in every version. A collection that has something
// which the server cannot decode fails as a whole.
func (b *binaries) served(t *testing.T) (objects []object, failed []string) {
	t.Helper()
	resources := b.resources(t)
	for _, r := range resources {
		list, err := r.client.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			failed = append(failed, fmt.Sprintf("listing %s: %v", r.GroupVersionResource, err))
			continue
		}
		for i := range list.Items {
			objects = append(objects, object{&list.Items[i], r})
		}
	}
	fmt.Fprintf(t.Output(), "%s lists %d objects of %d collections and versions\n", b.Version(), len(objects), len(resources))
	return objects, failed
}

// undeletable are objects that admission keeps from everybody.
var undeletable = []string{
	"namespaces /default", "namespaces /kube-system", "namespaces /kube-public", "namespaces /kube-node-lease",
	"priorityclasses.scheduling.k8s.io /system-cluster-critical", "priorityclasses.scheduling.k8s.io /system-node-critical",
}

// changeable checks, by dry run, that everybody's objects can be changed and
// deleted: validation of what the server does not know, or has off, must not stand
// in the way.
func changeable(t *testing.T, objects []object) {
	t.Helper()
	tried, dry := 0, []string{metav1.DryRunAll}
	for _, o := range objects {
		if slices.Contains(o.resource.Verbs, "update") {
			tried++
			changed := o.DeepCopy()
			err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				annotations := changed.GetAnnotations()
				if annotations == nil {
					annotations = map[string]string{}
				}
				annotations["versions.example.com/changed"] = "true"
				changed.SetAnnotations(annotations)
				_, err := o.in().Update(t.Context(), changed, metav1.UpdateOptions{DryRun: dry})
				if apierrors.IsConflict(err) {
					// Servers renew Leases.
					is, getErr := o.in().Get(t.Context(), o.GetName(), metav1.GetOptions{})
					if getErr != nil {
						return getErr
					}
					changed = is
				}
				return err
			})
			if err != nil {
				t.Errorf("%s (%s) cannot be changed: %v", o, o.GroupVersionKind(), err)
			}
		}
		if slices.Contains(o.resource.Verbs, "delete") && !slices.Contains(undeletable, o.String()) {
			tried++
			if err := o.in().Delete(t.Context(), o.GetName(), metav1.DeleteOptions{DryRun: dry}); err != nil {
				t.Errorf("%s (%s) cannot be deleted: %v", o, o.GroupVersionKind(), err)
			}
		}
	}
	fmt.Fprintf(t.Output(), "%d changes and deletions of objects were tried\n", tried)
}

// unserved are the keys of what is stored and no object of a list: the stored form
// of every object has its UID.
func unserved(stored map[string][]byte, objects []object) []string {
	byName := map[string][][]byte{}
	for _, o := range objects {
		byName[o.GetName()] = append(byName[o.GetName()], []byte(o.GetUID()))
	}
	var keys []string
	for key, value := range stored {
		isServed := slices.ContainsFunc(byName[path.Base(key)], func(uid []byte) bool { return len(uid) > 0 && bytes.Contains(value, uid) })
		if !isServed {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
