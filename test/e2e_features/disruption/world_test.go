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
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

const (
	// servers is how many kube-apiservers there are. In a whole cluster the first never
	// crashes, and once a third of a run is over it is not restarted either, so that its
	// memory has one history (world.spares).
	servers = 3
	// nodes is how many hollow nodes a whole cluster has. Neither the first nor the
	// scheduler crashes then, so that others have a history of memory, too.
	nodes = 2
	// static is the gate that is set on the command lines of kube-apiservers. In a whole
	// cluster it is central, so others have its value from the API when they start.
	static = "MaxUnavailableStatefulSet"
	// systemNS has the Features, objectNS the objects.
	systemNS, objectNS = metav1.NamespaceSystem, metav1.NamespaceDefault
	mergePatch         = types.MergePatchType
)

// dynamics are features that are set through the API. The first has fields to
// clear, which the controller manager writes into the status of autoscalers.
var dynamics = []string{"HPAGeneration", "PodDeletionCost", "StatefulSetSemanticRevisionComparison"}

// serverFlags are those of every kube-apiserver. No disruption is about these periods, so
// they are short: there is more to see in less time. Events end by themselves, so that they
// do not count as left over.
var serverFlags = []string{"--feature-settle-period=1s", "--feature-grace-period=5s", "--event-ttl=30s"}

// world is the cluster and what is done to it.
//
// Locks are taken in the order quiet, turn, hands.
type world struct {
	t *testing.T
	settings
	cluster *framework.Cluster
	etcd    *clientv3.Client
	servers []server
	// bare has what only a cluster without controllers and nodes has, nil in others.
	bare   *bare
	stats  *stats
	faults *faults
	memory *memory

	// quiet is held for reading while something is done to the cluster that it has
	// to recover from, and for writing while it recovers.
	quiet sync.RWMutex
	// turn is held for writing while servers are configured differently, and for
	// reading while one is dead or frozen: it would not count as a server any more
	// after a while, and those that live may agree.
	turn sync.RWMutex
	// hands are those of the one who starts and ends processes: localcluster.Cluster is
	// for one goroutine.
	hands sync.Mutex
	// down are the components that the test ended and did not start again yet. It
	// belongs to the hands.
	down map[string]bool

	// changes are those of specs that come next. They belong to flipThroughAPI.
	changes deck

	// excuses are why something may be left of a feature that is off.
	excuses excuses
	// spares is true once the first third of the run is over: some processes stay then,
	// until the end.
	spares atomic.Bool

	mu sync.Mutex
	// histories has what was stored of each Feature.
	histories map[string]*framework.History
	// checked is how far each was judged.
	checked map[string]int
	// wanted is what was asked for last of each feature that flips.
	wanted map[string]bool

	// recording is the history of the run, nil where it is not recorded.
	recording *recording
	people    *population
	objects   *objects
	clearings *clearings
}

// server is one kube-apiserver.
type server struct {
	name     string
	config   *rest.Config
	kube     kubernetes.Interface
	features versioned.Interface
	// agents are the clients of simulated processes without a node.
	agents [identities]client
}

// client is how an identity reaches a server.
type client struct {
	kube     kubernetes.Interface
	features versioned.Interface
}

// identities is how many identities agents have: one may have 100 reports without a node
// (pkg/registry/features/featurereport/storage), and those of agents that crashed stay for
// an hour.
const identities = 4

// newServer makes the clients of a server.
func newServer(name string, config *rest.Config) server {
	s := server{name: name, config: config, kube: kubernetes.NewForConfigOrDie(config), features: versioned.NewForConfigOrDie(config)}
	for i := range s.agents {
		config := rest.CopyConfig(config)
		config.Impersonate = rest.ImpersonationConfig{UserName: fmt.Sprintf("soak:agents-%d", i), Groups: []string{user.SystemPrivilegedGroup}}
		s.agents[i] = client{kubernetes.NewForConfigOrDie(config), versioned.NewForConfigOrDie(config)}
	}
	return s
}

