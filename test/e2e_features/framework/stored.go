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

package framework

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/util/wait"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/scheme"
)

// FeaturesKey is where etcd has the Features of Kubernetes, with a slash at its
// end.
const FeaturesKey = "/registry/features/kube-system/"

// StoredFeature is a Feature as it was stored.
type StoredFeature struct {
	*v1alpha1.Feature
	// Revision is etcd's.
	Revision int64
	// Missed is how many versions between this one and the one before were not
	// seen: etcd was compacted while it could not be followed.
	Missed int64
}

// FollowFeatures gives every version of the Feature at a key of etcd, or of those below one that
// ends with a slash, that was ever stored to add, in order, until the test ends. It is read from
// etcd itself, so that no fault of a server hides anything, and continues where it was after etcd
// was away. One that was deleted, or cannot be read, is an error. Calls of add come one at a time.
func FollowFeatures(t *testing.T, etcd *clientv3.Client, key string, add func([]StoredFeature, error)) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &follower{etcd: etcd, key: key, writes: map[string]int64{}}
	if strings.HasSuffix(key, "/") {
		f.options = []clientv3.OpOption{clientv3.WithPrefix()}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.follow(ctx, add)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// follower follows the Features at a key.
type follower struct {
	etcd    *clientv3.Client
	key     string
	options []clientv3.OpOption
	// writes is how often each was written, as far as was seen.
	writes map[string]int64
}

func (f *follower) follow(ctx context.Context, add func([]StoredFeature, error)) {
	for next := int64(1); ctx.Err() == nil; {
		for response := range f.etcd.Watch(ctx, f.key, slices.Concat(f.options, []clientv3.OpOption{clientv3.WithRev(next)})...) {
			if response.CompactRevision > 0 {
				// What lay between is gone; how much that was shows below.
				break
			}
			stored, err := f.stored(response.Events)
			add(stored, errors.Join(response.Err(), err))
		}
		stored, revision, err := f.catchUp(ctx)
		if ctx.Err() != nil {
			return
		}
		add(stored, err)
		next = revision + 1
	}
}

// catchUp reads what is stored now and was not seen.
func (f *follower) catchUp(ctx context.Context) (stored []StoredFeature, revision int64, err error) {
	var response *clientv3.GetResponse
	err = wait.PollUntilContextTimeout(ctx, time.Second, Patience, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		var err error
		response, err = f.etcd.Get(ctx, f.key, f.options...)
		return err == nil, nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", f.key, err)
	}
	var events []*clientv3.Event
	slices.SortFunc(response.Kvs, func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.ModRevision, b.ModRevision) })
	for _, kv := range response.Kvs {
		if kv.Version > f.writes[string(kv.Key)] {
			events = append(events, &clientv3.Event{Type: clientv3.EventTypePut, Kv: kv})
		}
	}
	stored, err = f.stored(events)
	return stored, response.Header.Revision, err
}

func (f *follower) stored(events []*clientv3.Event) (stored []StoredFeature, err error) {
	for _, event := range events {
		feature, key := &v1alpha1.Feature{}, string(event.Kv.Key)
		if event.Type == clientv3.EventTypeDelete {
			err = errors.Join(err, fmt.Errorf("%s was deleted", key))
		} else if _, _, decodeErr := scheme.Codecs.UniversalDeserializer().Decode(event.Kv.Value, nil, feature); decodeErr != nil {
			err = errors.Join(err, fmt.Errorf("reading %s: %w", key, decodeErr))
		} else {
			stored = append(stored, StoredFeature{feature, event.Kv.ModRevision, event.Kv.Version - f.writes[key] - 1})
			f.writes[key] = event.Kv.Version
		}
	}
	return stored, err
}
