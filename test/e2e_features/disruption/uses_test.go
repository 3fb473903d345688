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

package disruption

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	featurescheme "k8s.io/feature-lifecycle/client/clientset/versioned/scheme"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// use is a part of a feature's users.
type use struct {
	feature, component string
	enabled            bool
}

// miscounted returns where the uses that Features show are not those that the reports
// of living processes say.
func (w *world) miscounted(ctx context.Context) (string, error) {
	want, reports, err := w.usersByReports(ctx)
	if err != nil {
		return "", err
	}
	// Their Nodes are there, so they are missed for good.
	dumb := w.people.neverReported(reports)
	got := map[use]int{}
	var wrong []string
	for _, name := range w.features() {
		for _, u := range w.history(name).Last().Status.Uses {
			switch {
			case u.Enabled == nil && u.Component == onNode[0] && int(u.Expected) == dumb:
			case u.Enabled == nil:
				wrong = append(wrong, fmt.Sprintf("%s misses %d of %s (%v)", name, u.Expected, u.Component, u.Examples))
			case u.Count > 0:
				got[use{name, u.Component, *u.Enabled}] += int(u.Count)
			}
		}
	}
	for u, n := range want {
		if got[u] != n {
			wrong = append(wrong, fmt.Sprintf("%s: %d of %s have %t, its status says %d", u.feature, n, u.component, u.enabled, got[u]))
		}
	}
	for u, n := range got {
		if want[u] == 0 {
			wrong = append(wrong, fmt.Sprintf("%s: none of %s has %t, its status says %d", u.feature, u.component, u.enabled, n))
		}
	}
	slices.Sort(wrong)
	if len(wrong) > 0 {
		if silent := w.silentAgents(ctx); len(silent) > 0 {
			wrong = append(wrong, fmt.Sprintf("these live and have not renewed their Leases for %s, so nothing tells that they do: %v", tracker.MaxLeaseTimeout, silent))
		}
		if w.people != nil {
			if unready, err := w.people.unready(ctx, w.kept()); err != nil || len(unready) > 0 {
				wrong = append(wrong, fmt.Sprintf("these nodes live and are not Ready, so their processes do not count: %v (%v)", unready, err))
			}
		}
	}
	return strings.Join(wrong, "; "), nil
}

// silentAgents are the agents that live and whose Leases say otherwise, for messages:
// on a machine that is too busy there may be some.
func (w *world) silentAgents(ctx context.Context) []string {
	if w.people == nil {
		return nil
	}
	leases, err := w.kept().kube.CoordinationV1().Leases(v1alpha1.LeaseNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return []string{err.Error()}
	}
	renewed := map[string]time.Time{}
	for _, lease := range leases.Items {
		if lease.Spec.RenewTime != nil {
			renewed[lease.Name] = lease.Spec.RenewTime.Time
		}
	}
	w.people.mu.Lock()
	defer w.people.mu.Unlock()
	var silent []string
	for _, process := range w.people.agents {
		if time.Since(renewed[process.report]) > tracker.MaxLeaseTimeout {
			silent = append(silent, process.report)
		}
	}
	slices.Sort(silent)
	return silent
}

// usersByReports counts users by what living processes report, and returns the names of all
// reports.
func (w *world) usersByReports(ctx context.Context) (users map[use]int, reports map[string]bool, err error) {
	response, err := w.etcd.Get(ctx, reportsKey, clientv3.WithPrefix())
	if err != nil {
		return nil, nil, err
	}
	users, reports = map[use]int{}, map[string]bool{}
	for _, kv := range response.Kvs {
		report := &v1alpha1.FeatureReport{}
		if _, _, err := featurescheme.Codecs.UniversalDeserializer().Decode(kv.Value, nil, report); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", kv.Key, err)
		}
		reports[report.Name] = true
		if w.people.dead(report) {
			continue
		}
		for _, f := range report.Spec.Features {
			if f.Queried {
				users[use{f.Name, report.Spec.Component, f.Enabled}]++
			}
		}
	}
	return users, reports, nil
}

// neverReported is how many nodes there are whose machines died before their kubelets had
// reported.
func (p *population) neverReported(reports map[string]bool) (n int) {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, node := range p.nodes {
		if node.silent && !reports[onNode[0]+"."+name] {
			n++
		}
	}
	return n
}

// dead is true for the report of a simulated process that is gone.
func (p *population) dead(report *v1alpha1.FeatureReport) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, gone := p.gone[report.Name]; gone {
		return true
	}
	if !strings.HasPrefix(report.Spec.NodeName, "soaked-") {
		return false
	}
	n := p.nodes[report.Spec.NodeName]
	return n == nil || n.silent
}

// TestMachinesThatDiedTooEarly: a kubelet that has reported is not missed, nor is one whose
// machine lives and may report still.
func TestMachinesThatDiedTooEarly(t *testing.T) {
	p := &population{nodes: map[string]*node{
		"a": {name: "a", silent: true}, "b": {name: "b", silent: true}, "c": {name: "c"},
	}}
	if n := p.neverReported(map[string]bool{"kubelet.b": true, "kube-proxy.a": true}); n != 1 {
		t.Errorf("%d kubelets are missed for good, want that of a alone", n)
	}
}

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

// follow notes clearings until the test ends.
func (c *clearings) follow(t *testing.T, etcd *clientv3.Client) {
	followKeys(t, etcd, framework.StatefulSetsKey, func(event *clientv3.Event) { c.note(t, event) })
}

// followKeys passes the changes below a key of etcd to a function until the test ends.
// It misses what was compacted meanwhile.
func followKeys(t *testing.T, etcd *clientv3.Client, prefix string, note func(*clientv3.Event)) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for response := range etcd.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithPrevKV()) {
				for _, event := range response.Events {
					note(event)
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
// while the state is TurningOff and no use is waited for any more. A write that was
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
