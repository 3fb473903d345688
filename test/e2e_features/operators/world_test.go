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

package operators

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/rest"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// world is a cluster that operators share. Its methods take the test that asks: the
// cluster itself belongs to the test that started it.
type world struct {
	*framework.Cluster
	objects framework.Objects
	etcd    *clientv3.Client
}

func newWorld(t *testing.T, c *framework.Cluster) *world {
	t.Helper()
	return &world{Cluster: c, objects: c.Objects(), etcd: c.Etcd()}
}

// identity is a service account, and how it reaches the server: by its token alone.
type identity struct {
	namespace, name string
	config          *rest.Config
	features        versioned.Interface
}

// user is the name that the server knows the service account by.
func (i *identity) user() string { return serviceaccount.MakeUsername(i.namespace, i.name) }

// identity makes a service account, and its namespace if that is not there.
func (w *world) identity(t *testing.T, namespace, name string) *identity {
	t.Helper()
	_, err := w.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("creating namespace %s: %v", namespace, err)
	}
	accounts := w.Kube.CoreV1().ServiceAccounts(namespace)
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating service account %s/%s: %v", namespace, name, err)
	}
	token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("a token of service account %s/%s: %v", namespace, name, err)
	}
	// What the administrator authenticates by is left out. The limit of requests is
	// not: it would hide a client that asks without a pause.
	config := rest.AnonymousClientConfig(w.Config)
	config.BearerToken = token.Status.Token
	return &identity{namespace: namespace, name: name, config: config, features: versioned.NewForConfigOrDie(config)}
}

// grantee is the service account as one that gets permissions.
func (i *identity) grantee() framework.Grantee {
	return framework.Grantee{Subject: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: i.namespace, Name: i.name}, Config: i.config}
}

// everywhere is the name of the identity's ClusterRole; its Role has its own.
func (i *identity) everywhere() string { return i.namespace + "-" + i.name }

// permit gives an identity permissions in its namespace and in all.
func (w *world) permit(t *testing.T, id *identity, own, everywhere []rbacv1.PolicyRule) {
	t.Helper()
	w.Permit(t, id.grantee(), id.name, id.namespace, own)
	w.Permit(t, id.grantee(), id.everywhere(), metav1.NamespaceAll, everywhere)
}

// remove deletes a service account and its permissions, as the removal of an operator
// does that leaves the namespace.
func (w *world) remove(t *testing.T, id *identity) {
	t.Helper()
	ctx, options := t.Context(), metav1.DeleteOptions{}
	for what, err := range map[string]error{
		"ClusterRoleBinding": w.Kube.RbacV1().ClusterRoleBindings().Delete(ctx, id.everywhere(), options),
		"ClusterRole":        w.Kube.RbacV1().ClusterRoles().Delete(ctx, id.everywhere(), options),
		"RoleBinding":        w.Kube.RbacV1().RoleBindings(id.namespace).Delete(ctx, id.name, options),
		"Role":               w.Kube.RbacV1().Roles(id.namespace).Delete(ctx, id.name, options),
		"ServiceAccount":     w.Kube.CoreV1().ServiceAccounts(id.namespace).Delete(ctx, id.name, options),
	} {
		if err != nil {
			t.Fatalf("deleting the %s of %s: %v", what, id.user(), err)
		}
	}
}

// group has a kind for each operator.
const group = "thirdparty.example.com"

// define makes the kind of an operator, for example Redthing, and waits until it is
// served.
func (w *world) define(t *testing.T, operator string) schema.GroupVersionResource {
	t.Helper()
	resource := schema.GroupVersionResource{Group: group, Version: "v1", Resource: operator + "things"}
	text := map[string]any{"type": "string"}
	definition := framework.Definition(resource.GroupVersion().WithKind(kindOf(resource)), resource.Resource, map[string]any{
		"type": "object", "properties": map[string]any{"size": text, "color": text, "glaze": text, "limit": text},
	}, resource.Version)
	w.objects.Define(t, definition)
	w.WaitUntilServed(t, resource)
	return resource
}

// kindOf is the kind of redthings, Redthing.
func kindOf(resource schema.GroupVersionResource) string {
	name := strings.TrimSuffix(resource.Resource, "s")
	return strings.ToUpper(name[:1]) + name[1:]
}

// make makes an object with the given fields of spec.
func (w *world) make(t *testing.T, resource schema.GroupVersionResource, name string, spec map[string]any) *unstructured.Unstructured {
	t.Helper()
	return w.makeIn(t, resource, metav1.NamespaceDefault, name, spec)
}

// makeIn makes one in a namespace.
func (w *world) makeIn(t *testing.T, resource schema.GroupVersionResource, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(resource.GroupVersion().WithKind(kindOf(resource)))
	object.SetNamespace(namespace)
	object.SetName(name)
	return w.objects.Create(t, resource, object)
}

// read reads an object.
func (w *world) read(t *testing.T, resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	t.Helper()
	return w.objects.Read(t, resource, metav1.NamespaceDefault, name)
}

// untouched is an error if an object was written since it was read.
func (w *world) untouched(t *testing.T, resource schema.GroupVersionResource, was *unstructured.Unstructured) {
	t.Helper()
	if is := w.objects.Read(t, resource, was.GetNamespace(), was.GetName()); is.GetResourceVersion() != was.GetResourceVersion() {
		t.Errorf("%s %s was written, its spec was %v and is %v", was.GetKind(), was.GetName(), was.Object["spec"], is.Object["spec"])
	}
}

// keys are those of etcd for everything that is in a namespace, and for the namespace.
func (w *world) keys(t *testing.T, namespace string) []string {
	t.Helper()
	return w.keysWith(t, func(key string) bool { return strings.Contains(key+"/", "/"+namespace+"/") })
}

// keysWith are those that are wanted.
func (w *world) keysWith(t *testing.T, wanted func(string) bool) []string {
	t.Helper()
	all := framework.KeysBelow(t, w.etcd, "/registry/")
	if len(all) == 0 {
		t.Fatal("etcd has nothing below /registry/; this test looks in the wrong place")
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(key string) bool { return !wanted(key) })
}

// featuresKey is where etcd has the Features of a namespace.
func featuresKey(namespace string) string {
	return fmt.Sprintf("%s%s/", strings.TrimSuffix(framework.FeaturesKey, metav1.NamespaceSystem+"/"), namespace)
}
