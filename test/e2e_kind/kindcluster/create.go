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

package kindcluster

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"sigs.k8s.io/yaml"
)

// startTimeout is how long kind waits for the nodes of a new cluster.
const startTimeout = 5 * time.Minute

// Config describes a cluster.
type Config struct {
	// ControlPlanes and Workers are the numbers of nodes; without both there is one node.
	ControlPlanes, Workers int
	// FeatureGates are set in all components.
	FeatureGates map[string]bool
	// RuntimeConfig are versions of APIs that kube-apiserver serves, or does not.
	RuntimeConfig map[string]string
	// ProxyMode is that of kube-proxies, kind's default if it is empty.
	ProxyMode string
	// Image is the nodes' image if it is not that of the release. Such a cluster need not
	// have the API features.k8s.io.
	Image string
}

// Create makes a cluster that ends with the test.
func Create(t testing.TB, config Config) *Cluster {
	t.Helper()
	Require(t)
	created.Add(1)
	if config.Image == "" {
		nodeImage(t)
	}
	c := &Cluster{t: t, config: config}
	file := filepath.Join(t.TempDir(), "kind.yaml")
	if err := os.WriteFile(file, describe(t, config), 0o644); err != nil {
		t.Fatal(err)
	}
	// A run that was killed may have left one.
	if err := runMake(t.Context(), t, "kind-down"); err != nil {
		t.Fatalf("deleting an earlier cluster: %v", err)
	}
	t.Cleanup(c.end)
	if err := c.create(file); err != nil {
		t.Fatalf("creating the cluster: %v", err)
	}
	c.Cluster = framework.Connect(t, Kubeconfig(t))
	c.findNodes()
	return c
}

// create creates the cluster that a file describes. Nodes that do not start stay, so that
// their logs can be exported.
func (c *Cluster) create(file string) error {
	const retain = "--retain"
	if c.config.Image == "" {
		return runMake(c.t.Context(), c.t, "kind-up", "KIND_CONFIG="+file, "KIND_FLAGS="+retain)
	}
	return kind(c.t.Context(), c.t, "create", "cluster", "--config", file, "--name", name, "--image", c.config.Image,
		"--kubeconfig", Kubeconfig(c.t), "--wait", startTimeout.String(), retain)
}

// built is true once this process built the node image.
var built struct {
	sync.Mutex
	done bool
}

// nodeImage builds the node image of the release, once in a run.
func nodeImage(t testing.TB) {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.done {
		return
	}
	if err := runMake(t.Context(), t, "kind-image"); err != nil {
		t.Fatalf("building the node image: %v", err)
	}
	built.done = true
}

// Variables that "kind-build run" sets.
const (
	// previousVariable names the server archive of upstream's minor version before.
	previousVariable = "KIND_PREVIOUS_RELEASE"
	// sameVariable names that of upstream's version that the release is made of.
	sameVariable = "KIND_SAME_RELEASE"
	// ownImagesVariable has archives of images of this repository's own, and
	// trialPackagesVariable files of Debian's packages for trials of gates.
	ownImagesVariable     = "KIND_OWN_IMAGES"
	trialPackagesVariable = "KIND_TRIAL_PACKAGES"
	// testImagesVariable has archives of images of upstream's tests, and
	// noImagesVariable names those that are missing where none can be pulled.
	testImagesVariable = "KIND_TEST_IMAGES"
	noImagesVariable   = "KIND_NO_IMAGES"
)

// unchangedName is the name of a node image of upstream's binaries of a version. It is
// none under which kind's own would be pulled.
func unchangedName(version string) string { return "localhost/node:" + version }

// PreviousImage builds the node image of upstream's minor version before, unchanged.
func PreviousImage(t testing.TB) string {
	t.Helper()
	return unchangedImage(t, previousVariable, "make kind-test LONG=y", framework.PreviousVersion)
}

// SameImage builds the node image of upstream's version that the release is made of,
// unchanged.
func SameImage(t testing.TB) string {
	t.Helper()
	return unchangedImage(t, sameVariable, "make kind-conformance", framework.UpstreamVersion)
}

func unchangedImage(t testing.TB, variable, target, version string) string {
	t.Helper()
	archive := os.Getenv(variable)
	if archive == "" {
		t.Fatalf("%s names no server archive of upstream's %s; %q makes it", variable, version, target)
	}
	image := unchangedName(version)
	if err := runMake(t.Context(), t, "kind-image", "SERVER_TAR="+archive, "KIND_IMAGE="+image); err != nil {
		t.Fatalf("building the node image of %s: %v", archive, err)
	}
	return image
}

// describe is kind's description of a cluster. On cgroup v1 kubelet refuses to run unless
// its configuration permits it, which "make kind-up" adds for clusters of the release.
func describe(t testing.TB, config Config) []byte {
	t.Helper()
	cluster := map[string]any{"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4"}
	if len(config.FeatureGates) > 0 {
		cluster["featureGates"] = config.FeatureGates
	}
	if len(config.RuntimeConfig) > 0 {
		cluster["runtimeConfig"] = config.RuntimeConfig
	}
	if config.ProxyMode != "" {
		cluster["networking"] = map[string]any{"kubeProxyMode": config.ProxyMode}
	}
	var nodes []map[string]any
	for range config.ControlPlanes {
		nodes = append(nodes, map[string]any{"role": "control-plane"})
	}
	for range config.Workers {
		nodes = append(nodes, map[string]any{"role": "worker"})
	}
	if len(nodes) > 0 {
		cluster["nodes"] = nodes
	}
	if config.Image != "" && onCgroupV1(t) {
		cluster["kubeadmConfigPatches"] = []string{"kind: KubeletConfiguration\nfailCgroupV1: false\n"}
	}
	data, err := yaml.Marshal(cluster)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// onCgroupV1 returns true where Docker has cgroup v1.
func onCgroupV1(t testing.TB) bool {
	t.Helper()
	version, err := output(t.Context(), nil, "docker", "info", "--format", "{{.CgroupVersion}}")
	if err != nil {
		t.Fatalf("asking Docker for the version of cgroups: %v", err)
	}
	return version == "1\n"
}

// end shows what the cluster did when the test failed, and deletes it.
func (c *Cluster) end() {
	// The test's context has ended by now.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), framework.Patience)
	defer cancel()
	if c.t.Failed() {
		c.showFailure(ctx)
	}
	if err := runMake(ctx, c.t, "kind-down"); err != nil {
		c.t.Errorf("deleting the cluster: %v", err)
	}
}

// showFailure shows events and exports logs. The nodes' own kubectl works also when the
// way to the server from here does not.
func (c *Cluster) showFailure(ctx context.Context) {
	err := show(ctx, c.t, "docker", "exec", name+"-control-plane", "kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "get", "events", "-A", "--sort-by=.lastTimestamp")
	if err != nil {
		c.t.Logf("the cluster's events: %v", err)
	}
	logs := Out(c.t, "kind", "logs", c.t.Name())
	if err := kind(ctx, c.t, "export", "logs", logs, "--name", name); err != nil {
		c.t.Logf("the nodes' logs: %v", err)
		return
	}
	c.t.Logf("the nodes' logs are in %s", logs)
}
