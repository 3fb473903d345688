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

package versions

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycletest"
	"k8s.io/kubernetes-features/cmd/local-up/cluster"
	"k8s.io/kubernetes-features/pkg/catalog"
	"k8s.io/kubernetes-features/test/integration/framework"
	"k8s.io/kubernetes/pkg/features"
)

// explicit is set in every server of either binary: what it stores is a form of
// both versions, and stays.
const explicit = string(features.MaxUnavailableStatefulSet) + "=true"

// binaries is one kube-apiserver on one etcd, without controllers: now of 1.35.4,
// now ours, as they ship.
type binaries struct {
	*world
	kit *lifecycletest.Kit
	// files are the executables of the cluster's components, read at each start.
	files    map[string]string
	previous string
}

// common are the flags of servers of either binary.
func common(gates ...string) []string {
	return []string{
		"--feature-gates=" + strings.Join(append(gates, explicit), ","),
		// Service accounts are made, and the finalizer of claims is removed, by the
		// controller manager, which is not here.
		"--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection",
	}
}

const allAPIs = "--runtime-config=api/all=true"

// startPrevious starts 1.35.4's own kube-apiserver, with the alpha gate on whose
// collection is stored in a form that 1.36 cannot decode.
func startPrevious(t *testing.T) *binaries {
	t.Helper()
	previous := framework.Previous(t, "kube-apiserver")
	b := &binaries{world: &world{}, files: map[string]string{cluster.APIServer: previous}, previous: previous}
	b.Cluster = framework.Start(t, cluster.Config{
		Only: []string{cluster.Etcd, cluster.APIServer}, Binaries: b.files,
		ExtraArgs: map[string][]string{cluster.APIServer: append(common(workload+"=true"), allAPIs)},
	})
	b.etcd = b.Etcd()
	b.history = record(t, b.etcd)
	b.kit = &lifecycletest.Kit{
		Dynamic:   dynamic.NewForConfigOrDie(b.Config),
		Features:  b.Features,
		Mapper:    restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery.NewDiscoveryClientForConfigOrDie(b.Config))),
		Namespace: metav1.NamespaceSystem,
		Release:   b.release,
	}
	return b
}

