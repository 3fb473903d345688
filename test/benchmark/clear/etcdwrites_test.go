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

package clear

import (
	"io"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"k8s.io/kubernetes-features/test/benchmark/testbed"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// TestGuardedWritesLeaveObjectsAsTheyWere writes all objects of an etcd again, once alone and
// once together, and then one that has changed since it was read.
func TestGuardedWritesLeaveObjectsAsTheyWere(t *testing.T) {
	const objects = 130
	bed := &testbed.Bed{BinDir: filepath.Join("..", "..", "..", "_output", "bin"), Out: io.Discard}
	cluster, err := bed.Start(t.Context(), localcluster.Config{Only: []string{localcluster.Etcd}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := load(t.Context(), cluster.Etcd, statefulSetsLike(small.template()), objects); err != nil {
		t.Fatal(err)
	}
	w := &world{Cluster: cluster, now: &run{objects: objects}}
	var before []*mvccpb.KeyValue
	for version, m := range []method{{}, oneKey, manyKeys} {
		if m.run != nil {
			if err := m.run(t.Context(), w); err != nil {
				t.Fatalf("%s: %v", m.name, err)
			}
		}
		var all []*mvccpb.KeyValue
		err := eachPage(t.Context(), cluster.Etcd, batch, func(page []*mvccpb.KeyValue) error {
			all = append(all, page...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != objects {
			t.Fatalf("after %q there are %d objects, want %d", m.name, len(all), objects)
		}
		for i, kv := range all {
			if kv.Version != int64(version+1) {
				t.Errorf("after %q %s has been written %d times, want %d", m.name, kv.Key, kv.Version, version+1)
			}
			if before != nil && string(kv.Value) != string(before[i].Value) {
				t.Errorf("%q has changed %s", m.name, kv.Key)
			}
		}
		if before == nil {
			before = all
		}
	}
	found, err := look(t.Context(), cluster.Etcd)
	if err != nil {
		t.Fatal(err)
	}
	if err := found.unchanged(); err != nil {
		t.Error(err)
	}
	if err := rewrite(t.Context(), cluster.Etcd, before[:1]); err == nil {
		t.Error("an object was written that had changed since it was read")
	}
}
