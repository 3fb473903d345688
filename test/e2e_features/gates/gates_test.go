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

package gates

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	genericfeatures "k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
	"k8s.io/feature-lifecycle/lifecycletest"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	lifecyclefeatures "k8s.io/kubernetes-features/pkg/features"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	_ "k8s.io/kubernetes/pkg/features" // the gates and what they depend on
)

// nodes is the number of hollow nodes a cluster has. They take every gate with the
// configuration that they have: a real kubelet refuses some gates without fields
// of its configuration file, for example MemoryQoS without
// memoryThrottlingFactor, and reports no more than they do.
const nodes = 2

// unknown are the gates that a binary refuses since it does not have them. All
// others are in all binaries.
var unknown = map[string][]featuregate.Feature{
	localcluster.Scheduler: {"ControllerManagerReleaseLeaderElectionLockOnExit"},
	// Upstream's hollow node lacks what cmd/kubelet and cmd/kube-proxy add.
	hollow: {"ControllerManagerReleaseLeaderElectionLockOnExit", "ContextualLogging", "LoggingAlphaOptions", "LoggingBetaOptions"},
}

const hollow = "kubemark"

// emulatedVersion is the version that the servers of TestEveryGate emulate: that of
// EMULATED, or their own. Nodes may be older than servers and not newer, and kubelets
// emulate none: a cluster that emulates an older version has no hollow nodes, whose gates
// are those of this version.
var emulatedVersion = sync.OnceValues(func() (*utilversion.Version, error) {
	versions, err := catalog.EmulatedVersions()
	if err != nil || os.Getenv("EMULATED") == "" {
		return versions[0], err
	}
	version, err := utilversion.ParseMajorMinor(os.Getenv("EMULATED"))
	if err != nil {
		return nil, fmt.Errorf("EMULATED is %q and has to be a version such as %s: %w", os.Getenv("EMULATED"), versions[1], err)
	}
	if !slices.ContainsFunc(versions, version.EqualTo) {
		return nil, fmt.Errorf("EMULATED is %s; binaries of this version can emulate %s", version, versions)
	}
	return version, nil
})

// emulates returns whether servers emulate an older version.
func emulates() bool {
	versions, err := catalog.EmulatedVersions()
	version, _ := emulatedVersion()
	return err == nil && version != nil && !version.EqualTo(versions[0])
}

// specAt returns a gate's spec at the version of this run.
func specAt(name featuregate.Feature) versionskew.Spec {
	version, err := emulatedVersion()
	if err != nil {
		return versionskew.Spec{}
	}
	return specIn(version, name)
}

// specIn returns a gate's spec at a version.
func specIn(version *utilversion.Version, name featuregate.Feature) versionskew.Spec {
	return versionskew.SpecAt(utilfeature.DefaultFeatureGate.DeepCopy().GetAllVersioned()[name], version)
}

// gates are values for gates.
type gates map[featuregate.Feature]bool

// hollowNodes is the number of hollow nodes of this run.
func hollowNodes() int {
	if emulates() {
		return 0
	}
	return nodes
}

