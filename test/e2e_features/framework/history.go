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
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/api/meta"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// FeatureKey is where etcd has a Feature of Kubernetes.
func FeatureKey(name string) string { return FeaturesKey + name }

// History has every version of one Feature that was ever stored, in order
// (FollowFeatures). It is safe for concurrent use.
type History struct {
	mu sync.Mutex
	// versions are those after the first dropped ones.
	versions []FeatureVersion
	dropped  int
	news     chan struct{}
	err      error
}

// FeatureVersion is a Feature as it was stored.
type FeatureVersion struct {
	StoredFeature
	// At is the time at which it was seen.
	At time.Time
}

// NewHistory makes an empty history, for those who follow many Features at once.
func NewHistory() *History { return &History{news: make(chan struct{})} }

// RecordFeature follows a Feature until the test ends.
func RecordFeature(t *testing.T, etcd *clientv3.Client, name string) *History {
	h := NewHistory()
	FollowFeatures(t, etcd, FeatureKey(name), h.Add)
	return h
}

// Add adds what was stored, and what kept others from being seen.
func (h *History) Add(stored []StoredFeature, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.err = errors.Join(h.err, err)
	for _, feature := range stored {
		h.versions = append(h.versions, FeatureVersion{feature, now})
	}
	close(h.news)
	h.news = make(chan struct{})
}

// Mark is a place in the history: what is stored from now on comes after it.
func (h *History) Mark() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dropped + len(h.versions)
}

// Since returns the versions after a mark that were not dropped.
func (h *History) Since(mark int) []FeatureVersion {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.sinceLocked(mark))
}

func (h *History) sinceLocked(mark int) []FeatureVersion {
	return h.versions[min(max(mark-h.dropped, 0), len(h.versions)):]
}

// Last is the version that is stored now. There has to be one.
func (h *History) Last() FeatureVersion {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.versions[len(h.versions)-1]
}

// Drop forgets the versions before a mark, but the last: for tests that run for
// hours.
func (h *History) Drop(mark int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := min(mark-h.dropped, len(h.versions)-1); n > 0 {
		h.versions, h.dropped = slices.Clone(h.versions[n:]), h.dropped+n
	}
}

// Wait returns the first version after a mark that is as wanted.
func (h *History) Wait(t testing.TB, mark int, what string, wanted func(FeatureVersion) bool) FeatureVersion {
	t.Helper()
	v, err := h.Await(t.Context(), mark, what, wanted)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Await is Wait for goroutines that must not end the test.
func (h *History) Await(ctx context.Context, mark int, what string, wanted func(FeatureVersion) bool) (FeatureVersion, error) {
	timeout := time.NewTimer(Patience)
	defer timeout.Stop()
	for {
		h.mu.Lock()
		news, versions, err := h.news, h.sinceLocked(mark), h.err
		mark = max(mark, h.dropped) + len(versions)
		h.mu.Unlock()
		if err != nil {
			return FeatureVersion{}, fmt.Errorf("following the Feature in etcd: %w", err)
		}
		for i, v := range versions {
			if wanted(v) {
				return versions[i], nil
			}
		}
		select {
		case <-news:
		case <-timeout.C:
			return FeatureVersion{}, fmt.Errorf("waiting for the Feature to be %s: %s", what, h.present())
		case <-ctx.Done():
			return FeatureVersion{}, fmt.Errorf("waiting for the Feature to be %s: %w", what, ctx.Err())
		}
	}
}

// present returns what is stored now.
func (h *History) present() string {
	if h.Mark() == 0 {
		return "there is none"
	}
	last := h.Last()
	return fmt.Sprintf("it is %s with tasks %+v, conditions %+v", last.Status.State, last.Status.Tasks, last.Status.Conditions)
}

// AtRest is true for a Feature in state On or Off.
func AtRest(v FeatureVersion) bool {
	return v.Status.State == v1alpha1.StateOn || v.Status.State == v1alpha1.StateOff
}

// FalseState returns how a part of the history breaks S1, "" when it does not: a
// state of rest has no task left, and follows only a transition without one.
func FalseState(versions []FeatureVersion) string {
	for i, v := range versions {
		rests := AtRest(v)
		if rests && (len(v.Status.Tasks) > 0 || v.Status.Transition != nil) {
			return fmt.Sprintf("state %s with tasks %+v", v.Status.State, v.Status.Tasks)
		}
		if i > 0 && rests && v.Missed == 0 && len(versions[i-1].Status.Tasks) > 1 {
			return fmt.Sprintf("state %s while these tasks were left: %+v", v.Status.State, versions[i-1].Status.Tasks)
		}
	}
	return ""
}

// EarlyTask returns how a part of the history breaks S2, "" when it does not: no task
// is tried before waiting for uses has ended.
func EarlyTask(versions []FeatureVersion) string {
	for _, v := range versions {
		for i, task := range v.Status.Tasks {
			if i > 0 && (task.Attempts > 0 || task.Done > 0 || task.LastAttemptTime != nil) {
				return fmt.Sprintf("task %s was tried (%d attempts, %d done) while %s is before it", task.Name, task.Attempts, task.Done, v.Status.Tasks[0].Name)
			}
		}
	}
	return ""
}

// LostTask returns how a part of the history breaks S3, "" when it does not: a
// transition begins with waiting for uses, and its tasks go from the front only.
func LostTask(versions []FeatureVersion) string {
	for i, v := range versions {
		if v.Status.Transition == nil {
			continue
		}
		now := taskNames(v)
		if i == 0 || v.Missed > 0 {
			continue
		}
		last := versions[i-1]
		if last.Status.Transition == nil || last.Status.Transition.ID != v.Status.Transition.ID {
			if len(now) == 0 || now[0] != v1alpha1.TaskWaitForUses {
				return fmt.Sprintf("transition %s began with tasks %v", v.Status.Transition.ID, now)
			}
			continue
		}
		if was := taskNames(last); !strings.HasSuffix("\n"+strings.Join(was, "\n"), "\n"+strings.Join(now, "\n")) {
			return fmt.Sprintf("the tasks of transition %s were %v and then %v", v.Status.Transition.ID, was, now)
		}
	}
	return ""
}

func taskNames(v FeatureVersion) []string {
	var names []string
	for _, task := range v.Status.Tasks {
		names = append(names, task.Name)
	}
	return names
}

// States are the states of a part of the history, each once in a row.
func States(versions []FeatureVersion) []v1alpha1.FeatureState {
	var result []v1alpha1.FeatureState
	for _, v := range versions {
		result = append(result, v.Status.State)
	}
	return slices.Compact(result)
}

// Transitions are the ids of the transitions of a part of the history.
func Transitions(versions []FeatureVersion) []string {
	var result []string
	for _, v := range versions {
		if v.Status.Transition != nil {
			result = append(result, v.Status.Transition.ID)
		}
	}
	return slices.Compact(result)
}

// In is true for a Feature at rest in a state.
func In(state v1alpha1.FeatureState) func(FeatureVersion) bool {
	return func(v FeatureVersion) bool { return v.Status.State == state }
}

// Because is true when a condition has a reason.
func Because(kind, reason string) func(FeatureVersion) bool {
	return func(v FeatureVersion) bool {
		c := meta.FindStatusCondition(v.Status.Conditions, kind)
		return c != nil && c.Reason == reason
	}
}
