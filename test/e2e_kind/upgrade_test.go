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

package e2ekind

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/e2e_kind/kindcluster"
	"k8s.io/kubernetes/pkg/features"
)

// declares is a feature with tasks between the two versions.
const declares = string(features.GenericWorkload)

// upgraded is a cluster that kubeadm brings from upstream's version to the release and
// back, in two steps each way (docs/upgrade.md).
type upgraded struct {
	*kindcluster.Cluster
	node string
	// version is the release's, minor the minor version of the cluster before.
	version, minor string
}

// TestUpgrade brings a cluster of upstream's binaries to the release with kubeadm, and back,
// while a Pod uses an alpha gate. The Features are adopted as they are, nothing stops the
// Pod, and what was stored before is there at the end.
func TestUpgrade(t *testing.T) {
	kindcluster.RequireLong(t)
	image := kindcluster.PreviousImage(t)
	c := &upgraded{
		Cluster: kindcluster.Create(t, kindcluster.Config{Image: image, FeatureGates: map[string]bool{gate: true}}),
		minor:   framework.Minor(framework.PreviousVersion),
	}
	c.node = c.ControlPlanes[0]
	if version := c.Version(); version != framework.PreviousVersion {
		t.Fatalf("the image %s is of %s, want upstream's %s", image, version, framework.PreviousVersion)
	}
	using := createPod(t, c.Cluster)
	c.writeStates(t)
	c.version = c.CopyRelease(c.node)

	c.up(t)
	checkUntouched(t, c.Cluster, using)
	c.emulate(t, "")
	c.waitForVersion(t, framework.Minor(c.version))
	checkUntouched(t, c.Cluster, using)

	c.down(t)
	checkUntouched(t, c.Cluster, using)
	c.checkLeft(t)
}

// stateGate changes the state files of kubelet, with any policy: those that upstream's
// version before writes with the gate on, it does not read with the gate off.
const stateGate = string(features.PodLevelResourceManagers)

// kubelet is the kubelet of the node.
func (c *upgraded) kubelet(t *testing.T) *realNode {
	return &realNode{Cluster: c.Cluster, t: t, name: c.node}
}

// writeStates has upstream's kubelet write state files with the gate on, and sees that it
// does not start beside them with the gate off.
func (c *upgraded) writeStates(t *testing.T) {
	n := c.kubelet(t)
	c.newStates(t)
	n.configureGate(stateGate, false)
	n.RestartKubelet(n.name)
	n.waitForEnd(t, "could not restore state from checkpoint")
	n.restart(stateGate, true, nil)
}

// newStates has the kubelet write new state files with the gate on.
func (c *upgraded) newStates(t *testing.T) {
	n := c.kubelet(t)
	n.Exec(n.name, "systemctl", "stop", "kubelet")
	n.Exec(n.name, "rm", cpuState, memoryState)
	n.restart(stateGate, true, nil)
	for _, file := range []string{cpuState, memoryState} {
		n.waitFor(t, file)
	}
}

// replaceKubelet replaces the binary of the kubelet by one that starts with the gate off
// beside the state files of the other, which had it on.
func (c *upgraded) replaceKubelet(t *testing.T, original bool) {
	t.Helper()
	n := c.kubelet(t)
	n.configureGate(stateGate, false)
	c.ReplaceKubelet(c.node, original)
	c.WaitForKubelet(c.node)
	n.waitForManagers(t)
}

// configure has kubeadm write the flags of the steps with an emulated version into the
// manifests of the next upgrade. Empty values remove them.
func (c *upgraded) configure(minor, grace string) {
	for _, flag := range kindcluster.Emulated(minor, grace) {
		c.SetExtraArg(flag.Component, flag.Name, flag.Value)
	}
}

// up replaces upstream's binaries by the release's, with the version of before emulated.
// Every Feature is adopted at that version, without a transition. Then the kubelet follows.
func (c *upgraded) up(t *testing.T) {
	t.Helper()
	c.configure(c.minor, kindcluster.Grace)
	c.Upgrade(c.node, c.version, false)
	c.replaceKubelet(t, false)
	history := framework.RecordFeature(t, c.Etcd(), gate)
	adopted := history.Wait(t, 0, "adopted as On", func(v framework.FeatureVersion) bool {
		return v.Status.State == v1alpha1.StateOn && v.Status.Version == c.minor && condition(v.Feature, v1alpha1.ConditionUsesMatch).Reason == v1alpha1.ReasonAllUsersMatch
	})
	if versions := history.Since(0); len(framework.Transitions(versions)) > 0 || !slices.Contains(framework.States(versions), v1alpha1.StateOn) {
		t.Errorf("the feature was On before the upgrade, and went through %q with transitions %q", framework.States(versions), framework.Transitions(versions))
	}
	checkCondition(t, adopted.Feature, v1alpha1.ConditionConsistent, metav1.ConditionTrue, v1alpha1.ReasonServersAgree, "")
	waitForReports(c.Cluster, true)
	if version := c.Version(); version != c.version {
		t.Errorf("the server is %s after the upgrade, want %s", version, c.version)
	}
}

