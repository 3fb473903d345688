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

package api

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// What the KEP says that objects have at most, in bytes of etcd, in a cluster of
// three nodes in which nothing moves.
const (
	mostOfAFeature        = 4 << 10
	mostOfAServersReport  = 64 << 10
	mostOfAnothersReport  = 24 << 10
	mostBytesOfTheCluster = 1 << 20
)

// TestCost prints what the system stores and asks for, which the KEP quotes, and
// holds the bounds above. A start creates each Feature once (L3), a restart none.
func TestCost(t *testing.T) {
	t.Parallel()
	const nodes = 3
	c := framework.Start(t, localcluster.Config{Nodes: nodes})
	c.WaitForReports("of every process", func(reports []v1alpha1.FeatureReport) bool { return len(reports) == 3+2*nodes })
	var created int
	framework.Eventually(t, "every Feature to be created", func() error {
		list, err := c.Features.FeaturesV1alpha1().Features(system).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, f := range list.Items {
			if f.Status.State == "" || len(f.Status.Conditions) < 7 {
				return fmt.Errorf("%s is %q with conditions %+v", f.Name, f.Status.State, f.Status.Conditions)
			}
		}
		if created = len(list.Items); created == 0 {
			return errors.New("there is none")
		}
		return nil
	})

	etcd := c.Etcd()
	total := 0
	for _, kind := range []struct {
		name, prefix string
		most         func(key string) int
	}{
		{"Features", framework.FeaturesKey, func(string) int { return mostOfAFeature }},
		{"FeatureReports", "/registry/featurereports/kube-system/", func(key string) int {
			if strings.Contains(key, "/kube-apiserver.") {
				return mostOfAServersReport
			}
			return mostOfAnothersReport
		}},
	} {
		sizes := map[string]int{}
		response, err := etcd.Get(t.Context(), kind.prefix, clientv3.WithPrefix())
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range response.Kvs {
			key := string(kv.Key)
			sizes[key] = len(kv.Value)
			total += len(kv.Key) + len(kv.Value)
			if most := kind.most(key); len(kv.Value) > most {
				t.Errorf("%s has %d bytes, more than %d", key, len(kv.Value), most)
			}
		}
		if len(sizes) == 0 {
			t.Fatalf("etcd has no %s", kind.name)
		}
		describe(t, kind.name, sizes)
	}
	t.Logf("keys and values of all of them: %d bytes", total)
	if total > mostBytesOfTheCluster {
		t.Errorf("the system stores %d bytes, more than %d", total, mostBytesOfTheCluster)
	}

	creates := "features.k8s.io POST features"
	logRequests(t, "since the start", c.Requests())
	if got, want := c.Requests()[creates], created; got != want {
		t.Errorf("L3: %d requests created %d Features", got, want)
	}
	if err := c.Restart(t.Context(), nil, localcluster.APIServer); err != nil {
		t.Fatal(err)
	}
	c.WaitForMetrics(`feature_lifecycle_running{namespace="kube-system"} 1`)
	after := c.Requests()
	logRequests(t, "since a restart of kube-apiserver", after)
	if got := after[creates]; got != 0 {
		t.Errorf("L3: a restart makes %d requests that create Features", got)
	}
}

// describe prints how many objects there are, and how large.
func describe(t *testing.T, kind string, sizes map[string]int) {
	t.Helper()
	sum := 0
	for _, size := range sizes {
		sum += size
	}
	bySize := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return cmp.Or(cmp.Compare(sizes[b], sizes[a]), cmp.Compare(a, b)) })
	t.Logf("%d %s: %d bytes together, %d each on average, from %d to %d", len(sizes), kind, sum, sum/len(sizes), sizes[bySize[len(bySize)-1]], sizes[bySize[0]])
	for _, key := range bySize[:min(len(bySize), 10)] {
		t.Logf("  %s: %d bytes", key, sizes[key])
	}
}

// logRequests prints the requests to the group.
func logRequests(t *testing.T, when string, requests map[string]int) {
	t.Helper()
	for _, what := range slices.Sorted(maps.Keys(requests)) {
		if strings.HasPrefix(what, "features.k8s.io ") {
			t.Logf("%s: %s: %d", when, what, requests[what])
		}
	}
}
