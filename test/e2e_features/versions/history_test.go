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

package versions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// history has every status of every Feature that was ever stored, read from etcd
// itself. It is safe for concurrent use.
type history struct {
	mu       sync.Mutex
	statuses map[string][]v1alpha1.FeatureStatus
	news     chan struct{}
	err      error
}

// record follows all Features until the test ends.
func record(t *testing.T, etcd *clientv3.Client) *history {
	h := &history{statuses: map[string][]v1alpha1.FeatureStatus{}, news: make(chan struct{})}
	framework.FollowFeatures(t, etcd, framework.FeaturesKey, h.add)
	return h
}

func (h *history) add(stored []framework.StoredFeature, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = errors.Join(h.err, err)
	for _, feature := range stored {
		h.statuses[feature.Name] = append(h.statuses[feature.Name], feature.Status)
	}
	close(h.news)
	h.news = make(chan struct{})
}

// mark is a place in the history of all Features.
func (h *history) mark() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	mark := map[string]int{}
	for name, statuses := range h.statuses {
		mark[name] = len(statuses)
	}
	return mark
}

// since are the statuses of a Feature after a mark.
func (h *history) since(mark map[string]int, name string) []v1alpha1.FeatureStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.statuses[name][mark[name]:])
}

// last are the statuses of all Features that are stored now.
func (h *history) last() map[string]v1alpha1.FeatureStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := map[string]v1alpha1.FeatureStatus{}
	for name, statuses := range h.statuses {
		last[name] = statuses[len(statuses)-1]
	}
	return last
}

// wait waits until something holds of what is stored.
func (h *history) wait(t *testing.T, what string, holds func(map[string]v1alpha1.FeatureStatus) bool) {
	t.Helper()
	timeout := time.After(framework.Patience)
	for {
		h.mu.Lock()
		news, err := h.news, h.err
		h.mu.Unlock()
		if err != nil {
			t.Fatalf("following Features in etcd: %v", err)
		}
		last := h.last()
		if holds(last) {
			return
		}
		select {
		case <-news:
		case <-timeout:
			t.Fatalf("waiting until %s; last:\n%s", what, restless(last))
		case <-t.Context().Done():
			t.Fatalf("waiting until %s: %v", what, t.Context().Err())
		}
	}
}

// allRest is true when every Feature has its configured value and the form of a version.
func allRest(last map[string]v1alpha1.FeatureStatus, version string) bool {
	for _, s := range last {
		if (s.State != v1alpha1.StateOn && s.State != v1alpha1.StateOff) || s.Version != version || s.Configured == nil || s.Configured.Value != (s.State == v1alpha1.StateOn) {
			return false
		}
	}
	return true
}

// restless are the features of the test, and all that a server flow has something left
// to do for.
func restless(last map[string]v1alpha1.FeatureStatus) string {
	var lines []string
	for name, s := range last {
		rests := (s.State == v1alpha1.StateOn || s.State == v1alpha1.StateOff) && s.Transition == nil && s.Configured != nil && s.Configured.Value == (s.State == v1alpha1.StateOn)
		if !rests || slices.Contains([]string{workload, kept, removed}, name) {
			lines = append(lines, fmt.Sprintf("%s: %+v", name, s))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// stages are the states of statuses with the versions, each once in a row.
func stages(statuses []v1alpha1.FeatureStatus) []string {
	var result []string
	for _, s := range statuses {
		result = append(result, fmt.Sprintf("%s@%s", s.State, s.Version))
	}
	return slices.Compact(result)
}

// broken returns how statuses that follow each other break S1 to S3, "" when they do
// not: no state of rest while a task is left, the first task goes first, and none
// is lost.
func broken(statuses []v1alpha1.FeatureStatus) string {
	names := func(s v1alpha1.FeatureStatus) (names []string) {
		for _, task := range s.Tasks {
			names = append(names, task.Name)
		}
		return names
	}
	for i, s := range statuses {
		rests := s.State == v1alpha1.StateOn || s.State == v1alpha1.StateOff
		switch {
		case rests && (len(s.Tasks) > 0 || s.Transition != nil):
			return fmt.Sprintf("S1: %s with tasks %v", s.State, names(s))
		case i == 0:
		case s.Transition != nil && (statuses[i-1].Transition == nil || statuses[i-1].Transition.ID != s.Transition.ID):
			if len(s.Tasks) == 0 || s.Tasks[0].Name != v1alpha1.TaskWaitForUses {
				return fmt.Sprintf("S2: %s begins with tasks %v", s.State, names(s))
			}
			if statuses[i-1].Transition != nil {
				return fmt.Sprintf("S3: %s is replaced by %s: %v", statuses[i-1].State, s.State, names(statuses[i-1]))
			}
		default:
			if was, is := names(statuses[i-1]), names(s); !slices.Equal(was, is) && (len(was) == 0 || !slices.Equal(was[1:], is)) {
				return fmt.Sprintf("S3: tasks %v became %v", was, is)
			}
		}
	}
	return ""
}
