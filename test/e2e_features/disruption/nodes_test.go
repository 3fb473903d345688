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
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/feature-lifecycle/agent"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/rollout"
	"k8s.io/utils/ptr"
)

// node is a simulated node. Its reports go with its Node.
type node struct {
	name      string
	processes []*simulated
	// silent is true for one whose machine has died.
	silent bool
}

// addNode makes a node with its processes.
func (p *population) addNode(ctx context.Context, random *rand.Rand) error {
	n := &node{name: p.name("soaked")}
	labels := map[string]string{soaked: "true"}
	err := p.w.try(ctx, random, "creating a node", func(ctx context.Context, s server) error {
		created, err := s.kube.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: labels}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			created, err = s.kube.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
		}
		if err != nil {
			return err
		}
		created.Status.Conditions = []corev1.NodeCondition{well()}
		created.Status.NodeInfo.KubeletVersion = p.version
		if created, err = s.kube.CoreV1().Nodes().UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
			return err
		}
		now := metav1.NowMicro()
		_, err = s.kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: labels, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.name, UID: created.UID}}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &n.name, LeaseDurationSeconds: ptr.To[int32](40), RenewTime: &now},
		}, metav1.CreateOptions{})
		return done(err)
	})
	if err != nil {
		return err
	}
	for _, component := range onNode {
		process, err := p.simulate(random, component, n.name, n.name)
		if err != nil {
			return err
		}
		n.processes = append(n.processes, process)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes[n.name] = n
	for _, process := range n.processes {
		p.tellLocked(process)
	}
	p.w.stats.count("nodes added")
	return nil
}

// churnNodes adds a node, lets the machine of one die, or removes one, as an
// autoscaler does, whether it is alive or not.
func (w *world) churnNodes(ctx context.Context, random *rand.Rand) error {
	p := w.people
	p.mu.Lock()
	count, n := len(p.nodes), p.nodes[pick(random, p.nodes)]
	p.mu.Unlock()
	switch what := random.IntN(5); {
	case count <= fewestNodes || what < 2 && count < mostNodes:
		return p.addNode(ctx, random)
	case what < 3 && !n.silent:
		p.mu.Lock()
		n.silent = true
		p.mu.Unlock()
		for _, process := range n.processes {
			process.crash()
		}
		p.w.stats.count("machines of nodes died")
		return nil
	default:
		return p.removeNode(ctx, random, n, random.IntN(2) == 0)
	}
}

// removeNode deletes a node; its processes end in order before, or are just gone.
func (p *population) removeNode(ctx context.Context, random *rand.Rand, n *node, inOrder bool) error {
	p.mu.Lock()
	delete(p.nodes, n.name)
	p.mu.Unlock()
	for _, process := range n.processes {
		process.crash()
		if inOrder && !n.silent {
			// If its server is away, the report goes with the Node.
			_ = process.reporter.Remove(ctx)
		}
		p.w.stats.count("reporters ended with their nodes")
	}
	p.w.stats.count("nodes removed")
	return p.w.try(ctx, random, "deleting a node", func(ctx context.Context, s server) error {
		return done(s.kube.CoreV1().Nodes().Delete(ctx, n.name, metav1.DeleteOptions{}))
	})
}

// beat is what the kubelets of all nodes that are alive say every renewPeriod, until
// there are none any more: that they are alive, in their Leases, and that they are well,
// when their Nodes say otherwise. The controller manager makes a Node NotReady of which it
// has not heard, and one that was frozen does so before it hears of anything; only its
// kubelet makes it Ready again (upstream's pkg/kubelet/kubelet_node_status.go). One
// whose server is away tries another one.
func (p *population) beat() {
	random := rand.New(rand.NewPCG(p.w.seed, 1))
	for p.ctx.Err() == nil {
		begun := time.Now()
		first := random.IntN(servers)
		var unready []string
		p.ask(first, func(ctx context.Context, s server) (err error) {
			unready, err = p.unready(ctx, s)
			return err
		})
		var beating sync.WaitGroup
		for _, name := range p.alive() {
			first := random.IntN(servers)
			beating.Go(func() {
				p.ask(first, func(ctx context.Context, s server) error { return renew(ctx, s, name) })
				if slices.Contains(unready, name) && p.ask(first, func(ctx context.Context, s server) error { return recoverNode(ctx, s, name) }) {
					p.w.stats.count("nodes that were said to be gone and came back")
				}
			})
		}
		beating.Wait()
		hold(p.ctx, renewPeriod-time.Since(begun))
	}
}

