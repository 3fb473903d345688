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

package stored

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/leader"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

const (
	// gate guards the field that is cleared.
	gate = "MaxUnavailableStatefulSet"
	// clearing is the name of its task, as far as it is needed.
	clearing = "ClearField/statefulsets.apps/"
	systemNS = metav1.NamespaceSystem
	objectNS = metav1.NamespaceDefault
)

// flags are those of every kube-apiserver. No case is about these periods, so they are short.
var flags = []string{"--feature-settle-period=1s", "--feature-grace-period=5s", "--event-ttl=30s"}

// world is a cluster of two kube-apiservers and etcd. No client but the server flow and the
// tests writes StatefulSets.
type world struct {
	settings
	cluster *framework.Cluster
	etcd    *clientv3.Client
	history *framework.History
	servers []server
	// leader leads the feature while both servers are alive, witness does not.
	leader, witness server
	// shapes are what all objects are copies of, nil before the first round.
	shapes []*appsv1.StatefulSet
}

// server is one kube-apiserver.
type server struct {
	name   string
	config *rest.Config
	kube   kubernetes.Interface
	// id names it among servers.
	id string
	// link leads to etcd.
	link *framework.Link
}

// newWorld starts a cluster with the gate on.
func newWorld(t *testing.T, s settings) *world {
	t.Helper()
	const servers = 2
	w := &world{settings: s}
	for i := range servers {
		// Links come before the cluster, so that it ends before them.
		w.servers = append(w.servers, server{
			name: localcluster.Nth(localcluster.APIServer, i+1), link: framework.NewLink(t),
		})
	}
	w.cluster = framework.Start(t, localcluster.Config{Servers: servers, Only: []string{localcluster.Etcd}})
	t.Cleanup(func() { w.readLogs(t) })
	w.etcd = w.cluster.Etcd()
	w.history = framework.RecordFeature(t, w.etcd, gate)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	target := strings.TrimPrefix(w.cluster.EtcdEndpoint(), "https://")
	for i := range w.servers {
		each := &w.servers[i]
		each.link.Lead(target)
		w.cluster.SetEtcd(each.name, each.link.URL())
		extra := slices.Concat(flags, []string{
			"--audit-policy-file=" + policy, "--audit-log-path=" + each.auditLog(),
		})
		if s.through != "" {
			extra = append(extra, "--feature-clear-through="+s.through)
		}
		w.cluster.SetArgs(each.name, extra...)
		each.config = w.cluster.ConfigOf(each.name)
		each.kube = kubernetes.NewForConfigOrDie(each.config)
	}
	w.configure(t, true)
	w.findLeader(t)
	w.history.Wait(t, 0, "On", framework.In(v1alpha1.StateOn))
	t.Logf("%d objects, %d kills; the same choices again: STORED_SEED=%d", s.objects, s.kills, s.seed)
	return w
}

// names are those of the servers.
func (w *world) names() (names []string) {
	for _, s := range w.servers {
		names = append(names, s.name)
	}
	return names
}

// configure restarts both servers with a value of the gate.
func (w *world) configure(t *testing.T, value bool) {
	t.Helper()
	control := w.cluster.Control()
	control.FeatureGates = fmt.Sprintf("%s=%t", gate, value)
	w.cluster.SetControl(control)
	if err := w.cluster.RestartTogether(t.Context(), w.cluster.FeatureGates(), w.names()...); err != nil {
		t.Fatalf("restarting kube-apiservers with %s: %v", control.FeatureGates, err)
	}
}

// findLeader finds it the way the server flow does (package lifecycle/leader).
func (w *world) findLeader(t *testing.T) {
	t.Helper()
	leases, err := w.servers[0].kube.CoordinationV1().Leases(systemNS).List(t.Context(), metav1.ListOptions{LabelSelector: "apiserver.kubernetes.io/identity=kube-apiserver"})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, lease := range leases.Items {
		for i := range w.servers {
			if lease.Labels["kubernetes.io/hostname"] == localcluster.Hostname(i+1) {
				w.servers[i].id = lease.Name
				ids = append(ids, lease.Name)
			}
		}
	}
	if len(ids) != len(w.servers) {
		t.Fatalf("%d servers have Leases, want %d: %v", len(ids), len(w.servers), ids)
	}
	first := leader.Of(gate, ids)
	w.leader = w.servers[slices.IndexFunc(w.servers, func(s server) bool { return s.id == first })]
	w.witness = w.servers[slices.IndexFunc(w.servers, func(s server) bool { return s.id != first })]
}

// pause sets spec.paused of the Feature.
func (w *world) pause(t *testing.T, paused bool) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"paused":%t}}`, paused)
	framework.Eventually(t, "spec.paused to be written", func() error {
		_, err := w.cluster.Features.FeaturesV1alpha1().Features(systemNS).Patch(t.Context(), gate, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// metricOf sums the series of a metric of a server whose labels have all the texts.
func (s server) metricOf(ctx context.Context, name string, labels ...string) (sum int, err error) {
	data, err := s.kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the metrics of %s: %w", s.name, err)
	}
	for _, series := range regexp.MustCompile("(?m)^"+regexp.QuoteMeta(name)+`\{([^}]*)\} ([0-9.e+]+)$`).FindAllStringSubmatch(string(data), -1) {
		if slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(series[1], l) }) {
			continue
		}
		value, err := strconv.ParseFloat(series[2], 64)
		if err != nil {
			return 0, fmt.Errorf("the metric %s of %s: %w", series[0], s.name, err)
		}
		sum += int(value)
	}
	return sum, nil
}

// auditPolicy has events of what the server flow writes, either way, and of nothing else.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, users: ["system:feature-lifecycle"], verbs: [patch], resources: [{group: apps, resources: [statefulsets]}]}
- {level: None}
`

// auditLog is the file of a server, in the directory of the cluster's data.
func (s server) auditLog() string { return "audit-" + s.name + ".log" }

// conflicts is how many writes of the server flow others came before, as audit has them.
func (w *world) conflicts(t *testing.T) (conflicts int) {
	t.Helper()
	for _, s := range w.servers {
		data, err := os.ReadFile(filepath.Join(w.cluster.DataDir(), s.auditLog()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			event := auditv1.Event{}
			// A line may end where its server was killed.
			if json.Unmarshal([]byte(line), &event) == nil && event.ResponseStatus != nil && event.ResponseStatus.Code == http.StatusConflict {
				conflicts++
			}
		}
	}
	return conflicts
}

// readLogs looks for panics in all that processes logged.
func (w *world) readLogs(t *testing.T) {
	for _, p := range w.cluster.Processes() {
		lines, err := framework.Panics(p)
		if err != nil {
			t.Errorf("looking for panics: %v", err)
		}
		if len(lines) > 0 {
			t.Errorf("%s logs %d lines of panics, the first: %s", p.Name, len(lines), lines[0])
		}
	}
}

// later is a time that is generous for everything that is not judged by time.
const later = 30 * time.Second
