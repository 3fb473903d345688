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

package tasks

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

var bundles = schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1beta1", Resource: "clustertrustbundles"}

// rootCertificate is one that a bundle may hold.
func rootCertificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	data, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: data}))
}

// makeBundles makes ClusterTrustBundles while their API is there.
func (w *world) makeBundles(t *testing.T) {
	t.Helper()
	for _, name := range []string{"one", "two"} {
		bundle := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"trustBundle": rootCertificate(t)}}}
		bundle.SetGroupVersionKind(bundles.GroupVersion().WithKind("ClusterTrustBundle"))
		bundle.SetName(name)
		if name == held {
			bundle.SetFinalizers([]string{heldBy})
		}
		bundle = w.objects.Create(t, bundles, bundle)
		// The one is collected with its owner, and the other loses it: it has another.
		shared := *metav1.NewControllerRef(bundle, bundle.GroupVersionKind())
		shared.Controller, shared.BlockOwnerDeletion = nil, nil
		namespace, err := w.Kube.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for suffix, owners := range map[string][]metav1.OwnerReference{
			"-owned":  {shared},
			"-shared": {shared, {APIVersion: "v1", Kind: "Namespace", Name: ns, UID: namespace.UID}},
		} {
			owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name + suffix, OwnerReferences: owners}}
			if _, err := w.Kube.CoreV1().ConfigMaps(ns).Create(t.Context(), owned, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// ownedBy checks what became of what a bundle owned.
func (w *world) ownedBy(t *testing.T, bundle string, collected bool) {
	t.Helper()
	_, err := w.Kube.CoreV1().ConfigMaps(ns).Get(t.Context(), bundle+"-owned", metav1.GetOptions{})
	if apierrors.IsNotFound(err) != collected || err != nil && !collected {
		t.Errorf("what bundle %s owned: %v, want it collected: %t", bundle, err, collected)
	}
	shared, err := w.Kube.CoreV1().ConfigMaps(ns).Get(t.Context(), bundle+"-shared", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("what bundle %s and another own: %v", bundle, err)
	}
	if n := len(shared.OwnerReferences); (n == 1) != collected {
		t.Errorf("what bundle %s and another own has %d owners, want the bundle gone from it: %t", bundle, n, collected)
	}
}

// held is the bundle that the finalizer heldBy of others holds.
const held, heldBy = "two", "example.net/trust-sync"

// keys counts what etcd has below a prefix.
func (w *world) keys(t *testing.T, prefix string) int64 {
	t.Helper()
	found, err := w.etcd.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return found.Count
}

func (w *world) clearBundles(t *testing.T) {
	const prefix = "/registry/clustertrustbundles/"
	clearing := lifecycle.ClearCollection(bundles.GroupResource())
	clients := w.withStorage(t, declared(t, clearing)...)
	if n := w.keys(t, prefix); n != 2 {
		t.Fatalf("%d keys are below %s, want 2", n, prefix)
	}
	if n := count(t, clients, clearing); n != 2 {
		t.Errorf("found %d bundles, want 2", n)
	}
	blocked := runBlocked(t, clients, clearing, "1 object of clustertrustbundles.certificates.k8s.io is held by finalizers of others: "+held+" ("+heldBy+")", "turn the feature on")
	if n := w.keys(t, prefix+held); n != 1 {
		t.Errorf("another controller's finalizer did not hold %s", held)
	}
	w.ownedBy(t, "one", true)
	w.ownedBy(t, held, false)
	until(t, blocked, func() {
		if _, err := w.etcd.Delete(t.Context(), prefix+held); err != nil {
			t.Error(err)
		}
	})
	run(t, clients, clearing)
	if n := w.keys(t, prefix); n != 0 {
		t.Errorf("%d keys are left below %s", n, prefix)
	}
	if n := count(t, clients, clearing); n != 0 {
		t.Errorf("found %d bundles after the clean-up", n)
	}
}

// clearCustomResources: the task's own finalizers go, others are waited for.
func (w *world) clearCustomResources(t *testing.T) {
	k := customKind("Held")
	w.serve(t, k)
	const own, foreign = "example.com/own", "example.com/foreign"
	for name, finalizers := range map[string][]string{"free": nil, "own": {own}, "foreign": {foreign}, "both": {own, foreign}} {
		object := k.object(name, map[string]any{})
		object.SetFinalizers(finalizers)
		w.objects.Create(t, k.resource, object)
	}
	clearing := lifecycle.ClearCollection(k.resource.GroupResource(), own)
	clients := w.withStorage(t, declared(t, clearing)...)
	if n := count(t, clients, clearing); n != 4 {
		t.Errorf("found %d objects, want 4", n)
	}
	blocked := runBlocked(t, clients, clearing, "2 objects of helds.tasks.example.com are left", "tasks/both", "tasks/foreign", foreign)
	if strings.Contains(blocked.Message, own) {
		t.Errorf("a finalizer is named that need not be removed: %s", blocked.Message)
	}
	if n := w.keys(t, "/registry/tasks.example.com/helds/"); n != 2 {
		t.Errorf("%d objects are stored, want 2: the API has to decide about them", n)
	}
	letGo := func(name string) func() {
		return func() {
			if _, err := w.objects.Resource(k.resource).Namespace(ns).Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
	until(t, blocked, letGo("both"))
	blocked = runBlocked(t, clients, clearing, "1 object", "tasks/foreign")
	until(t, blocked, letGo("foreign"))
	run(t, clients, clearing)
	if n := w.keys(t, "/registry/tasks.example.com/helds/"); n != 0 {
		t.Errorf("%d objects are left", n)
	}
}

// clearAll attempts a task until it succeeds, as the server flow does: garbage
// goes in one attempt, what it hid in another.
func clearAll(t *testing.T, clients task.Clients, clearing task.Task) {
	t.Helper()
	var last error
	attempts := 0
	framework.Eventually(t, clearing.Name+" to be done", func() error {
		attempts++
		err := clearing.Run(t.Context(), clients, attempt(t))
		if err != nil && (last == nil || err.Error() != last.Error()) {
			t.Logf("attempt %d: %v", attempts, err)
		}
		last = err
		return err
	})
	t.Logf("done after %d attempts", attempts)
}

// garbage puts bytes where an object's should be, and waits until they are in
// the way.
func (w *world) garbage(t *testing.T, resource schema.GroupVersionResource, key string) {
	t.Helper()
	if _, err := w.etcd.Put(t.Context(), key, "no server can decode this"); err != nil {
		t.Fatal(err)
	}
	framework.WaitFor(t, "LIST to fail", func() bool {
		_, err := w.objects.Resource(resource).List(t.Context(), metav1.ListOptions{Limit: 10})
		return err != nil
	})
}

func (w *world) clearGarbageCustom(t *testing.T) {
	k := customKind("Broken")
	w.serve(t, k)
	own := k.object("held", map[string]any{})
	own.SetFinalizers([]string{"example.com/own"})
	w.objects.Create(t, k.resource, own)
	w.objects.Create(t, k.resource, k.object("fine", map[string]any{}))
	const prefix = "/registry/tasks.example.com/brokens/"
	w.garbage(t, k.resource, prefix+ns+"/garbage")
	clearing := lifecycle.ClearCollection(k.resource.GroupResource(), "example.com/own")
	clients := w.withStorage(t, declared(t, clearing)...)
	if n := count(t, clients, clearing); n != 3 {
		t.Errorf("found %d objects, want 3", n)
	}
	clearAll(t, clients, clearing)
	if n := w.keys(t, prefix); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

func (w *world) clearGarbageBuiltIn(t *testing.T) {
	classes := schema.GroupVersionResource{Group: "node.k8s.io", Version: "v1", Resource: "runtimeclasses"}
	for _, name := range []string{"a", "z"} {
		class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "h"}
		if _, err := w.Kube.NodeV1().RuntimeClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const prefix = "/registry/runtimeclasses/"
	w.garbage(t, classes, prefix+"garbage")
	clearing := lifecycle.ClearCollection(classes.GroupResource())
	clients := w.withStorage(t, declared(t, clearing)...)
	if found := find(t, clients, clearing); len(found) != 1 || found[0].Count != 3 || strings.Join(found[0].Examples, ",") != "a,garbage,z" {
		t.Errorf("found %v, want a, garbage and z", found)
	}
	clearAll(t, clients, clearing)
	if n := w.keys(t, prefix); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	// The collection is of use again.
	framework.Eventually(t, "LIST to succeed", func() error {
		_, err := w.Kube.NodeV1().RuntimeClasses().List(t.Context(), metav1.ListOptions{})
		return err
	})
}

// clearUnserved: who has no access to etcd does not take the objects of a definition that
// serves no version for a while for gone.
func (w *world) clearUnserved(t *testing.T) {
	k := customKind("Dormant")
	w.serve(t, k)
	w.objects.Create(t, k.resource, k.object("one", map[string]any{}))
	clearing := lifecycle.ClearCollection(k.resource.GroupResource())
	clients := w.clients(t, declared(t, clearing)...)
	serving := func(serves bool) {
		t.Helper()
		definition := k.definition("v1")
		versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		for _, version := range versions {
			version.(map[string]any)["served"] = serves
		}
		if err := unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"); err != nil {
			t.Fatal(err)
		}
		w.objects.Define(t, definition)
		framework.WaitFor(t, fmt.Sprintf("%s to be served: %t", k.Kind, serves), func() bool { return served(w.Cluster, k.resource.GroupResource()) == serves })
	}
	serving(false)
	blocked := runBlocked(t, clients, clearing, "dormants.tasks.example.com is defined and not served")
	if found, err := clearing.Find(t.Context(), clients); err == nil {
		t.Errorf("found %v in what is not served", found)
	}
	until(t, blocked, func() { serving(true) })
	clearAll(t, clients, clearing)
	if n := count(t, clients, clearing); n != 0 {
		t.Errorf("%d objects are left", n)
	}
}

// limited: a task of one namespace leaves all others alone, with a role in that namespace,
// and is refused where a kind has none.
func (w *world) limited(t *testing.T) {
	k := customKind("Limited")
	w.serve(t, k)
	kept := k.object("kept", map[string]any{"field": "x"})
	kept.SetNamespace(metav1.NamespaceDefault)
	kept = w.objects.Create(t, k.resource, kept)
	w.objects.Create(t, k.resource, k.object("own", map[string]any{"field": "x"}))
	tasks := lifecycle.InNamespace(ns, lifecycle.ClearField(k.resource, "spec.field"), lifecycle.ClearCollection(k.resource.GroupResource()))
	clients := w.clients(t, declared(t, tasks...)...)
	for _, of := range tasks {
		if n := count(t, clients, of); n != 1 {
			t.Errorf("%s finds %d objects, want 1", of.Name, n)
		}
		clearAll(t, clients, of)
		if n := count(t, clients, of); n != 0 {
			t.Errorf("%s leaves %d objects", of.Name, n)
		}
	}
	is, err := w.objects.Resource(k.resource).Namespace(metav1.NamespaceDefault).Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil || is.GetResourceVersion() != kept.GetResourceVersion() {
		t.Errorf("what is in another namespace was touched: %v, %v", is, err)
	}
	classes := lifecycle.InNamespace(ns, lifecycle.ClearField(schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}, "parameters"))
	const says = "storageclasses.storage.k8s.io is in no namespace"
	var blocked *task.BlockedError
	if err := classes[0].Run(t.Context(), w.clients(t, declared(t, classes...)...), attempt(t)); !errors.As(err, &blocked) || !strings.Contains(blocked.Message, says) {
		t.Errorf("%v, want it blocked with %q", err, says)
	}
}
