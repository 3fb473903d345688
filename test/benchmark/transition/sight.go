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

package transition

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// sight is what a watch has shown of one Feature, with the times.
type sight struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	// news has room for one signal.
	news chan struct{}

	mu    sync.Mutex
	last  *v1alpha1.Feature
	times []time.Time
	err   error
}

// see watches a Feature until stop is called.
func (w *world) see(ctx context.Context, name string) (*sight, error) {
	client := w.Features.FeaturesV1alpha1().Features(metav1.NamespaceSystem)
	now, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	events, err := client.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(), ResourceVersion: now.ResourceVersion})
	if err != nil {
		cancel()
		return nil, err
	}
	s := &sight{cancel: cancel, news: make(chan struct{}, 1), last: now}
	s.done.Go(func() {
		defer events.Stop()
		for event := range events.ResultChan() {
			s.note(event)
		}
		if ctx.Err() == nil {
			s.note(watch.Event{})
		}
	})
	return s, nil
}

func (s *sight) note(event watch.Event) {
	at := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := event.Object.(*v1alpha1.Feature); ok && event.Type != watch.Deleted {
		s.last, s.times = f, append(s.times, at)
	} else {
		s.err = fmt.Errorf("the watch of the Feature ended: %s %v", event.Type, event.Object)
	}
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// until waits until the Feature is as wanted and returns when that was seen.
func (s *sight) until(ctx context.Context, wanted func(*v1alpha1.Feature) bool) (time.Time, error) {
	for {
		s.mu.Lock()
		last, err, at := s.last, s.err, time.Now()
		if n := len(s.times); n > 0 {
			at = s.times[n-1]
		}
		s.mu.Unlock()
		if err != nil {
			return at, err
		}
		if wanted(last) {
			return at, nil
		}
		select {
		case <-s.news:
		case <-ctx.Done():
			return at, fmt.Errorf("feature %s does not get there: %w; it is %+v", last.Name, ctx.Err(), last)
		}
	}
}

// between is how often the Feature was written after a moment, up to another.
func (s *sight) between(begun, ended time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, at := range s.times {
		if at.After(begun) && !at.After(ended) {
			n++
		}
	}
	return n
}

func (s *sight) stop() {
	s.cancel()
	s.done.Wait()
}