// alive are the nodes whose machines have not died.
func (p *population) alive() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var alive []string
	for name, n := range p.nodes {
		if !n.silent {
			alive = append(alive, name)
		}
	}
	slices.Sort(alive)
	return alive
}

// ask asks servers in turn, from one on, until one has done it.
func (p *population) ask(first int, do func(context.Context, server) error) bool {
	for i := range servers {
		ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
		err := do(ctx, p.w.servers[(first+i)%servers])
		cancel()
		if err == nil {
			return true
		}
		if apierrors.IsNotFound(err) {
			// It was removed meanwhile.
			return false
		}
	}
	return false
}

func renew(ctx context.Context, s server, node string) error {
	patch := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
	_, err := s.kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Patch(ctx, node, mergePatch, []byte(patch), metav1.PatchOptions{})
	return err
}

// recoverNode says of a node that it is well.
func recoverNode(ctx context.Context, s server, name string) error {
	n, err := s.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if c := readiness(n); c != nil {
		*c = well()
	} else {
		n.Status.Conditions = append(n.Status.Conditions, well())
	}
	_, err = s.kube.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{})
	return err
}

// unready are the nodes that live and whose Nodes say otherwise, sorted.
func (p *population) unready(ctx context.Context, s server) ([]string, error) {
	list, err := s.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: soaked})
	if err != nil {
		return nil, err
	}
	alive := p.alive()
	var unready []string
	for i := range list.Items {
		n := &list.Items[i]
		if c := readiness(n); slices.Contains(alive, n.Name) && (c == nil || c.Status != corev1.ConditionTrue) {
			unready = append(unready, n.Name)
		}
	}
	slices.Sort(unready)
	return unready, nil
}

// well is the condition of a node whose kubelet is well.
func well() corev1.NodeCondition {
	return corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Soaked", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}
}

// readiness is the condition of a Node that says whether its kubelet is well, nil if it
// has none.
func readiness(n *corev1.Node) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c
		}
	}
	return nil
}

// source is what a simulated process knows of features: it uses one of them and
// has its value from the API, as a component does.
type source struct {
	feature  string
	instance rollout.Instance
	news     chan struct{}

	mu sync.Mutex
	// held is the value that was taken last, nil for none.
	held *bool
	// users is how many the server counted last.
	users int
}

var _ agent.Source = &source{}

func newSource(feature, component, name string) *source {
	return &source{feature: feature, instance: rollout.Instance{Component: component, Name: name}, news: make(chan struct{}, 1)}
}

// follow takes the value that the Feature has for this instance.
func (s *source) follow(feature *v1alpha1.Feature) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if users := counted(feature); users > 0 {
		s.users = users
	}
	choice := rollout.Choose(feature, s.instance, s.held, time.Now())
	if !choice.Told || s.held != nil && *s.held == choice.Value {
		return
	}
	s.held = &choice.Value
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// Observations is for the reporter.
func (s *source) Observations() []featuregate.Observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []featuregate.Observation{{
		Name: s.feature, Enabled: s.held != nil && *s.held, Queried: true, Stage: v1alpha1.StageBeta,
	}}
}

// counted is how many users a Feature says it has, 0 when a transition has just begun.
func counted(feature *v1alpha1.Feature) int {
	users := 0
	for _, use := range feature.Status.Uses {
		users += int(use.Count)
	}
	return users
}

// peers are all users, for the reporter: they take turns, whatever each had before.
func (s *source) peers(string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users
}

// News is for the reporter.
func (s *source) News() <-chan struct{} { return s.news }

// EmulationVersion is for the reporter.
func (s *source) EmulationVersion() *version.Version { return version.MajorMinor(1, 36) }

// simulated is a process that reports: a real reporter, with a source of one
// feature.
type simulated struct {
	source   *source
	reporter *agent.Reporter
	report   string
	// server is the one that it reports to, and log what it said last.
	server string
	log    *tail
	// before is the time at which one of the same name had crashed whose place it took, zero for none.
	before time.Time
	// cancel ends it; done is closed once it has ended.
	cancel context.CancelFunc
	done   chan struct{}
}

// crash ends it as a crash does: what it stored stays.
func (s *simulated) crash() {
	s.cancel()
	<-s.done
}

// end ends it in order.
func (s *simulated) end(ctx context.Context) error {
	s.crash()
	return s.reporter.Remove(ctx)
}