// replace ends the server, and starts 1.35.4's or ours in its place. It returns
// what was stored in between.
func (b *binaries) replace(t *testing.T, file string, args ...string) map[string][]byte {
	t.Helper()
	if err := b.Stop(t.Context(), cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	stored := b.stored(t, "/registry/")
	b.files[cluster.APIServer] = file
	b.SetArgs(cluster.APIServer, args...)
	if err := b.Cluster.Start(t.Context(), cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	b.kit.Mapper.Reset()
	if is := b.Version(); (file == b.previous) != (is == framework.PreviousVersion) {
		t.Fatalf("the server is %s", is)
	}
	return stored
}

// old replaces the server by 1.35.4's, ours by ours of a version.
func (b *binaries) old(t *testing.T, args ...string) map[string][]byte {
	t.Helper()
	return b.replace(t, b.previous, args...)
}

func (b *binaries) ours(t *testing.T, version string, args ...string) map[string][]byte {
	t.Helper()
	args = slices.Concat(args, flags)
	if version != "1.36" {
		args = append(args, "--emulated-version="+version)
	}
	return b.replace(t, filepath.Join(framework.BinDir(t), "kube-apiserver"), args...)
}

// use makes the objects of a file of the test's, and returns their case.
func (b *binaries) use(t *testing.T, file string) {
	t.Helper()
	b.useCase(t, &lifecycletest.Case{Fixture: file}, filepath.Join("testdata", file))
}

func (b *binaries) useCase(t *testing.T, c *lifecycletest.Case, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		c.Objects, err = lifecycletest.Parse(data)
	}
	if err == nil {
		err = b.kit.Use(t.Context(), c)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// onAt says whether a gate is on by default at a version (component-base's
// featuregate, GetAll with an emulated version).
func onAt(gate featuregate.Feature, version string) bool {
	on := false
	for _, spec := range utilfeature.DefaultMutableFeatureGate.GetAllVersioned()[gate] {
		if !spec.Version.GreaterThan(utilversion.MustParse(version)) {
			on = spec.Default
		}
	}
	return on
}

// cases are the features of the catalogue that leave something in etcd, those that
// are on in both versions, and those that are off in 1.35, whatever they are in 1.36.
func cases(t *testing.T) (both, news []*lifecycletest.Case, files map[*lifecycletest.Case]string) {
	t.Helper()
	files = map[*lifecycletest.Case]string{}
	for _, entry := range catalog.All() {
		file := filepath.Join("..", "..", "..", "pkg", "catalog", "testdata", string(entry.Name)+".yaml")
		if _, err := os.Stat(file); err != nil || string(entry.Name)+"=true" == explicit {
			continue
		}
		c := &lifecycletest.Case{Feature: entry.Feature, Fixture: filepath.Base(file)}
		files[c] = file
		switch {
		case !onAt(entry.Name, "1.35"):
			news = append(news, c)
		case onAt(entry.Name, "1.36"):
			both = append(both, c)
		}
	}
	return both, news, files
}

// atRest holds when all features are at rest in the form of a version.
func atRest(version string) func(map[string]v1alpha1.FeatureStatus) bool {
	return func(last map[string]v1alpha1.FeatureStatus) bool {
		for _, s := range last {
			if (s.State != v1alpha1.StateOn && s.State != v1alpha1.StateOff) || s.Version != version || s.Configured == nil || s.Configured.Value != (s.State == v1alpha1.StateOn) {
				return false
			}
		}
		return len(last) > 200
	}
}

// TestBinaries moves a cluster from the binary of 1.35.4 to ours and back, as
// docs/upgrade.md says, and once more up. What was made before stays to the byte;
// what only 1.36 knows is gone before 1.35.4 comes, which lists all it serves, and
// lets everything be changed and deleted.
func TestBinaries(t *testing.T) {
	b := startPrevious(t)
	both, news, files := cases(t)
	b.use(t, "inuse.yaml")
	b.use(t, "workloads.yaml")
	for _, c := range both {
		b.useCase(t, c, files[c])
	}
	b.old(t, common()...)
	b.keys(t, "with the gate off", workloadsKey, "inuse/old")

	// Up.
	before := b.ours(t, "1.35", common()...)
	b.history.wait(t, "the features are adopted at 1.35", atRest("1.35"))
	stay := b.lasting(t, before)
	b.same(t, "with our binary", stay)
	mark := b.history.mark()
	b.ours(t, "1.36", common()...)
	b.history.wait(t, "all features are at 1.36", atRest("1.36"))
	b.same(t, "at 1.36", stay)
	b.keys(t, "at 1.36", workloadsKey)
	b.world.stages(t, mark, workload, []string{"Off@1.35", "Upgrading@1.35", "Off@1.36"})

	// Everything that 1.36 has and 1.35 has not, or has off, is used.
	view := b.useNew(t, news, files)
	b.same(t, "while 1.36 is used", stay)
	b.unsafe(t, workload)

	// Down: first what is on because somebody set it, while its APIs are served
	// and those objects can be removed that hold it; then what 1.36 has on.
	set := slices.DeleteFunc(slices.Clone(news), func(c *lifecycletest.Case) bool { return onAt(c.Feature.Name, "1.36") })
	b.ours(t, "1.36", append(common(), allAPIs)...)
	b.off(t, view, set)
	b.history.wait(t, "what was set is off", atRest("1.36"))
	b.unsafe(t, "RelaxedServiceNameValidation")
	b.ours(t, "1.35", common()...)
	b.off(t, view, news)
	b.history.wait(t, "all features are at 1.35", atRest("1.35"))
	if _, code := b.UpgradeCheck("--to=1.35"); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	b.same(t, "with our binary at 1.35", stay)
	b.sound(t)
	left := b.old(t, common()...)
	b.same(t, "with 1.35.4's binary", stay)
	b.back(t, before, left)
}

// lasting is what was stored before and is nobody's to rewrite: not what servers
// write about themselves.
func (b *binaries) lasting(t *testing.T, stored map[string][]byte) map[string][]byte {
	t.Helper()
	stay := maps.Clone(stored)
	maps.DeleteFunc(stay, func(key string, _ []byte) bool {
		return strings.HasPrefix(key, workloadsKey) || slices.ContainsFunc(own, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
	fmt.Fprintf(t.Output(), "%d of %d stored objects have to stay as they are, to the byte\n", len(stay), len(stored))
	return stay
}

// own are the prefixes of keys that servers write by themselves.
var own = []string{
	"/registry/leases/kube-system/apiserver-", "/registry/masterleases/", "/registry/ranges/", "/registry/events/",
	"/registry/clusterroles/", "/registry/apiregistration.k8s.io/", "/registry/flowschemas/", "/registry/prioritylevelconfigurations/",
	"/registry/configmaps/kube-system/extension-apiserver-authentication",
}

// useNew turns on, at 1.36, everything that is off at 1.35, and uses it.
func (b *binaries) useNew(t *testing.T, news []*lifecycletest.Case, files map[*lifecycletest.Case]string) *lifecycletest.View {
	t.Helper()
	b.ours(t, "1.36", append(common(turnOn(news)...), allAPIs, "--requestheader-uid-headers=X-Remote-Uid")...)
	b.history.wait(t, "everything is on", atRest("1.36"))
	b.use(t, "new.yaml")
	for _, c := range news {
		b.useCase(t, c, files[c])
	}
	var preferred []schema.GroupVersionResource
	seen := map[schema.GroupResource]bool{}
	for _, r := range b.resources(t) {
		if group := r.GroupVersionResource.GroupResource(); !seen[group] {
			seen[group] = true
			preferred = append(preferred, r.GroupVersionResource)
		}
	}
	view, err := b.kit.View(t.Context(), preferred...)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

// turnOn are values that turn features on, and what they need.
func turnOn(cases []*lifecycletest.Case) []string {
	on := map[featuregate.Feature]bool{}
	dependencies := utilfeature.DefaultMutableFeatureGate.Dependencies()
	var turn func(featuregate.Feature)
	turn = func(gate featuregate.Feature) {
		if on[gate] || string(gate)+"=true" == explicit {
			return
		}
		on[gate] = true
		for _, needed := range dependencies[gate] {
			if !onAt(needed, "1.36") {
				turn(needed)
			}
		}
	}
	for _, c := range cases {
		turn(c.Feature.Name)
	}
	var values []string
	for _, gate := range slices.Sorted(maps.Keys(on)) {
		values = append(values, string(gate)+"=true")
	}
	return values
}

// off waits until features are off, and removes what holds them, as they ask for.
func (b *binaries) off(t *testing.T, view *lifecycletest.View, news []*lifecycletest.Case) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), framework.Patience)
	defer cancel()
	outcomes, err := b.kit.WaitUntilOff(ctx, view, news...)
	if err != nil {
		t.Error(err)
	}
	for _, name := range slices.Sorted(maps.Keys(outcomes)) {
		for _, problem := range outcomes[name].Problems {
			// Features of a collection that another one clears wait for it.
			if !strings.Contains(problem, "turn off the feature that clears the collection") {
				t.Error(problem)
			}
		}
	}
}

// release deletes an object that holds a feature, and does what controllers, which
// are not here, do then: they remove finalizers.
func (b *binaries) release(ctx context.Context, object lifecycletest.Object) (bool, error) {
	mapped, err := b.kit.Mapper.ResourceFor(object.Resource.WithVersion(""))
	if err != nil {
		return false, err
	}
	in := b.kit.Dynamic.Resource(mapped).Namespace(object.GetNamespace())
	if len(object.GetFinalizers()) > 0 {
		if _, err := in.Patch(ctx, object.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			return false, notFound(err)
		}
	}
	return false, nil
}

func notFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// unsafe checks that a feature keeps the cluster from going down.
func (b *binaries) unsafe(t *testing.T, feature string) {
	t.Helper()
	if out, code := b.UpgradeCheck("--to=1.35", "-o=name"); code != 1 || !slices.Contains(strings.Fields(out), "feature.features.k8s.io/"+feature) {
		t.Errorf("exit code %d, want 1, and %s is not safe: %s", code, feature, out)
	}
	b.UpgradeCheck("--to=1.35")
}

// sound holds S1 to S3 in everything that was ever stored.
func (b *binaries) sound(t *testing.T) {
	t.Helper()
	for name := range b.history.last() {
		if what := broken(b.history.since(map[string]int{}, name)); what != "" {
			t.Errorf("%s: %s", name, what)
		}
	}
}

// back checks what 1.35.4 makes of what is left for it.
func (b *binaries) back(t *testing.T, before, left map[string][]byte) {
	t.Helper()
	changeable(t, b.served(t))
	for _, key := range slices.Sorted(maps.Keys(left)) {
		if was, ok := before[key]; !ok {
			fmt.Fprintln(t.Output(), "new:", key)
		} else if !bytes.Equal(was, left[key]) {
			fmt.Fprintln(t.Output(), "changed:", key)
		}
	}
	for key := range before {
		if _, ok := left[key]; !ok {
			fmt.Fprintln(t.Output(), "gone:", key)
		}
	}
	b.old(t, append(common("AllAlpha=true", "AllBeta=true"), allAPIs)...)
	for _, key := range unserved(b.stored(t, "/registry/"), b.served(t)) {
		fmt.Fprintln(t.Output(), "unserved:", key)
	}
}
