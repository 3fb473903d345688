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

package faults

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/api/meta"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/integration/framework"
)

// history has every version of one Feature that was ever stored, in order
// (framework.FollowFeatures). It is safe for concurrent use.
type history struct {
	mu       sync.Mutex
	versions []version
	news     chan struct{}
	err      error
}

// version is a Feature as it was stored.
type version struct {
	*v1alpha1.Feature
	// at is when it was seen.
	at time.Time
	// revision is etcd's.
	revision int64
}

// featureKey is where etcd has a Feature of Kubernetes.
func featureKey(name string) string { return framework.FeaturesKey + name }

// record follows a Feature until the test ends.
func record(t *testing.T, etcd *clientv3.Client, name string) *history {
	h := &history{news: make(chan struct{})}
	framework.FollowFeatures(t, etcd, featureKey(name), h.add)
	return h
}

func (h *history) add(stored []framework.StoredFeature, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.err = errors.Join(h.err, err)
	for _, feature := range stored {
		h.versions = append(h.versions, version{feature.Feature, now, feature.Revision})
	}
	close(h.news)
	h.news = make(chan struct{})
}

// mark is a place in the history: what is stored from now on comes after it.
func (h *history) mark() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.versions)
}

// since returns the versions after a mark.
func (h *history) since(mark int) []version {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.versions[mark:])
}

// last is the version that is stored now.
func (h *history) last() version {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.versions[len(h.versions)-1]
}

// wait returns the first version after a mark that is as wanted.
func (h *history) wait(t testing.TB, mark int, what string, wanted func(version) bool) version {
	t.Helper()
	timeout := time.After(framework.Patience)
	for {
		h.mu.Lock()
		news, versions, err := h.news, h.versions[mark:], h.err
		h.mu.Unlock()
		if err != nil {
			t.Fatalf("following the Feature in etcd: %v", err)
		}
		for i, v := range versions {
			if wanted(v) {
				return versions[i]
			}
		}
		mark += len(versions)
		select {
		case <-news:
		case <-timeout:
			if h.mark() == 0 {
				t.Fatalf("waiting for the Feature to be %s: there is none", what)
			}
			last := h.last()
			t.Fatalf("waiting for the Feature to be %s; it is %s with tasks %+v, conditions %+v", what, last.Status.State, last.Status.Tasks, last.Status.Conditions)
		case <-t.Context().Done():
			t.Fatalf("waiting for the Feature to be %s: %v", what, t.Context().Err())
		}
	}
}

// falseState says how a part of the history breaks S1, "" when it does not: a
// state of rest has no task left, and follows only a transition without one.
func falseState(versions []version) string {
	for i, v := range versions {
		rests := v.Status.State == v1alpha1.StateOn || v.Status.State == v1alpha1.StateOff
		if rests && (len(v.Status.Tasks) > 0 || v.Status.Transition != nil) {
			return fmt.Sprintf("state %s with tasks %+v", v.Status.State, v.Status.Tasks)
		}
		if i > 0 && rests && len(versions[i-1].Status.Tasks) > 1 {
			return fmt.Sprintf("state %s while these tasks were left: %+v", v.Status.State, versions[i-1].Status.Tasks)
		}
	}
	return ""
}

// states are the states of a part of the history, each once in a row.
func states(versions []version) []v1alpha1.FeatureState {
	var result []v1alpha1.FeatureState
	for _, v := range versions {
		result = append(result, v.Status.State)
	}
	return slices.Compact(result)
}

// transitions are the ids of the transitions of a part of the history.
func transitions(versions []version) []string {
	var result []string
	for _, v := range versions {
		if v.Status.Transition != nil {
			result = append(result, v.Status.Transition.ID)
		}
	}
	return slices.Compact(result)
}

// in is true for a Feature at rest in a state.
func in(state v1alpha1.FeatureState) func(version) bool {
	return func(v version) bool { return v.Status.State == state }
}

// because is true when a condition has a reason.
func because(kind, reason string) func(version) bool {
	return func(v version) bool {
		c := meta.FindStatusCondition(v.Status.Conditions, kind)
		return c != nil && c.Reason == reason
	}
}
