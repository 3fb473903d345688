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

package disruption

import (
	"context"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/integration/framework"
)

// clearings are the writes of StatefulSets that took the field away. No client of
// this test does. It is safe for concurrent use.
type clearings struct {
	mu      sync.Mutex
	pending []clearing
	// cleared is how many there were; late were stored when the transition that
	// they belong to had been called off already.
	cleared, late int
}

// clearing is one write.
type clearing struct {
	name     string
	revision int64
	at       time.Time
	was, is  *appsv1.StatefulSet
}

// follow notes clearings until the test ends. What was compacted meanwhile is not
// seen.
func (c *clearings) follow(t *testing.T, etcd *clientv3.Client) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for response := range etcd.Watch(ctx, framework.StatefulSetsKey, clientv3.WithPrefix(), clientv3.WithPrevKV()) {
				for _, event := range response.Events {
					c.note(t, event)
				}
			}
			hold(ctx, time.Second)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func (c *clearings) note(t *testing.T, event *clientv3.Event) {
	if event.Type != clientv3.EventTypePut || event.PrevKv == nil {
		return
	}
	was, err := framework.DecodeStatefulSet(event.PrevKv.Value)
	if err != nil {
		t.Errorf("%s: %v", event.PrevKv.Key, err)
		return
	}
	is, err := framework.DecodeStatefulSet(event.Kv.Value)
	if err != nil {
		t.Errorf("%s: %v", event.Kv.Key, err)
		return
	}
	if framework.HasMaxUnavailable(was) && !framework.HasMaxUnavailable(is) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pending = append(c.pending, clearing{is.Name, event.Kv.ModRevision, time.Now(), was, is})
	}
}

// judge checks S7, and S2 by the history of the Feature: the field may go only
// while the state is TurningOff and nobody is waited for any more. A write that was
// under way when that ended arrives a moment later.
func (c *clearings) judge(t *testing.T, versions []framework.FeatureVersion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, write := range c.pending {
		c.cleared++
		if !equality.Semantic.DeepEqual(framework.WithoutMaxUnavailable(write.was), framework.WithoutMaxUnavailable(write.is)) {
			t.Errorf("S7: StatefulSet %s changed elsewhere than in the field that was cleared: it was %+v and is %+v", write.name, write.was, write.is)
		}
		clearing, recently := false, false
		for _, v := range versions {
			if v.Revision >= write.revision {
				break
			}
			clearing = v.Status.State == v1alpha1.StateTurningOff && len(v.Status.Tasks) > 0 && v.Status.Tasks[0].Name != v1alpha1.TaskWaitForUses
			recently = recently || clearing
		}
		switch {
		case clearing:
		case recently:
			c.late++
		default:
			t.Errorf("S2: StatefulSet %s lost the field before waiting for uses had ended", write.name)
		}
	}
	c.pending = nil
}
