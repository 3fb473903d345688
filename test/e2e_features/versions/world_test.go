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
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/leader"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// flags of every server.
var flags = []string{"--feature-settle-period=2s", "--feature-grace-period=5s"}

// served serves Workloads as 1.37 has them. A server that has the gate or this on
// while one of 1.36 is stored becomes ready only after a minute: an informer of its own
// does not sync. So both stay off until the upgrade has cleared those.
const served = "--runtime-config=scheduling.k8s.io/v1beta1=true"

// world is a control plane of a few servers, without controllers: only the test
// and the server flow write.
type world struct {
	*framework.Cluster
	etcd    *clientv3.Client
	history *history
	servers []string
	// byID are the servers by the ids that the server flow knows them by.
	byID map[string]string
	// extra are more flags of every server at the upper version.
	extra []string
	// kills is how often a server was killed, and leading how often it led a transition then.
	kills, leading int
}

// at are the flags of a server of a version.
func (w *world) at(version string) []string {
	extra := w.extra
	if version == lower {
		// It refuses an API of the upper version.
		extra = nil
	}
	return slices.Concat([]string{"--emulated-version=" + version}, flags, extra)
}

// thisServer is the test's own executable as a kube-apiserver.
func thisServer(t *testing.T) string {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := filepath.Join(t.TempDir(), "kube-apiserver")
	if err := os.Symlink(executable, server); err != nil {
		t.Fatal(err)
	}
	return server
}

// newWorld starts servers of a version.
func newWorld(t *testing.T, version string, count int) *world {
	t.Helper()
	server := thisServer(t)
	w := &world{byID: map[string]string{}}
	config := localcluster.Config{Servers: count, FeatureGates: workload + "=false", Only: []string{localcluster.Etcd}, ExtraArgs: map[string][]string{}, Binaries: map[string]string{}}
	for i := range count {
		name := localcluster.Nth(localcluster.APIServer, i+1)
		w.servers = append(w.servers, name)
		config.ExtraArgs[name], config.Binaries[name] = w.at(version), server
	}
	config.Only = append(config.Only, w.servers...)
	w.Cluster = framework.Start(t, config)
	w.etcd = w.Etcd()
	w.history = record(t, w.etcd)
	w.identify(t)
	return w
}

// identify finds the ids of the servers. They are those of hosts, and stay when binaries are
// exchanged.
func (w *world) identify(t *testing.T) {
	t.Helper()
	leases, err := w.Kube.CoordinationV1().Leases(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{LabelSelector: "apiserver.kubernetes.io/identity=kube-apiserver"})
	if err != nil {
		t.Fatal(err)
	}
	for _, lease := range leases.Items {
		for i, name := range w.servers {
			// A single one has the host's name.
			if len(w.servers) == 1 || lease.Labels["kubernetes.io/hostname"] == localcluster.Hostname(i+1) {
				w.byID[lease.Name] = name
			}
		}
	}
	if len(w.byID) != len(w.servers) {
		t.Fatalf("these servers are known by their ids, want %d: %v", len(w.servers), w.byID)
	}
}

// leader is the server that looks after a feature while all are alive.
func (w *world) leader(feature string) string {
	var ids []string
	for id := range w.byID {
		ids = append(ids, id)
	}
	return w.byID[leader.Of(feature, ids)]
}

func (w *world) kube() kubernetes.Interface {
	return kubernetes.NewForConfigOrDie(w.ConfigOf(w.servers[0]))
}

func (w *world) dynamic() dynamic.Interface {
	return dynamic.NewForConfigOrDie(w.ConfigOf(w.servers[0]))
}

// restart restarts one server with a version.
func (w *world) restart(t *testing.T, server, version string) {
	t.Helper()
	w.SetArgs(server, w.at(version)...)
	if err := w.Restart(t.Context(), nil, server); err != nil {
		t.Fatalf("restarting %s at %s: %v", server, version, err)
	}
}

// turn restarts all servers with Workloads on or off and waits for the feature.
func (w *world) turn(t *testing.T, version string, on bool) {
	t.Helper()
	w.extra = nil
	state := v1alpha1.StateOff
	if on {
		w.extra, state = []string{served}, v1alpha1.StateOn
	}
	for _, server := range w.servers {
		w.SetArgs(server, w.at(version)...)
	}
	if err := w.RestartTogether(t.Context(), fmt.Sprintf("%s=%t", workload, on), w.servers...); err != nil {
		t.Fatalf("restarting all servers with %s=%t: %v", workload, on, err)
	}
	w.history.wait(t, fmt.Sprintf("%s is %s", workload, state), func(last map[string]v1alpha1.FeatureStatus) bool {
		return last[workload].State == state && last[workload].Version == version
	})
}