// arguments are the flags of each component that give it the values. All APIs
// are served for which storage is made: those whose storage is gated go away with
// their gate, others stay for the administrator who has to remove what is left.
func (g gates) arguments() map[string][]string {
	arguments := map[string][]string{}
	components := []string{localcluster.APIServer, localcluster.ControllerManager, localcluster.Scheduler}
	for i := range hollowNodes() {
		node := localcluster.NodeName(i + 1)
		components = append(components, localcluster.Kubelet(node), localcluster.Proxy(node))
	}
	for _, component := range components {
		binary := component
		if strings.Contains(component, "/") {
			binary = hollow
		}
		var values []string
		for _, name := range slices.Sorted(maps.Keys(g)) {
			if !slices.Contains(unknown[binary], name) {
				values = append(values, fmt.Sprintf("%s=%t", name, g[name]))
			}
		}
		if len(values) > 0 {
			arguments[component] = []string{"--feature-gates=" + strings.Join(values, ",")}
		}
	}
	// No process contradicts here; five seconds are enough for reports to
	// arrive. Nodes of fixtures have no kubelets that could report.
	server := []string{"--feature-settle-period=5s", "--feature-grace-period=10s", "--runtime-config=api/all=true"}
	if emulates() {
		version, _ := emulatedVersion()
		for _, component := range components {
			arguments[component] = append(arguments[component], "--emulated-version="+version.String())
		}
	}
	if g[genericfeatures.RemoteRequestHeaderUID] {
		// Without its flag the gate stores nothing; with the gate off it is refused.
		server = append(server, "--requestheader-uid-headers=X-Remote-Uid")
	}
	arguments[localcluster.APIServer] = append(arguments[localcluster.APIServer], server...)
	return arguments
}

// together are the gates that are on before some are turned off: they, what they
// need and what needs them, which may be what uses them; and those that go off:
// they and what needs them, since a gate refuses to be on while one that it
// depends on is off.
func together(names ...featuregate.Feature) (on, off gates) {
	on, off = gates{}, gates{}
	dependencies := utilfeature.DefaultFeatureGate.Dependencies()
	settable := func(name featuregate.Feature) bool { spec := specAt(name); return spec.Known && !spec.Locked }
	var turnOn, turnOff func(featuregate.Feature)
	turnOn = func(name featuregate.Feature) {
		if on[name] || !settable(name) || lacksHere(name) != "" {
			return
		}
		on[name] = true
		for _, needed := range dependencies[name] {
			turnOn(needed)
		}
	}
	turnOff = func(name featuregate.Feature) {
		if _, done := off[name]; done || !settable(name) {
			return
		}
		off[name] = false
		for dependent, needed := range dependencies {
			if slices.Contains(needed, name) {
				turnOff(dependent)
			}
		}
	}
	for _, name := range names {
		turnOff(name)
	}
	for name := range off {
		turnOn(name)
	}
	// What was turned on only because it is needed stays on.
	for name := range on {
		if _, goes := off[name]; !goes {
			off[name] = true
		}
	}
	return on, off
}

// cases are the gates that this run takes through: all, or that of FEATURE.
func cases(t *testing.T) ([]catalog.Entry, []*lifecycletest.Case) {
	t.Helper()
	only := featuregate.Feature(os.Getenv("FEATURE"))
	var entries []catalog.Entry
	var all []*lifecycletest.Case
	version, err := emulatedVersion()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range catalog.All() {
		// Turned off it could not say what becomes of anything.
		if only != "" && only != entry.Name || entry.Name == lifecyclefeatures.FeatureLifecycle || !catalog.Open(specAt(entry.Name)) {
			continue
		}
		if why := leftOut(version, entry); why != "" {
			t.Logf("%s is left out at %s: %s", entry.Name, version, why)
			continue
		}
		entries = append(entries, entry)
		all = append(all, newCase(t, entry))
	}
	if len(entries) == 0 {
		t.Fatalf("the catalog has no verdict on a gate %s, or it is the system itself, or not open at %s; FEATURE is the exact name of an alpha or beta gate that is not locked, as pkg/features or upstream declares it", only, version)
	}
	return entries, all
}

func newCase(t *testing.T, entry catalog.Entry) *lifecycletest.Case {
	t.Helper()
	file := filepath.Join("pkg", "featurelifecycle", "catalog", "testdata", string(entry.Name)+".yaml")
	c := &lifecycletest.Case{Feature: entry.Feature, Fixture: file}
	data, err := os.ReadFile(filepath.Join(framework.Root(t), file))
	if os.IsNotExist(err) {
		return c
	}
	if err == nil {
		c.Objects, err = lifecycletest.Parse(data)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	version, err := emulatedVersion()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range c.Objects {
		inServedVersion(object, version)
	}
	return c
}
