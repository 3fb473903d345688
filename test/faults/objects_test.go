//go:build linux

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

package faults

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
)

const (
	// ns has the StatefulSets.
	ns = metav1.NamespaceDefault
	// setsKey is where etcd has them.
	setsKey = "/registry/statefulsets/" + ns + "/"
	// writers is how many objects are written at once.
	writers = 16
	// bystanders is how many StatefulSets cannot have the field: nobody may
	// write them.
	bystanders = 20
)

// stored is a StatefulSet as etcd has it: without defaults, which a server with
// the gate on would add to what it shows.
type stored struct {
	*appsv1.StatefulSet
	// revision is etcd's at the last write, writes how many there were.
	revision, writes int64
}

// sets reads all StatefulSets from etcd.
func sets(t testing.TB, etcd *clientv3.Client) map[string]stored {
	t.Helper()
	response, err := etcd.Get(t.Context(), setsKey, clientv3.WithPrefix())
	if err != nil {
		t.Fatalf("reading StatefulSets from etcd: %v", err)
	}
	result := map[string]stored{}
	for _, kv := range response.Kvs {
		set := &appsv1.StatefulSet{}
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(kv.Value, nil, set); err != nil {
			t.Fatalf("%s: %v", kv.Key, err)
		}
		result[strings.TrimPrefix(string(kv.Key), setsKey)] = stored{set, kv.ModRevision, kv.Version}
	}
	return result
}

// hasField is true for an object with the field that the gate guards.
func hasField(set *appsv1.StatefulSet) bool {
	return set.Spec.UpdateStrategy.RollingUpdate != nil && set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable != nil
}

// unaffected is what clearing has to leave as it was (S7).
func unaffected(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	set = set.DeepCopy()
	if set.Spec.UpdateStrategy.RollingUpdate != nil {
		set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil
	}
	set.ResourceVersion, set.Generation, set.ManagedFields = "", 0, nil
	return set
}

// compare counts the objects that are gone, new, changed elsewhere than in the
// field, written twice, or still have it, and describes the first few.
func compare(t testing.TB, before, after map[string]stored) (lost int) {
	t.Helper()
	report := func(format string, args ...any) {
		if lost++; lost <= 3 {
			t.Errorf("S7: StatefulSet "+format, args...)
		}
	}
	for name, was := range before {
		is, ok := after[name]
		switch {
		case !ok:
			report("%s is gone", name)
		case hasField(is.StatefulSet):
			report("%s still has the field", name)
		case !hasField(was.StatefulSet) && was.revision != is.revision:
			report("%s never had the field and was written", name)
		case is.writes > was.writes+1:
			report("%s was written %d times to clear one field", name, is.writes-was.writes)
		case !equality.Semantic.DeepEqual(unaffected(was.StatefulSet), unaffected(is.StatefulSet)):
			report("%s changed elsewhere (-before +after):\n%s", name, cmp.Diff(unaffected(was.StatefulSet), unaffected(is.StatefulSet)))
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			report("%s was not there before", name)
		}
	}
	return lost
}

// setName is the name of an object.
func setName(i int) string { return fmt.Sprintf("set-%05d", i) }

// statefulSet is object number i. No two are alike.
func statefulSet(i int) *appsv1.StatefulSet {
	labels := map[string]string{"app": setName(i)}
	strategy := appsv1.StatefulSetUpdateStrategy{
		Type: appsv1.RollingUpdateStatefulSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{
			MaxUnavailable: ptr.To(intstr.FromInt(i%7 + 1)),
			Partition:      ptr.To(int32(i % 5)),
		},
	}
	if i < bystanders {
		strategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: setName(i), Annotations: map[string]string{"keep": fmt.Sprint("this ", i)}},
		Spec: appsv1.StatefulSetSpec{
			Replicas:       ptr.To[int32](0),
			ServiceName:    setName(i),
			Selector:       &metav1.LabelSelector{MatchLabels: labels},
			UpdateStrategy: strategy,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.invalid/c"}}},
			},
		},
	}
}

// each calls write for every number below count, several at once.
func each(t testing.TB, count int, what string, write func(ctx context.Context, i int) error) {
	t.Helper()
	numbers := make(chan int)
	var mu sync.Mutex
	var first error
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for i := range numbers {
				if err := write(t.Context(), i); err != nil {
					mu.Lock()
					first = err
					mu.Unlock()
				}
			}
		})
	}
	for i := range count {
		numbers <- i
	}
	close(numbers)
	group.Wait()
	if first != nil {
		t.Fatalf("%s: %v", what, first)
	}
}

// useThroughAPI makes all objects have the field as users do, with the gate on.
func useThroughAPI(t testing.TB, client kubernetes.Interface, count int) {
	t.Helper()
	api := client.AppsV1().StatefulSets(ns)
	each(t, count+bystanders, "writing StatefulSets", func(ctx context.Context, i int) error {
		set := statefulSet(i)
		var err error
		if i >= bystanders {
			_, err = api.Update(ctx, set, metav1.UpdateOptions{})
		}
		if i < bystanders || apierrors.IsNotFound(err) {
			_, err = api.Create(ctx, set, metav1.CreateOptions{})
		}
		if i < bystanders && apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}
