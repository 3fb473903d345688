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

package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
)

// Uses follows the Features of a cluster and says when status.uses counts a fleet
// right.
type Uses struct {
	// wanted is how many processes of a component have which value of a feature, users
	// how many there are of it in all: what is there besides is wrong, too.
	wanted, users map[UseKey]int32

	mu    sync.Mutex
	right map[string]bool
	// since is the time at which the last of all features became right, zero while one is not.
	since time.Time
	// changed receives something whenever right has changed.
	changed chan struct{}
	err     error

	cancel context.CancelFunc
	done   sync.WaitGroup
}

// UseKey is the users of a component that have a value of a feature. Without a
// version these are the users of all versions.
type UseKey struct {
	Feature, Component string
	Enabled            bool
	Version            string
}

// Expected is what uses have to say of processes.
func Expected(processes []*Process) map[UseKey]int32 {
	wanted := map[UseKey]int32{}
	for _, p := range processes {
		for _, o := range p.template.Observations {
			if o.Queried {
				wanted[UseKey{o.Name, p.Component, o.Enabled, p.template.BinaryVersion}]++
			}
		}
	}
	return wanted
}

// FollowUses watches from now on until Stop is called.
func FollowUses(ctx context.Context, client versioned.Interface, wanted map[UseKey]int32) (*Uses, error) {
	ctx, cancel := context.WithCancel(ctx)
	u := &Uses{wanted: wanted, users: map[UseKey]int32{}, right: map[string]bool{}, changed: make(chan struct{}, 1), cancel: cancel}
	for key, n := range wanted {
		u.users[UseKey{Feature: key.Feature, Component: key.Component}] += n
	}
	features := client.FeaturesV1alpha1().Features(metav1.NamespaceSystem)
	list, err := features.List(ctx, metav1.ListOptions{})
	if err != nil {
		cancel()
		return nil, err
	}
	for i := range list.Items {
		u.see(&list.Items[i])
	}
	// A server that is busy ends watches.
	events, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{WatchFuncWithContext: features.Watch})
	if err != nil {
		cancel()
		return nil, err
	}
	u.done.Go(func() {
		defer context.AfterFunc(ctx, events.Stop)()
		defer events.Stop()
		for event := range events.ResultChan() {
			feature, ok := event.Object.(*v1alpha1.Feature)
			switch {
			case event.Type == watch.Error:
				u.fail(fmt.Errorf("watching features: %w", apierrors.FromObject(event.Object)))
				return
			case !ok || event.Type == watch.Deleted:
				u.fail(fmt.Errorf("watching features: %s %v", event.Type, event.Object))
				return
			}
			u.see(feature)
		}
		if ctx.Err() == nil {
			u.fail(errors.New("the watch of features ended unexpectedly"))
		}
	})
	return u, nil
}

func (u *Uses) fail(err error) {
	u.mu.Lock()
	u.err = err
	u.mu.Unlock()
	u.notify()
}

func (u *Uses) see(feature *v1alpha1.Feature) {
	counts, users := map[UseKey]int32{}, map[UseKey]int32{}
	for _, use := range feature.Status.Uses {
		if use.Enabled == nil {
			continue
		}
		key := UseKey{Feature: feature.Name, Component: use.Component, Enabled: *use.Enabled}
		counts[key] += use.Count
		if use.Version != "" {
			key.Version = use.Version
			counts[key] += use.Count
		}
		users[UseKey{Feature: feature.Name, Component: use.Component}] += use.Count
	}
	right := true
	for key, want := range u.wanted {
		if key.Feature == feature.Name && counts[key] != want {
			right = false
		}
	}
	for key, want := range u.users {
		if key.Feature == feature.Name && users[key] != want {
			right = false
		}
	}
	u.mu.Lock()
	u.right[feature.Name] = right
	if u.missingLocked() != "" {
		u.since = time.Time{}
	} else if u.since.IsZero() {
		u.since = time.Now()
	}
	u.mu.Unlock()
	u.notify()
}

// missingLocked is a feature whose uses are not right, "" when all are.
func (u *Uses) missingLocked() string {
	for key := range u.wanted {
		if !u.right[key.Feature] {
			return key.Feature
		}
	}
	return ""
}

func (u *Uses) notify() {
	select {
	case u.changed <- struct{}{}:
	default:
	}
}

// Wait waits until the uses of all features are right, and returns when that was
// seen, which may have been before the call.
func (u *Uses) Wait(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		u.mu.Lock()
		missing, since, err := u.missingLocked(), u.since, u.err
		u.mu.Unlock()
		if err != nil {
			return time.Time{}, err
		}
		if missing == "" {
			return since, nil
		}
		select {
		case <-u.changed:
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("the uses of %s do not become right: %w", missing, ctx.Err())
		}
	}
}

// Stop ends the watch.
func (u *Uses) Stop() {
	u.cancel()
	u.done.Wait()
}
