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

package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// agentOf returns an agent of the process of w, which takes values and reports them.
func agentOf(w *world, change func(*Config)) *Agent {
	w.t.Helper()
	syncer := w.config
	syncer.Namespace, syncer.Component, syncer.Instance = "", "", ""
	config := Config{
		Reporter: ReporterConfig{
			Namespace: "kube-system", Component: "kubelet", Instance: "node-1", Source: w.gate,
			Clients: Clients{Features: w.client, Kube: kubefake.NewSimpleClientset()},
		},
		Syncer: &syncer,
	}
	if change != nil {
		change(&config)
	}
	a, err := New(config)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// TestRunReportsValuesOfSyncer: an agent loads a value, follows it, and reports both; Remove
// deletes the report.
func TestRunReportsValuesOfSyncer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, feature("A", v1alpha1.ControlDynamic, true))
		a := agentOf(w, nil)
		w.gate.BeforeFinal(func() {
			if origin := a.Load(t.Context()); origin != FromServer {
				t.Errorf("values come from %s", origin)
			}
		})
		w.gate.Finalize()
		w.gate.Enabled("A")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.Run(ctx)
		}()
		<-a.Started()
		reported := func() bool {
			t.Helper()
			report, err := w.client.FeaturesV1alpha1().FeatureReports("kube-system").Get(t.Context(), "kubelet.node-1", metav1.GetOptions{})
			if err != nil || len(report.Spec.Features) != 1 {
				t.Fatalf("the report is %+v, %v", report, err)
			}
			return report.Spec.Features[0].Enabled
		}
		if !reported() {
			t.Error("the loaded value is not reported")
		}
		w.put(feature("A", v1alpha1.ControlDynamic, false))
		after(time.Second)
		if reported() {
			t.Error("the changed value is not reported")
		}
		if is, _ := a.Reporting(); !is {
			t.Error("the server does not seem to accept reports")
		}
		cancel()
		<-done
		if err := a.Remove(t.Context()); err != nil {
			t.Error(err)
		}
		if left, err := w.client.FeaturesV1alpha1().FeatureReports("kube-system").List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
			t.Errorf("reports are left: %v, %v", left.Items, err)
		}
	})
}

// TestReportsArePacedByPeersOfSyncer: the reporter of an agent has the Peers and Throttled of
// its syncer.
func TestReportsArePacedByPeersOfSyncer(t *testing.T) {
	f := feature("A", v1alpha1.ControlDynamic, true)
	off := false
	f.Status.Uses = []v1alpha1.FeatureUse{{Component: "kubelet", Enabled: &off, Count: 2500}}
	a := agentOf(newWorld(t, f), nil)
	if origin := a.Load(t.Context()); origin != FromServer {
		t.Fatalf("values come from %s", origin)
	}
	if n := a.reporter.config.Peers("A"); n != 2500 {
		t.Errorf("%d peers, want the 2,500 users with the other value", n)
	}
	if a.reporter.config.Throttled() {
		t.Error("the start was throttled")
	}
}

// TestRunEndsWithoutServer: a process that will never have a server does not keep Run.
func TestRunEndsWithoutServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		none := fmt.Errorf("%w: no kubeconfig", ErrNoServer)
		a := agentOf(w, func(c *Config) {
			c.Reporter.Clients = Clients{}
			c.Reporter.Connect = func() (Clients, error) { return Clients{}, none }
			c.Syncer.Connect = func() (versioned.Interface, error) { return nil, none }
		})
		if origin := a.Load(t.Context()); origin != FromNowhere {
			t.Errorf("values come from %s", origin)
		}
		a.Run(t.Context())
		if err := a.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestAgentWithoutSyncerTakesNoValues: Load sends no request.
func TestAgentWithoutSyncerTakesNoValues(t *testing.T) {
	w := newWorld(t, feature("A", v1alpha1.ControlCentral, true))
	a := agentOf(w, func(c *Config) { c.Syncer = nil })
	if origin := a.Load(t.Context()); origin != FromNowhere || len(w.client.Actions()) > 0 {
		t.Errorf("values come from %s, after the requests %v", origin, w.client.Actions())
	}
}

func TestIncompleteConfigIsRefused(t *testing.T) {
	w := newWorld(t)
	complete := ReporterConfig{Namespace: "kube-system", Component: "kubelet", Instance: "node-1", Source: w.gate, Clients: Clients{Features: w.client, Kube: kubefake.NewSimpleClientset()}}
	for name, config := range map[string]Config{
		"no identity":         {Reporter: ReporterConfig{Source: w.gate, Clients: complete.Clients}},
		"no clients":          {Reporter: ReporterConfig{Namespace: "kube-system", Component: "kubelet", Instance: "node-1", Source: w.gate}},
		"a syncer without":    {Reporter: complete, Syncer: &SyncerConfig{}},
		"no way to restart":   {Reporter: complete, Syncer: &SyncerConfig{Gate: w.gate, Connect: w.config.Connect, Policy: PolicyRestart}},
		"a node and an owner": {Reporter: func() ReporterConfig { c := complete; c.NodeName = "n"; c.Owner = noOwner; return c }()},
	} {
		if _, err := New(config); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func noOwner(context.Context) (*metav1.OwnerReference, error) { return nil, nil }

// TestConnectIsRetriedUntilClients: a process without a way to the server retries within
// seconds, and logs the cause once.
func TestConnectIsRetriedUntilClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
		logs := logger.GetSink().(ktesting.Underlier).GetBuffer()
		var there atomic.Bool
		f := prepare(t, func(c *ReporterConfig) {
			clients := c.Clients
			c.Clients = Clients{}
			c.Connect = func() (Clients, error) {
				if !there.Load() {
					return Clients{}, errors.New("no certificate yet")
				}
				return clients, nil
			}
		})
		f.startWith(klog.NewContext(t.Context(), logger))
		defer f.end()
		f.pass(time.Hour)
		if n := f.writes(); n != 0 {
			t.Errorf("%d reports without clients", n)
		}
		if n := strings.Count(logs.String(), "Not reporting feature gates yet"); n != 1 {
			t.Errorf("the cause was logged %d times at the default level:\n%s", n, logs)
		}
		there.Store(true)
		f.pass(2*maxConnectBackoff + startJitter)
		if n := f.writes(); n != 1 {
			t.Errorf("%d reports once there are clients, want one", n)
		}
	})
}