// emulate restarts the control plane with an emulated version, or without one, and
// remembers that in what kubeadm makes manifests of.
func (c *upgraded) emulate(t *testing.T, minor string) {
	t.Helper()
	c.configure(minor, kindcluster.Grace)
	for _, flag := range kindcluster.Emulated(minor, kindcluster.Grace) {
		c.SetFlag(c.node, flag.Component, flag.Name, flag.Value)
	}
}

// waitForVersion waits until the features that matter here are stored in the form of a
// minor version, and are at rest.
func (c *upgraded) waitForVersion(t *testing.T, minor string) {
	t.Helper()
	for _, name := range []string{gate, declares} {
		f := c.WaitForFeature(name, "at rest at "+minor, func(f *v1alpha1.Feature) bool {
			return f.Status.Version == minor && f.Status.Transition == nil && condition(f, v1alpha1.ConditionProgressing).Reason == v1alpha1.ReasonComplete
		})
		if name == gate && f.Status.State != v1alpha1.StateOn {
			t.Errorf("the feature %s is %s at %s, want On", name, f.Status.State, minor)
		}
	}
}

// down goes back: node components first, since they are never newer than servers, then
// the emulated version until the check of the release permits it, then the binaries.
func (c *upgraded) down(t *testing.T) {
	t.Helper()
	client := c.Client()
	c.SetImageOfKubeProxies("registry.k8s.io/kube-proxy:" + framework.PreviousVersion)
	// The release reads upstream's files and leaves them as they are while it gives nothing to
	// a Pod, so that upstream's kubelet without the gate would not start beside them.
	c.newStates(t)
	c.replaceKubelet(t, true)
	c.emulate(t, c.minor)
	c.waitForVersion(t, c.minor)
	checkedSafe(t, client, c.minor)
	// Upstream's kube-apiserver knows --emulated-version, and not the grace period.
	c.configure("", "")
	c.Upgrade(c.node, framework.PreviousVersion, true)
	framework.Eventually(t, "the server to be upstream's", func() error {
		info, err := c.Kube.Discovery().ServerVersion()
		if err == nil && info.GitVersion != framework.PreviousVersion {
			err = fmt.Errorf("it is %s", info.GitVersion)
		}
		return err
	})
}

// checkedSafe repeats the check until it permits to replace the binaries: features whose
// value follows from the emulated version are turned off one after the other.
func checkedSafe(t *testing.T, client kindcluster.Client, minor string) {
	t.Helper()
	begun := time.Now()
	framework.Eventually(t, "kubectl feature upgrade-check to permit "+minor, func() error {
		output, code := client.Run(t, kindcluster.UpgradeCheck(minor)...)
		if code != 0 {
			return fmt.Errorf("exit code %d:\n%s", code, output)
		}
		return nil
	})
	t.Logf("the check permits %s after %s", minor, time.Since(begun).Round(time.Second))
}

// checkLeft checks what docs/upgrade.md promises of a cluster that went back: no server
// has the API, and Features stay in etcd as they were.
func (c *upgraded) checkLeft(t *testing.T) {
	t.Helper()
	_, err := c.Features.FeaturesV1alpha1().Features(metav1.NamespaceSystem).Get(t.Context(), gate, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("reading the Feature from upstream's server: %v, want that there is no such API", err)
	}
	stored, err := c.Etcd().Get(t.Context(), framework.FeaturesKey, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatalf("reading Features from etcd: %v", err)
	}
	if !slices.ContainsFunc(stored.Kvs, func(kv *mvccpb.KeyValue) bool { return strings.HasSuffix(string(kv.Key), "/"+gate) }) {
		t.Errorf("etcd has %d Features, and not %s; want all as they were", len(stored.Kvs), gate)
	}
}
