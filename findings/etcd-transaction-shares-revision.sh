#!/usr/bin/env bash
# Of two objects that one etcd transaction writes, an informer can miss the second for ever.
#
# Expected: a client that watches again from the resourceVersion of the last object that it saw gets
#   all that follows (kubernetes.io/docs/reference/using-api/api-concepts, efficient detection of changes).
# Happens: all keys of one etcd transaction get one revision, which is the resourceVersion of all its
#   objects. A watch from that resourceVersion begins behind the transaction. If the connection of the
#   first watch ends between the events of two of these objects, the second one is never sent, and
#   no error says so: the informer keeps the former object until the next write or relist.
#   kube-apiserver writes one object in a transaction, so that this cannot happen to its own writes.
# Versions: k8s.io/apiserver v0.37.2 on etcd v3.7.0, client-go v0.37.2.
# Matters: many guarded writes in one transaction would clear a field some times faster. Controllers
#   would then see some objects with the field, in a cluster in which no object has it.
# Here: cmd/kube-apiserver/controlplane/editwrite.go writes each object in a transaction of its own.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module informer k8s.io/apiserver@v0.37.2 k8s.io/client-go@v0.37.2 go.etcd.io/etcd/server/v3@v3.7.0
cat >informer/main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// source lists and watches stored ConfigMaps. The connection of its first watch ends behind
// one event.
type source struct {
	storage.Interface
	watches int
	listed  chan struct{}
}

func (s *source) List(metav1.ListOptions) (runtime.Object, error) {
	list := &corev1.ConfigMapList{}
	return list, s.GetList(context.Background(), "/configmaps/", everything(""), list)
}

func (s *source) Watch(options metav1.ListOptions) (watch.Interface, error) {
	all, err := s.Interface.Watch(context.Background(), "/configmaps/", everything(options.ResourceVersion))
	if s.watches++; err != nil || s.watches > 1 {
		return all, err
	}
	close(s.listed)
	first := watch.NewFake()
	go func() {
		event := <-all.ResultChan()
		first.Action(event.Type, event.Object)
		all.Stop()
		first.Stop()
	}()
	return first, nil
}

// IsWatchListSemanticsUnSupported has the reflector list first.
func (s *source) IsWatchListSemanticsUnSupported() bool { return true }

func everything(version string) storage.ListOptions {
	all := storage.SelectionPredicate{Label: labels.Everything(), Field: fields.Everything(), GetAttrs: func(o runtime.Object) (labels.Set, fields.Set, error) {
		return nil, nil, nil
	}}
	return storage.ListOptions{ResourceVersion: version, Predicate: all, Recursive: true}
}

func main() {
	dir := must(os.MkdirTemp("", ""))
	defer os.RemoveAll(dir)
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.UnsafeNoFsync = dir, "fatal", true
	config.ListenClientUrls, config.ListenPeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}, []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	etcd := must(embed.StartEtcd(config))
	defer etcd.Close()
	<-etcd.Server.ReadyNotify()
	endpoints := []string{"http://" + etcd.Clients[0].Addr().String()}
	for _, together := range []bool{true, false} {
		show(endpoints, together)
	}
}

// show writes two ConfigMaps, in one transaction or in two, beneath an informer whose
// connection ends between them.
func show(endpoints []string, together bool) {
	ctx := context.Background()
	prefix := fmt.Sprintf("/registry-%t", together)
	json := scheme.Codecs.SupportedMediaTypes()[0].Serializer
	backend := storagebackend.NewDefaultConfig(prefix, scheme.Codecs.CodecForVersions(json, json, corev1.SchemeGroupVersion, corev1.SchemeGroupVersion))
	backend.Transport.ServerList = endpoints
	store, destroy, err := factory.Create(*backend.ForResource(schema.GroupResource{Resource: "configmaps"}),
		func() runtime.Object { return &corev1.ConfigMap{} }, func() runtime.Object { return &corev1.ConfigMapList{} }, "/configmaps")
	if err != nil {
		panic(err)
	}
	defer destroy()
	create := func(name string) {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": "before"}}
		if err := store.Create(ctx, "/configmaps/"+name, object, nil, 0); err != nil {
			panic(err)
		}
	}
	create("first")
	create("second")
	client := must(clientv3.New(clientv3.Config{Endpoints: endpoints}))
	defer client.Close()

	from := &source{Interface: store, listed: make(chan struct{})}
	seen := cache.NewStore(cache.MetaNamespaceKeyFunc)
	stop := make(chan struct{})
	defer close(stop)
	go cache.NewReflector(from, &corev1.ConfigMap{}, seen, 0).Run(stop)
	<-from.listed

	var edits []clientv3.Op
	for _, kv := range must(client.Get(ctx, prefix+"/configmaps/", clientv3.WithPrefix())).Kvs {
		edits = append(edits, clientv3.OpPut(string(kv.Key), strings.Replace(string(kv.Value), "before", "after", 1)))
	}
	if together {
		must(client.Txn(ctx).Then(edits...).Commit())
	} else {
		for _, edit := range edits {
			must(client.Do(ctx, edit))
		}
	}
	// What comes behind them shows that the informer has caught up.
	create("third")
	for _, exists, _ := seen.GetByKey("third"); !exists; _, exists, _ = seen.GetByKey("third") {
		time.Sleep(10 * time.Millisecond)
	}

	stored := &corev1.ConfigMapList{}
	if err := store.GetList(ctx, "/configmaps/", everything(""), stored); err != nil {
		panic(err)
	}
	fmt.Printf("one transaction %t, one resourceVersion %t\n", together, stored.Items[0].ResourceVersion == stored.Items[1].ResourceVersion)
	for _, object := range stored.Items[:2] {
		cached, _, _ := seen.GetByKey(object.Name)
		fmt.Printf("  %s: stored %s, informer %s\n", object.Name, object.Data["value"], cached.(*corev1.ConfigMap).Data["value"])
	}
}
GO
program informer
conclude "an informer whose connection ends between two objects of one transaction keeps the second as it was, for ever" <<'SEEN'
one transaction true, one resourceVersion true
  first: stored after, informer after
  second: stored after, informer before
one transaction false, one resourceVersion false
  first: stored after, informer after
  second: stored after, informer after
SEEN
