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

package tasks

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/utils/ptr"
)

var statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}

// storedSet is a StatefulSet as its bytes in etcd decode, and their revision.
type storedSet struct {
	set      *appsv1.StatefulSet
	revision int64
}

// randomSets makes StatefulSets of every shape that an update strategy has, with
// more beside it than a clean-up may touch.
type randomSets struct{ *rand.Rand }

func (r randomSets) maybe() bool { return r.IntN(2) == 0 }

func (r randomSets) texts(prefix string) map[string]string {
	result := map[string]string{}
	for i := range r.IntN(4) {
		result[fmt.Sprintf("%s-%d", prefix, i)] = fmt.Sprintf("v%d", r.IntN(100))
	}
	return result
}

// strategy returns one that gets the field, or one that does not: how many objects
// have it is not left to chance.
func (r randomSets) strategy(having bool) appsv1.StatefulSetUpdateStrategy {
	if !having && r.maybe() {
		return appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	}
	strategy := appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}
	if !having {
		// The default of the field goes into a rollingUpdate that is there.
		return strategy
	}
	strategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
	if r.maybe() {
		strategy.RollingUpdate.Partition = ptr.To(r.Int32N(5))
	}
	switch r.IntN(3) {
	case 0:
		strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(1 + r.Int32N(9)))
	case 1:
		strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromString(fmt.Sprintf("%d%%", 1+r.IntN(99))))
	}
	return strategy
}

func (r randomSets) container(name string) corev1.Container {
	container := corev1.Container{Name: name, Image: fmt.Sprintf("example.invalid/c:%d", r.IntN(9))}
	for key, value := range r.texts("E") {
		container.Env = append(container.Env, corev1.EnvVar{Name: key, Value: value})
	}
	if r.maybe() {
		container.ImagePullPolicy = corev1.PullNever
	}
	return container
}

func (r randomSets) set(name string, having bool) *appsv1.StatefulSet {
	labels := r.texts("label")
	labels["app"] = name
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: r.texts("a")}}
	template.Spec.NodeSelector = r.texts("n")
	for i := range 1 + r.IntN(3) {
		template.Spec.Containers = append(template.Spec.Containers, r.container(fmt.Sprintf("c%d", i)))
	}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Annotations: r.texts("a"), Labels: r.texts("l")},
		Spec: appsv1.StatefulSetSpec{
			Replicas:       ptr.To(r.Int32N(4)),
			ServiceName:    name,
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			UpdateStrategy: r.strategy(having),
			Template:       template,
		},
	}
	if r.maybe() {
		set.Spec.MinReadySeconds = r.Int32N(100)
	}
	if r.maybe() {
		set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: r.Int32N(5)}
	}
	return set
}

// deletedSet has the field and is being deleted.
const deletedSet = "being-deleted"

// makeStatefulSets makes more of them than a page has and returns how they are
// stored.
func (w *world) makeStatefulSets(t *testing.T) map[string]storedSet {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed of the StatefulSets: %d", seed)
	random := randomSets{rand.New(rand.NewPCG(seed, 0))}
	todo := make(chan *appsv1.StatefulSet)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for set := range todo {
				if _, err := w.Kube.AppsV1().StatefulSets(ns).Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
					t.Errorf("creating StatefulSet %s: %v", set.Name, err)
				}
			}
		})
	}
	for i := range 300 {
		todo <- random.set(fmt.Sprintf("set-%03d", i), i%2 == 0)
	}
	deleted := random.set(deletedSet, true)
	deleted.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{}
	deleted.Finalizers = []string{"example.com/hold"}
	todo <- deleted
	close(todo)
	workers.Wait()
	if err := w.Kube.AppsV1().StatefulSets(ns).Delete(t.Context(), deletedSet, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	return w.storedSets(t)
}

// storedSets decodes what is in etcd.
func (w *world) storedSets(t *testing.T) map[string]storedSet {
	t.Helper()
	found, err := w.etcd.Get(t.Context(), "/registry/statefulsets/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	sets := map[string]storedSet{}
	for _, kv := range found.Kvs {
		object, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(kv.Value, nil, nil)
		if err != nil {
			t.Fatalf("decoding %s: %v", kv.Key, err)
		}
		set := object.(*appsv1.StatefulSet)
		sets[set.Name] = storedSet{set, kv.ModRevision}
	}
	return sets
}

func (w *world) clearStatefulSets(t *testing.T, before map[string]storedSet) {
	served := map[string]*appsv1.StatefulSet{}
	list, err := w.Kube.AppsV1().StatefulSets(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		served[list.Items[i].Name] = &list.Items[i]
	}
	having := int64(0)
	for _, s := range before {
		if framework.HasMaxUnavailable(s.set) {
			having++
		}
	}
	if having < 100 || int(having) == len(before) {
		t.Fatalf("%d of %d StatefulSets have the field; that tells little", having, len(before))
	}

	clearing := lifecycle.ClearField(statefulSets, "spec.updateStrategy.rollingUpdate.maxUnavailable")
	clients := w.clients(t, declared(t, clearing)...)
	if n := count(t, clients, clearing); n != having {
		t.Errorf("found %d StatefulSets, want %d", n, having)
	}
	run(t, clients, clearing)
	if n := count(t, clients, clearing); n != 0 {
		t.Errorf("found %d StatefulSets after the clean-up", n)
	}

	after := w.storedSets(t)
	for name, was := range before {
		is, ok := after[name]
		if !ok {
			t.Errorf("%s is gone", name)
			continue
		}
		if framework.HasMaxUnavailable(is.set) {
			t.Errorf("%s still has the field", name)
		}
		if diff := cmp.Diff(framework.WithoutMaxUnavailable(was.set), framework.WithoutMaxUnavailable(is.set)); diff != "" {
			t.Errorf("S7: what is stored of %s changed elsewhere (-before +after):\n%s", name, diff)
		}
		if !framework.HasMaxUnavailable(was.set) && was.revision != is.revision {
			t.Errorf("S7: %s does not have the field and was written", name)
		}
		now, err := w.Kube.AppsV1().StatefulSets(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(framework.WithoutMaxUnavailable(served[name]), framework.WithoutMaxUnavailable(now)); diff != "" {
			t.Errorf("S7: what is served of %s changed elsewhere (-before +after):\n%s", name, diff)
		}
	}
	if after[deletedSet].set.DeletionTimestamp == nil {
		t.Errorf("%s is not being deleted: this test tries nothing", deletedSet)
	}
	letGo := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := w.Kube.AppsV1().StatefulSets(ns).Patch(t.Context(), deletedSet, types.MergePatchType, letGo, metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
}
