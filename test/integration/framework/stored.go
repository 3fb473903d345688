//go:build linux

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

package framework

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

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
}

// FollowFeatures gives every version of the Feature at a key of etcd, or of those
// below one that ends with a slash, that was ever stored to add, in order, until the test ends. It is read from etcd itself,
// so that no fault of a server hides anything, and goes on where it was after etcd
// was away. One that was deleted, or cannot be read, is an error. Calls of add come
// one at a time.
func FollowFeatures(t *testing.T, etcd *clientv3.Client, key string, add func([]StoredFeature, error)) {
	ctx, cancel := context.WithCancel(t.Context())
	options := []clientv3.OpOption{clientv3.WithRev(1)}
	if strings.HasSuffix(key, "/") {
		options = append(options, clientv3.WithPrefix())
	}
	events := etcd.Watch(ctx, key, options...)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for response := range events {
			add(storedFeatures(response))
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func storedFeatures(response clientv3.WatchResponse) (stored []StoredFeature, err error) {
	err = response.Err()
	for _, event := range response.Events {
		feature := &v1alpha1.Feature{}
		if event.Type == clientv3.EventTypeDelete {
			err = errors.Join(err, fmt.Errorf("%s was deleted", event.Kv.Key))
		} else if _, _, decodeErr := scheme.Codecs.UniversalDeserializer().Decode(event.Kv.Value, nil, feature); decodeErr != nil {
			err = errors.Join(err, fmt.Errorf("reading %s: %w", event.Kv.Key, decodeErr))
		} else {
			stored = append(stored, StoredFeature{feature, event.Kv.ModRevision})
		}
	}
	return stored, err
}
