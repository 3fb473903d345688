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

package disruption

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/utils/ptr"
)

const (
	// writers is how many objects are written at once.
	writers = 16
	// bystanders is how many StatefulSets cannot have the field: they may not be
	// written.
	bystanders = 20
)

// compare counts the objects that are gone, new, changed elsewhere than in the
// field, written twice, or still have it, and describes the first few.
func compare(t testing.TB, before, after map[string]framework.StoredStatefulSet) (lost int) {
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
		case framework.HasMaxUnavailable(is.StatefulSet):
			report("%s still has the field", name)
		case !framework.HasMaxUnavailable(was.StatefulSet) && was.Revision != is.Revision:
			report("%s never had the field and was written", name)
		case is.Writes > was.Writes+1:
			report("%s was written %d times to clear one field", name, is.Writes-was.Writes)
		case !equality.Semantic.DeepEqual(framework.WithoutMaxUnavailable(was.StatefulSet), framework.WithoutMaxUnavailable(is.StatefulSet)):
			report("%s changed elsewhere (-before +after):\n%s", name, cmp.Diff(framework.WithoutMaxUnavailable(was.StatefulSet), framework.WithoutMaxUnavailable(is.StatefulSet)))
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			report("%s was not there before", name)
		}
	}
	return lost
}

// sets reads all StatefulSets from etcd.
func sets(t testing.TB, etcd *clientv3.Client) map[string]framework.StoredStatefulSet {
	t.Helper()
	stored, err := framework.StoredStatefulSets(t.Context(), etcd)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// setName is the name of an object.
func setName(i int) string { return fmt.Sprintf("set-%05d", i) }

// statefulSet is object number i. No two are alike.
func statefulSet(i int) *appsv1.StatefulSet {
	set := framework.StatefulSet(setName(i), intstr.FromInt(i%7+1))
	set.Annotations = map[string]string{"keep": fmt.Sprint("this ", i)}
	set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(int32(i % 5))
	if i < bystanders {
		set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	}
	return set
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
	api := client.AppsV1().StatefulSets(objectNS)
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
