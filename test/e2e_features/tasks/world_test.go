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
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	apiextensionsoptions "k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/cmd/kube-apiserver/controlplane"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster/pki"
	upstreamcontrolplane "k8s.io/kubernetes/pkg/controlplane"
	"k8s.io/kubernetes/pkg/kubeapiserver"
)

// world is the cluster and what tasks reach it with.
type world struct {
	*framework.Cluster
	objects framework.Objects
	stored  *controlplane.Stored
	etcd    *clientv3.Client
	// identities counts those that tasks were run as.
	identities atomic.Int64
}

func newWorld(t *testing.T, c *framework.Cluster) *world {
	t.Helper()
	w := &world{Cluster: c, objects: c.Objects(), stored: newStored(t, c), etcd: c.Etcd()}
	t.Cleanup(func() { _ = w.stored.Close() })
	return w
}

// newStored makes access to etcd from the same options as the server makes it
// (k8s.io/kubernetes/pkg/controlplane/apiserver), with the server's certificate.
func newStored(t *testing.T, c *framework.Cluster) *controlplane.Stored {
	t.Helper()
	etcd := genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig("/registry", nil))
	etcd.StorageConfig.Transport.ServerList = []string{c.EtcdEndpoint()}
	etcd.StorageConfig.Transport.TrustedCAFile = pki.CertFile(c.PKI(), pki.EtcdCA)
	etcd.StorageConfig.Transport.CertFile = pki.CertFile(c.PKI(), "apiserver-etcd-client")
	etcd.StorageConfig.Transport.KeyFile = pki.KeyFile(c.PKI(), "apiserver-etcd-client")
	config := kubeapiserver.NewStorageFactoryConfig()
	config.APIResourceConfig = upstreamcontrolplane.DefaultAPIResourceConfigSource()
	factory, err := config.Complete(etcd).New()
	if err != nil {
		t.Fatal(err)
	}
	return controlplane.NewStored(etcd.CreateRESTOptionsGetter(factory, nil), apiextensionsoptions.NewCRDRESTOptionsGetter(*etcd, nil, nil),
		func(resource schema.GroupResource) bool { return served(c, resource) })
}

// served reports whether the server has a resource, in any version.
func served(c *framework.Cluster, resource schema.GroupResource) bool {
	_, lists, err := c.Kube.Discovery().ServerGroupsAndResources()
	if err != nil {
		return true
	}
	for _, list := range lists {
		version, _ := schema.ParseGroupVersion(list.GroupVersion)
		for _, found := range list.APIResources {
			if version.Group == resource.Group && found.Name == resource.Resource {
				return true
			}
		}
	}
	return false
}

// clients are those of an identity that may do what the tasks' rules say and
// nothing else, without access to storage.
func (w *world) clients(t *testing.T, tasks ...task.Task) task.Clients {
	t.Helper()
	features := []lifecycle.Feature{{Name: "Test", OnEnable: tasks}}
	user := fmt.Sprintf("task-runner-%d", w.identities.Add(1))
	w.Permit(t, w.User(user), user, metav1.NamespaceAll, lifecycle.Rules(features))
	for namespace, rules := range lifecycle.NamespacedRules(features) {
		w.Permit(t, w.User(user), user, namespace, rules)
	}
	return clientsOf(t, w.Impersonate(user))
}

// withStorage are clients that have access to what is stored, too.
func (w *world) withStorage(t *testing.T, tasks ...task.Task) task.Clients {
	t.Helper()
	clients := w.clients(t, tasks...)
	clients.Storage = w.stored
	clients.Collector = &task.Collector{Discovery: w.Kube.Discovery(), Metadata: metadata.NewForConfigOrDie(w.Impersonate(controlplane.GarbageCollector))}
	return clients
}

func clientsOf(t *testing.T, config *rest.Config) task.Clients {
	t.Helper()
	objects, err := task.NewDynamicClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return task.Clients{
		Dynamic:  objects,
		Metadata: metadata.NewForConfigOrDie(config),
		Mapper:   task.NewMapper(discovery.NewDiscoveryClientForConfigOrDie(config)),
	}
}

// kind is a custom resource for one test.
type kind struct {
	schema.GroupVersionKind
	resource schema.GroupVersionResource
}

const group = "tasks.example.com"

func customKind(name string) kind {
	v1 := schema.GroupVersion{Group: group, Version: "v1"}
	return kind{v1.WithKind(name), v1.WithResource(strings.ToLower(name) + "s")}
}

// object is one of the kind.
func (k kind) object(name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(k.GroupVersionKind)
	object.SetNamespace(ns)
	object.SetName(name)
	return object
}

// definition serves v1 and v2 of a kind, stores one of them, and wants fields in
// spec.
func (k kind) definition(stored string, required ...any) *unstructured.Unstructured {
	spec := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	if len(required) > 0 {
		spec["required"] = required
	}
	return framework.Definition(schema.GroupVersionKind{Group: group, Version: stored, Kind: k.Kind}, k.resource.Resource, spec, "v1", "v2")
}

// serve makes a kind and waits until it is served.
func (w *world) serve(t *testing.T, k kind) {
	t.Helper()
	w.objects.Define(t, k.definition("v1"))
	w.WaitUntilServed(t, k.resource)
}
