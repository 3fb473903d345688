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

package history

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	featurescheme "k8s.io/feature-lifecycle/client/clientset/versioned/scheme"
)

// Where etcd has what is recorded.
const (
	FeaturesKey = "/registry/features/" + metav1.NamespaceSystem + "/"
	ReportsKey  = "/registry/featurereports/" + metav1.NamespaceSystem + "/"
	LeasesKey   = "/registry/leases/" + v1alpha1.LeaseNamespace + "/"
	// ServerLeasesKey begins the keys of the Leases that kube-apiservers renew for their reports.
	ServerLeasesKey = "/registry/leases/" + metav1.NamespaceSystem + "/" + server + "."
	StatefulSetsKey = "/registry/statefulsets/" + metav1.NamespaceDefault + "/"
)

// prefixes are what is followed.
var prefixes = []string{FeaturesKey, ReportsKey, LeasesKey, ServerLeasesKey, StatefulSetsKey}

// again is how long after its watch ended a recorder begins another.
const again = time.Second

// Recorder records what happens in one cluster. It is safe for concurrent use.
type Recorder struct {
	writer *Writer
	cancel context.CancelFunc
	ctx    context.Context
	group  sync.WaitGroup
}

// Start begins to record what etcd has, and what it stores until Stop.
func Start(ctx context.Context, writer *Writer, etcd *clientv3.Client) *Recorder {
	r := &Recorder{writer: writer}
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, key := range prefixes {
		r.group.Go(func() { r.follow(etcd, key) })
	}
	return r
}

// Stop ends the recording, and writes the end of the history.
func (r *Recorder) Stop() error {
	r.cancel()
	r.group.Wait()
	return r.writer.Close()
}

// follow records what is stored below a key.
func (r *Recorder) follow(etcd *clientv3.Client, key string) {
	for seen := r.catchUp(etcd, key); r.ctx.Err() == nil; {
		compacted := false
		for response := range etcd.Watch(r.ctx, key, clientv3.WithPrefix(), clientv3.WithRev(seen+1)) {
			compacted = response.CompactRevision > 0
			for _, event := range response.Events {
				seen = event.Kv.ModRevision
				if event.Type == clientv3.EventTypeDelete {
					r.writer.Add(Record{Kind: Deleted, Key: string(event.Kv.Key), Revision: seen})
				} else {
					r.stored(event.Kv)
				}
			}
		}
		if compacted {
			seen = r.catchUp(etcd, key)
		} else {
			r.pause()
		}
	}
}

// catchUp records what is stored now, where no watch can bring all that came before: at
// the beginning, and after a compaction. It returns the revision of that.
func (r *Recorder) catchUp(etcd *clientv3.Client, key string) int64 {
	for r.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(r.ctx, 10*time.Second)
		now, err := etcd.Get(ctx, key, clientv3.WithPrefix())
		cancel()
		if err != nil {
			r.pause()
			continue
		}
		r.writer.Add(Record{Kind: Compacted, Key: key, Revision: now.Header.Revision})
		for _, kv := range now.Kvs {
			r.stored(kv)
		}
		return now.Header.Revision
	}
	return 0
}

// pause waits until it is worth to try again.
func (r *Recorder) pause() {
	timer := time.NewTimer(again)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.ctx.Done():
	}
}

func (r *Recorder) stored(kv *mvccpb.KeyValue) {
	object, err := decode(kv)
	if err != nil {
		r.writer.fail(fmt.Errorf("recording %s: %w", kv.Key, err))
		return
	}
	r.writer.Add(Record{Kind: Stored, Key: string(kv.Key), Revision: kv.ModRevision, Version: kv.Version, Object: object})
}

// decode returns JSON of what the judge needs of an object.
func decode(kv *mvccpb.KeyValue) (json.RawMessage, error) {
	var object runtime.Object
	decoder := scheme.Codecs.UniversalDeserializer()
	switch key := string(kv.Key); {
	case strings.HasPrefix(key, FeaturesKey):
		object, decoder = &v1alpha1.Feature{}, featurescheme.Codecs.UniversalDeserializer()
	case strings.HasPrefix(key, ReportsKey):
		object, decoder = &v1alpha1.FeatureReport{}, featurescheme.Codecs.UniversalDeserializer()
	case strings.HasPrefix(key, LeasesKey), strings.HasPrefix(key, ServerLeasesKey):
		object = &coordinationv1.Lease{}
	default:
		object = &appsv1.StatefulSet{}
	}
	if _, _, err := decoder.Decode(kv.Value, nil, object); err != nil {
		return nil, err
	}
	if report, ok := object.(*v1alpha1.FeatureReport); ok && report.Spec.Component != server {
		// Hundreds of processes report hundreds of features.
		report.Spec.Features = nil
	}
	return json.Marshal(object)
}

// Watch records what a client sees of Features that it watches, until Stop.
func (r *Recorder) Watch(name string, client versioned.Interface) {
	r.group.Go(func() {
		for r.ctx.Err() == nil {
			r.watch(name, client)
			r.pause()
		}
	})
}

// watch records one list and the watch that follows it.
func (r *Recorder) watch(name string, client versioned.Interface) {
	api := client.FeaturesV1alpha1().Features(metav1.NamespaceSystem)
	list, err := api.List(r.ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	version, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
	if err != nil {
		r.writer.fail(fmt.Errorf("%s listed Features of version %q: %w", name, list.ResourceVersion, err))
		return
	}
	watcher, err := api.Watch(r.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return
	}
	defer watcher.Stop()
	r.writer.Add(Record{Kind: Watching, Client: name, Revision: version})
	for i := range list.Items {
		r.saw(Record{Kind: Watched, Client: name, Verb: "list"}, &list.Items[i])
	}
	for event := range watcher.ResultChan() {
		feature, ok := event.Object.(*v1alpha1.Feature)
		if !ok || event.Type == watch.Deleted {
			return
		}
		r.saw(Record{Kind: Watched, Client: name, Verb: "watch"}, feature)
	}
}

// Answered records that a client was answered with a Feature, to a request that began then.
func (r *Recorder) Answered(name, verb string, began time.Time, feature *v1alpha1.Feature) {
	r.saw(Record{Kind: Answered, Client: name, Verb: verb, Began: began.UTC().Round(0)}, feature)
}

func (r *Recorder) saw(record Record, feature *v1alpha1.Feature) {
	data, err := json.Marshal(feature)
	if err != nil {
		r.writer.fail(err)
		return
	}
	record.Key, record.Object = FeaturesKey+feature.Name, data
	if record.Revision, err = strconv.ParseInt(feature.ResourceVersion, 10, 64); err != nil {
		r.writer.fail(fmt.Errorf("%s saw %s of version %q: %w", record.Client, feature.Name, feature.ResourceVersion, err))
		return
	}
	r.writer.Add(record)
}
