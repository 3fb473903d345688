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
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycletest"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/kubernetes/pkg/features"
)

// explicit is set in every server of either binary: what it stores is a form of
// both versions, and stays.
const explicit = string(features.MaxUnavailableStatefulSet) + "=true"

// binaries are kube-apiservers on one etcd, without controllers: now of 1.36.3,
// now ours, as they ship.
type binaries struct {
	*world
	kit *lifecycletest.Kit
	// files are the executables of the servers, read at each start.
	files    map[string]string
	previous string
	// killing is true when servers are killed while binaries are exchanged: every second one
	// instead of being ended, and the second new one as soon as it is ready. The first new one
	// lives meanwhile: a move that is given up half way is something else.
	killing bool
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

// startPrevious starts 1.36.3's own kube-apiservers, with the alpha gate on whose
// collection is stored in a form that 1.37 cannot decode.
func startPrevious(t *testing.T, servers int) *binaries {
	t.Helper()
	return startBinaries(t, framework.Previous(t, "kube-apiserver"), servers, append(common(workload+"=true"), allAPIs)...)
}

// startBinaries starts kube-apiservers of the minor version before.
func startBinaries(t *testing.T, previous string, servers int, args ...string) *binaries {
	t.Helper()
	b := &binaries{world: &world{byID: map[string]string{}}, files: map[string]string{}, previous: previous}
	config := localcluster.Config{Servers: servers, Only: []string{localcluster.Etcd}, Binaries: b.files, ExtraArgs: map[string][]string{}}
	for i := range servers {
		name := localcluster.Nth(localcluster.APIServer, i+1)
		b.servers = append(b.servers, name)
		b.files[name], config.ExtraArgs[name] = b.previous, args
	}
	config.Only = append(config.Only, b.servers...)
	b.Cluster = framework.Start(t, config)
	b.etcd = b.Etcd()
	b.history = record(t, b.etcd)
	b.identify(t)
	var err error
	if b.kit, err = lifecycletest.KitFor(b.Config, metav1.NamespaceSystem); err != nil {
		t.Fatal(err)
	}
	b.kit.Release = b.release
	return b
}

// replace ends the servers one after the other, and starts 1.36.3's or ours in
// their places. Nothing may begin while one of the old ones lives (S4). It returns
// what was stored before the first of the new ones started.
func (b *binaries) replace(t *testing.T, file string, args ...string) (stored map[string][]byte) {
	t.Helper()
	mark := b.history.mark()
	for i, server := range b.servers {
		if i == len(b.servers)-1 && i > 0 {
			b.nothingBegan(t, mark)
		}
		if b.killing && i%2 == 1 {
			b.MustKill(server)
			b.kills++
		} else {
			b.MustStop(server)
		}
		if i == 0 {
			stored = b.stored(t, "/registry/")
		}
		b.files[server] = file
		b.SetArgs(server, args...)
		b.MustStart(server)
		if b.killing && i == 1 {
			b.kill(t, server)
		}
	}
	b.kit.Mapper.Reset()
	if is := b.Version(); (file == b.previous) != (framework.Minor(is) == lower) {
		t.Fatalf("the server is %s", is)
	}
	return stored
}

// old replaces the servers by 1.36.3's.
func (b *binaries) old(t *testing.T, args ...string) map[string][]byte {
	t.Helper()
	return b.replace(t, b.previous, args...)
}

// ours replaces the servers by ours of a version.
func (b *binaries) ours(t *testing.T, version string, args ...string) map[string][]byte {
	t.Helper()
	args = slices.Concat(args, flags)
	if version != upper {
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
		t.Errorf("%s: %v", file, err)
	}
}

// onAt reports whether a gate is on by default at a version.
func onAt(gate featuregate.Feature, version string) bool {
	return specAt(utilfeature.DefaultFeatureGate.DeepCopy().GetAllVersioned()[gate], version).Default
}

// lockedAt reports whether a gate cannot be set at a version: its fixture is for older
// ones.
func lockedAt(gate featuregate.Feature, version string) bool {
	return specAt(utilfeature.DefaultFeatureGate.DeepCopy().GetAllVersioned()[gate], version).Locked
}

// cases are the features of the catalog that leave something in etcd, those that
// are on in both versions, and those that are off in 1.36, whatever they are in 1.37.
func cases(t *testing.T) (both, news []*lifecycletest.Case, files map[*lifecycletest.Case]string) {
	t.Helper()
	files = map[*lifecycletest.Case]string{}
	for _, entry := range catalog.All() {
		file := filepath.Join(framework.Root(t), "pkg", "featurelifecycle", "catalog", "testdata", string(entry.Name)+".yaml")
		if _, err := os.Stat(file); err != nil || string(entry.Name)+"=true" == explicit || lockedAt(entry.Name, lower) && lockedAt(entry.Name, upper) {
			continue
		}
		c := &lifecycletest.Case{Feature: entry.Feature, Fixture: filepath.Base(file)}
		files[c] = file
		switch {
		case !onAt(entry.Name, lower):
			news = append(news, c)
		case onAt(entry.Name, upper):
			both = append(both, c)
		}
	}
	return both, news, files
}

// atRest holds when all features are at rest in the form of a version.
func atRest(version string) func(map[string]v1alpha1.FeatureStatus) bool {
	return func(last map[string]v1alpha1.FeatureStatus) bool { return allRest(last, version) && len(last) > 200 }
}

// TestBinaries moves a cluster from the binary of 1.36.3 to ours and back, as
// docs/upgrade.md says, and once more up. What was made before stays to the byte;
// what only 1.37 knows is gone before 1.36.3 comes, which lists all it serves, and
// lets everything be changed and deleted. The short form has one server, the whole
// one replaces three one after the other.
func TestBinaries(t *testing.T) {
	t.Parallel()
	servers := 3
	if short {
		servers = 1
	}
	b := startPrevious(t, servers)
	both, news, files := cases(t)
	b.use(t, "inuse.yaml")
	b.use(t, "workloads.yaml")
	for _, c := range both {
		b.useCase(t, c, files[c])
	}
	b.old(t, common()...)
	b.keys(t, "with the gate off", workloadsKey, "inuse/old")
	b.keys(t, "with the gate off", podGroupsKey, "inuse/old")

	// Up.
	before := b.ours(t, lower, common()...)
	b.history.wait(t, "the features are adopted at "+lower, atRest(lower))
	stay := b.lasting(t, before)
	b.same(t, "with our binary", stay)
	mark := b.history.mark()
	b.ours(t, upper, common()...)
	b.history.wait(t, "all features are at "+upper, atRest(upper))
	b.same(t, "at "+upper, stay)
	b.keys(t, "at "+upper, workloadsKey)
	b.keys(t, "at "+upper, podGroupsKey)
	b.stages(t, mark, workload, []string{"Off@" + lower, "Upgrading@" + lower, "Off@" + upper})

	// Everything that 1.37 has and 1.36 has not, or has off, is used.
	view := b.useNew(t, news, files)
	b.same(t, "while "+upper+" is used", stay)
	b.unsafe(t, workload)

	// Down: first the gates that are set to on, while their APIs are served and
	// those objects can be removed that hold it; then what 1.37 has on.
	set, byDefault := []*lifecycletest.Case{}, []*lifecycletest.Case{}
	for _, c := range news {
		if onAt(c.Feature.Name, upper) {
			byDefault = append(byDefault, c)
		} else {
			set = append(set, c)
		}
	}
	b.ours(t, upper, append(common(), allAPIs)...)
	b.off(t, view, set)
	b.history.wait(t, "what was set is off", atRest(upper))
	b.unsafe(t, scaleToZero)
	// Their collections are served at the higher version by default, at the lower one not:
	// what they hold could be neither read nor deleted.
	b.ours(t, lower, append(common(), allAPIs)...)
	b.off(t, view, byDefault)
	b.history.wait(t, "all features are at "+lower, atRest(lower))
	if _, code := b.UpgradeCheck("--to=" + lower); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	b.same(t, "with our binary at "+lower, stay)
	b.sound(t)
	uids := b.uids(t)

	b.old(t, common()...)
	b.same(t, "with 1.36.3's binary", stay)
	b.compare(t, before, b.stored(t, "/registry/"))
	changeable(t, b.allServed(t))
	b.everythingServed(t)

	b.again(t, stay, uids)
}

// lasting has objects that were stored before and must not be rewritten.
// Servers' objects about themselves are excluded.
func (b *binaries) lasting(t *testing.T, stored map[string][]byte) map[string][]byte {
	t.Helper()
	stay := maps.Clone(stored)
	maps.DeleteFunc(stay, func(key string, _ []byte) bool {
		return strings.HasPrefix(key, workloadsKey) || strings.HasPrefix(key, podGroupsKey) || ofServers(key)
	})
	fmt.Fprintf(t.Output(), "%d of %d stored objects have to stay as they are, to the byte\n", len(stay), len(stored))
	return stay
}

// ofServers reports whether servers write a key by themselves.
func ofServers(key string) bool {
	return slices.ContainsFunc(own, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// own are the prefixes of keys that servers write by themselves.
var own = []string{
	"/registry/leases/kube-system/apiserver-", "/registry/masterleases/", "/registry/ranges/", "/registry/events/",
	"/registry/clusterroles/system:", "/registry/apiregistration.k8s.io/",
	"/registry/configmaps/kube-system/extension-apiserver-authentication",
}

// useNew turns on, at 1.37, everything that is off at 1.36, and uses it.
func (b *binaries) useNew(t *testing.T, news []*lifecycletest.Case, files map[*lifecycletest.Case]string) *lifecycletest.View {
	t.Helper()
	gates := turnOn(news)
	b.ours(t, upper, append(common(gates...), allAPIs, "--requestheader-uid-headers=X-Remote-Uid")...)
	b.history.wait(t, "everything is on", func(last map[string]v1alpha1.FeatureStatus) bool {
		return atRest(upper)(last) && !slices.ContainsFunc(gates, func(value string) bool {
			return last[strings.TrimSuffix(value, "=true")].State != v1alpha1.StateOn
		})
	})
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
	dependencies := utilfeature.DefaultFeatureGate.Dependencies()
	var turn func(featuregate.Feature)
	turn = func(gate featuregate.Feature) {
		if on[gate] || string(gate)+"=true" == explicit {
			return
		}
		on[gate] = true
		for _, needed := range dependencies[gate] {
			if !onAt(needed, upper) {
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
	// What each says on the way is test/e2e_features/gates's to judge.
	for _, name := range slices.Sorted(maps.Keys(outcomes)) {
		for _, problem := range outcomes[name].Problems {
			if err != nil {
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
	if out, code := b.UpgradeCheck("--to="+lower, "-o=name"); code != 1 || !slices.Contains(strings.Fields(out), "feature.features.k8s.io/"+feature) {
		t.Errorf("exit code %d, want 1, and %s is not safe: %s", code, feature, out)
	}
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

// compare checks what became of what was stored before 1.37 came: Workloads and PodGroups
// of 1.36 are gone, and servers rewrote nothing but what is theirs.
func (b *binaries) compare(t *testing.T, before, left map[string][]byte) {
	t.Helper()
	var gone, changed []string
	for key, was := range before {
		switch is, ok := left[key]; {
		case !ok && !strings.HasPrefix(key, "/registry/events/"):
			gone = append(gone, key)
		case ok && !bytes.Equal(was, is) && !ofServers(key):
			changed = append(changed, key)
		}
	}
	slices.Sort(gone)
	if diff := cmp.Diff([]string{podGroupsKey + "inuse/old", workloadsKey + "inuse/old"}, gone); diff != "" {
		t.Errorf("unexpectedly gone since 1.37 came (-want +got):\n%s", diff)
	}
	if len(changed) > 0 {
		t.Errorf("changed since 1.37 came: %q", changed)
	}
}

// everythingServed starts 1.36.3 with all gates and all APIs: it can decode all that is
// stored, and nothing is stored that it does not serve, but what has to do with
// Features, which stay as they were, and what is no object.
func (b *binaries) everythingServed(t *testing.T) {
	t.Helper()
	features := b.stored(t, framework.FeaturesKey)
	b.old(t, append(common("AllAlpha=true", "AllBeta=true"), allAPIs)...)
	objects := b.allServed(t)
	for _, o := range objects {
		if o.resource.GroupVersionResource.Group == v1alpha1.GroupName {
			t.Errorf("%s serves %s", framework.PreviousVersion, o)
		}
	}
	ours := 0
	for _, key := range unserved(b.stored(t, "/registry/"), objects) {
		switch {
		case strings.HasPrefix(key, framework.FeaturesKey), strings.HasPrefix(key, "/registry/featurevalues/kube-system/"), strings.HasPrefix(key, "/registry/featurereports/kube-system/kube-apiserver."):
			ours++
		case slices.ContainsFunc([]string{"/registry/ranges/", "/registry/masterleases/", "/registry/peerserverleases/"}, func(prefix string) bool { return strings.HasPrefix(key, prefix) }):
		default:
			t.Errorf("%s is stored and %s does not serve it", key, framework.PreviousVersion)
		}
	}
	if len(features) < 200 || ours < len(features) {
		t.Errorf("%d objects of Features are stored, want %d Features and the servers' reports", ours, len(features))
	}
	b.same(t, "while 1.36.3 runs with all gates on", features)
}

// uids are those of all Features.
func (b *binaries) uids(t *testing.T) map[string]types.UID {
	t.Helper()
	list, err := b.Features.FeaturesV1alpha1().Features(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]types.UID{}
	for _, f := range list.Items {
		uids[f.Name] = f.UID
	}
	return uids
}

// again stores something with 1.36.3 once more that 1.37 cannot decode, and moves
// straight to 1.37: the Features that stayed decide which tasks run.
func (b *binaries) again(t *testing.T, stay map[string][]byte, uids map[string]types.UID) {
	t.Helper()
	b.use(t, "again.yaml")
	b.old(t, common()...)
	b.keys(t, "with 1.36.3 again", workloadsKey, "inuse/again")
	mark := b.history.mark()
	b.ours(t, upper, common()...)
	b.history.wait(t, "all features are at "+upper+" again", atRest(upper))
	b.keys(t, "at "+upper+" again", workloadsKey)
	b.stages(t, mark, workload, []string{"Off@" + lower, "Upgrading@" + lower, "Off@" + upper})
	b.same(t, "at "+upper+" again", stay)
	b.sound(t)
	if diff := cmp.Diff(uids, b.uids(t)); diff != "" {
		t.Errorf("Features were not taken up again (-want +got):\n%s", diff)
	}
}

// TestUndecodableObjectsReported: the checks of TestBinaries find an object that
// 1.36.3 cannot decode.
func TestUndecodableObjectsReported(t *testing.T) {
	t.Parallel()
	b := startPrevious(t, 1)
	if _, failed := b.served(t); len(failed) > 0 {
		t.Fatalf("before there is one: %q", failed)
	}
	b.storeWorkload(t, "scheduling.k8s.io/v1beta1", "new")
	objects, failed := b.served(t)
	if len(failed) != 1 || !strings.Contains(failed[0], "workloads") {
		t.Errorf("LIST fails for %q, want workloads alone", failed)
	}
	if keys := unserved(b.stored(t, workloadsKey), objects); !slices.Equal(keys, []string{workloadsKey + "default/new"}) {
		t.Errorf("not served are %q, want the Workload alone", keys)
	}
}
