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

package reporters

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"

	"k8s.io/kubernetes-features/test/scale/fleet"
	"k8s.io/kubernetes-features/test/scale/testbed"
)

// Where etcd has what this system stores.
const (
	reportsPrefix  = "/registry/featurereports/"
	featuresPrefix = "/registry/features/"
)

// writes counts what is written to etcd, by prefix.
type writes struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	counts map[string]int
	total  int
	err    error
}

// countWrites counts writes from now on until stop is called.
func countWrites(ctx context.Context, etcd *clientv3.Client) (*writes, error) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	w := &writes{cancel: cancel, counts: map[string]int{}}
	responses := etcd.Watch(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	if created, ok := <-responses; !ok || created.Err() != nil {
		cancel()
		return nil, fmt.Errorf("watching etcd: %w", errors.Join(errors.New("the watch was not created"), created.Err()))
	}
	w.done.Go(func() {
		for response := range responses {
			w.mu.Lock()
			if response.Err() != nil && ctx.Err() == nil {
				w.err = response.Err()
			}
			for _, event := range response.Events {
				w.total++
				for _, prefix := range []string{reportsPrefix, featuresPrefix} {
					if strings.HasPrefix(string(event.Kv.Key), prefix) {
						w.counts[prefix]++
					}
				}
			}
			w.mu.Unlock()
		}
	})
	return w, nil
}

// take returns the writes of reports, of features and of everything since the last
// time.
func (w *writes) take() (reports, features, all int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	reports, features, all = w.counts[reportsPrefix], w.counts[featuresPrefix], w.total
	clear(w.counts)
	w.total = 0
	return reports, features, all, w.err
}

func (w *writes) stop() {
	w.cancel()
	w.done.Wait()
}

// uses follows the Features of a cluster and says when status.uses counts a fleet
// right.
type uses struct {
	// wanted is how many processes of a component have which value of a feature.
	wanted map[useKey]int32

	mu    sync.Mutex
	right map[string]bool
	// changed receives something whenever right has changed.
	changed chan struct{}
	err     error

	cancel context.CancelFunc
	done   sync.WaitGroup
}

type useKey struct {
	feature, component string
	enabled            bool
}

// expected is what uses have to say of so many nodes.
func expected(templates map[string]fleet.Template, nodes int) map[useKey]int32 {
	wanted := map[useKey]int32{}
	for component, template := range templates {
		for _, o := range template.Observations {
			if o.Asked {
				wanted[useKey{o.Name, component, o.Enabled}] = int32(nodes)
			}
		}
	}
	return wanted
}

// followUses watches from now on until stop is called.
func followUses(ctx context.Context, c *testbed.Cluster, wanted map[useKey]int32) (*uses, error) {
	ctx, cancel := context.WithCancel(ctx)
	u := &uses{wanted: wanted, right: map[string]bool{}, changed: make(chan struct{}, 1), cancel: cancel}
	features := c.Features.FeaturesV1alpha1().Features(metav1.NamespaceSystem)
	list, err := features.List(ctx, metav1.ListOptions{})
	if err != nil {
		cancel()
		return nil, err
	}
	for i := range list.Items {
		u.see(&list.Items[i])
	}
	events, err := features.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		cancel()
		return nil, err
	}
	u.done.Go(func() {
		defer events.Stop()
		for event := range events.ResultChan() {
			feature, ok := event.Object.(*v1alpha1.Feature)
			if !ok || event.Type == watch.Deleted {
				u.fail(fmt.Errorf("watching features: %s %v", event.Type, event.Object))
				return
			}
			u.see(feature)
		}
		if ctx.Err() == nil {
			u.fail(fmt.Errorf("the watch of features ended"))
		}
	})
	return u, nil
}

func (u *uses) fail(err error) {
	u.mu.Lock()
	u.err = err
	u.mu.Unlock()
	u.notify()
}

func (u *uses) see(feature *v1alpha1.Feature) {
	counts := map[useKey]int32{}
	for _, use := range feature.Status.Uses {
		if use.Enabled != nil {
			counts[useKey{feature.Name, use.Component, *use.Enabled}] += use.Count
		}
	}
	right := true
	for key, want := range u.wanted {
		if key.feature == feature.Name && counts[key] != want {
			right = false
		}
	}
	u.mu.Lock()
	u.right[feature.Name] = right
	u.mu.Unlock()
	u.notify()
}

func (u *uses) notify() {
	select {
	case u.changed <- struct{}{}:
	default:
	}
}

// wait waits until the uses of all features are right, and returns when that was
// seen.
func (u *uses) wait(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		u.mu.Lock()
		missing, err := "", u.err
		for key := range u.wanted {
			if !u.right[key.feature] {
				missing = key.feature
			}
		}
		u.mu.Unlock()
		if err != nil {
			return time.Time{}, err
		}
		if missing == "" {
			return time.Now(), nil
		}
		select {
		case <-u.changed:
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("the uses of %s do not become right: %w", missing, ctx.Err())
		}
	}
}

func (u *uses) stop() {
	u.cancel()
	u.done.Wait()
}