// agent are the clients of an agent, which are of the same identity whenever it starts.
func (s server) agent(instance string) client {
	hash := fnv.New32a()
	// It cannot fail.
	_, _ = hash.Write([]byte(instance))
	return s.agents[hash.Sum32()%identities]
}

// newWorld starts a cluster and follows the Features below a key of etcd.
func newWorld(t *testing.T, s settings, config localcluster.Config, key string) *world {
	t.Helper()
	w := &world{t: t, settings: s, stats: newStats(), faults: newFaults(), down: map[string]bool{}, histories: map[string]*framework.History{}, checked: map[string]int{}, wanted: map[string]bool{static: true}}
	config.Control.FeatureGates, config.ExtraArgs = gates(true), map[string][]string{}
	for i := range config.Servers {
		config.ExtraArgs[localcluster.Nth(localcluster.APIServer, i+1)] = slices.Concat(serverFlags, s.extra)
	}
	w.cluster = framework.Start(t, config)
	t.Cleanup(w.readLogs)
	w.etcd = w.cluster.Etcd()
	for i := range config.Servers {
		name := localcluster.Nth(localcluster.APIServer, i+1)
		config := w.cluster.ConfigOf(name)
		config.Timeout = 30 * time.Second
		w.servers = append(w.servers, newServer(name, config))
	}
	framework.FollowFeatures(t, w.etcd, key, func(stored []framework.StoredFeature, err error) {
		if err != nil {
			t.Errorf("following Features in etcd: %v", err)
		}
		for _, feature := range stored {
			w.history(feature.Name).Add([]framework.StoredFeature{feature}, nil)
			w.stats.missed.Add(feature.Missed)
		}
	})
	return w
}

// newWhole starts a cluster with all components.
func newWhole(t *testing.T, s settings) *world {
	t.Helper()
	w := newWorld(t, s, localcluster.Config{
		Servers: servers, Nodes: nodes, Control: localcluster.ControlOptions{CentralFeatures: []string{static}, DynamicFeatures: dynamics},
	}, framework.FeaturesKey)
	w.clearings = &clearings{}
	w.clearings.follow(t, w.etcd)
	w.followAutoscalers()
	w.memory = newMemory(w)
	for _, name := range dynamics {
		v := w.history(name).Wait(t, 0, "configured", func(v framework.FeatureVersion) bool { return v.Status.Configured != nil })
		w.wanted[name] = v.Status.Configured.Value
	}
	return w
}

// gates is the flag's value.
func gates(value bool) string { return fmt.Sprintf("%s=%t", static, value) }

// said is a line of progress.
func (w *world) said(format string, args ...any) {
	fmt.Fprintf(w.t.Output(), time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// history has what was stored of a Feature.
func (w *world) history(name string) *framework.History {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.histories[name]
	if h == nil {
		h = framework.NewHistory()
		w.histories[name] = h
	}
	return h
}

// features are the names of all Features, sorted.
func (w *world) features() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for name, history := range w.histories {
		if history.Mark() > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (w *world) want(feature string, value bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted[feature] = value
}

func (w *world) wants(feature string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wanted[feature]
}

// kept is the server that never crashes.
func (w *world) kept() server { return w.servers[0] }

// any is one of the servers; it may be dead.
func (w *world) any(random *rand.Rand) server { return w.servers[random.IntN(len(w.servers))] }

// try does something through one server after the other until one does it: a
// client whose server may die. What was done although the answer got lost is done.
func (w *world) try(ctx context.Context, random *rand.Rand, what string, do func(context.Context, server) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 300*time.Millisecond, framework.Patience, true, func(ctx context.Context) (bool, error) {
		s, begun := w.any(random), time.Now()
		last = do(ctx, s)
		switch {
		case last == nil:
			return true, nil
		case w.passes(request{s.name, begun}, last):
			return false, nil
		default:
			return false, last
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, errors.Join(err, last))
	}
	return nil
}

// done takes what was done already for done.
func done(err error) error {
	if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// hold waits; it returns early when the context ends.
func hold(ctx context.Context, long time.Duration) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// between is a random time.
func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)+1))
}