// kill kills a server (kill -9) and starts it again, as a supervisor does.
func (w *world) kill(t *testing.T, server string) {
	t.Helper()
	if err := w.Kill(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	w.kills++
	if err := w.Cluster.Start(t.Context(), server); err != nil {
		t.Fatalf("starting %s again: %v", server, err)
	}
}

// move restarts the servers one by one with another version, and kills leaders in
// between, while versions are mixed. Nothing may begin before the last of the old
// ones ends (S4). Then leaders are killed at the stages of features' transitions,
// until everything is at rest.
func (w *world) move(t *testing.T, version string, crash []string) {
	t.Helper()
	begun, mark := time.Now(), w.history.mark()
	for i, server := range w.servers {
		if i == len(w.servers)-1 {
			w.nothingBegan(t, mark)
		}
		w.restart(t, server, version)
		if i < len(w.servers)-1 {
			w.crashMixed(t, i, crash, version)
		}
	}
	w.crash(t, crash, version)
	w.history.wait(t, "everything is at rest at "+version, func(last map[string]v1alpha1.FeatureStatus) bool {
		return allRest(last, version)
	})
	most, total := 0, 0
	for name := range w.history.last() {
		statuses := w.history.since(mark, name)
		if what := broken(statuses); what != "" {
			t.Errorf("%s on the way to %s: %s", name, version, what)
		}
		if s := w.history.last()[name]; len(s.StoredVersions) > 0 {
			t.Errorf("%s is at rest at %s and may be stored in the form of %v", name, version, s.StoredVersions)
		}
		most, total = max(most, len(statuses)), total+len(statuses)
	}
	fmt.Fprintf(t.Output(), "at %s after %.0f s: %d statuses were written for %d features, at most %d for one\n", version, time.Since(begun).Seconds(), total, len(w.history.last()), most)
}

// crashMixed kills the leader of one feature after a restart that left versions
// mixed, at once: what live servers had is being written. It has to be written in
// the end, by whoever leads then: without it a move that is given up half way would
// leave what the first servers stored. The short form does it after the first only.
func (w *world) crashMixed(t *testing.T, restarted int, features []string, version string) {
	t.Helper()
	if len(features) == 0 {
		return
	}
	if !short || restarted == 0 {
		victim := w.leader(features[restarted%len(features)])
		w.kill(t, victim)
		fmt.Fprintf(t.Output(), "%s killed: %d of %d servers have %s\n", victim, restarted+1, len(w.servers), version)
	}
	w.history.wait(t, "it is stored that a server had "+version, func(last map[string]v1alpha1.FeatureStatus) bool {
		return !slices.ContainsFunc(features, func(name string) bool { return !slices.Contains(last[name].StoredVersions, version) })
	})
}

// nothingBegan holds S4 while servers have different versions.
func (w *world) nothingBegan(t *testing.T, mark map[string]int) {
	t.Helper()
	for name := range w.history.last() {
		for _, s := range w.history.since(mark, name) {
			if s.Transition != nil {
				t.Errorf("S4: %s is %s while versions are mixed", name, s.State)
			}
		}
	}
}

// crash kills the leader of a feature as soon as each stage of the features'
// transitions is stored: at the beginning and after each task. The short form
// stops after two.
func (w *world) crash(t *testing.T, features []string, version string) {
	t.Helper()
	seen := map[string]bool{}
	for !short || len(seen) < 2 {
		feature, stage := "", ""
		w.history.wait(t, "features go on", func(last map[string]v1alpha1.FeatureStatus) bool {
			done := true
			for _, name := range features {
				s := last[name]
				if s.Transition != nil {
					feature, stage = name, fmt.Sprintf("%s is %s, %d tasks left", name, s.State, len(s.Tasks))
					if !seen[stage] {
						return true
					}
				}
				done = done && s.Transition == nil && s.Version == version && s.Configured.Value == (s.State == v1alpha1.StateOn)
			}
			stage = ""
			return done
		})
		if stage == "" {
			return
		}
		seen[stage] = true
		w.kill(t, w.leader(feature))
		w.leading++
		fmt.Fprintf(t.Output(), "%s killed: %s\n", w.leader(feature), stage)
	}
}

// stored is what etcd has below a prefix.
func (w *world) stored(t *testing.T, prefix string) map[string][]byte {
	t.Helper()
	return framework.Below(t, w.etcd, prefix)
}

// same checks that what was stored is stored still, to the byte.
func (w *world) same(t *testing.T, what string, before map[string][]byte) {
	t.Helper()
	for key, value := range before {
		found, err := w.etcd.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Kvs) != 1 || !bytes.Equal(found.Kvs[0].Value, value) {
			t.Errorf("%s: %s is lost or changed", what, key)
		}
	}
}

// keys checks which keys are below a prefix.
func (w *world) keys(t *testing.T, when, prefix string, want ...string) {
	t.Helper()
	var keys []string
	for key := range framework.KeysBelow(t, w.etcd, prefix) {
		keys = append(keys, key[len(prefix):])
	}
	slices.Sort(keys)
	if !slices.Equal(keys, want) {
		t.Errorf("%s: below %s there is %q, want %q", when, prefix, keys, want)
	}
}

// Where etcd has Workloads and PodGroups.
const (
	workloadsKey = framework.WorkloadsKey
	podGroupsKey = "/registry/podgroups/"
)

// lowerWorkload is the version of the API in which 1.36 stores Workloads.
const lowerWorkload = "scheduling.k8s.io/v1alpha2"

// storeOlder stores Workloads as a server of 1.36 does: in a version of the API
// that 1.37 does not have.
func (w *world) storeOlder(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		w.storeWorkload(t, lowerWorkload, name)
	}
}

// storeWorkload stores a Workload in a version of the API, whether a server knows that
// or not.
func (w *world) storeWorkload(t *testing.T, version, name string) {
	t.Helper()
	framework.StoreWorkload(t, w.etcd, version, name)
}
