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

package framework

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Below is what etcd has below a prefix, by key.
func Below(t testing.TB, etcd *clientv3.Client, prefix string) map[string][]byte {
	t.Helper()
	found, err := etcd.Get(t.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatalf("reading what is below %s in etcd: %v", prefix, err)
	}
	stored := map[string][]byte{}
	for _, kv := range found.Kvs {
		stored[string(kv.Key)] = kv.Value
	}
	return stored
}

// KeysBelow is which keys etcd has below a prefix, each with the revision of its last
// write.
func KeysBelow(t testing.TB, etcd *clientv3.Client, prefix string) map[string]int64 {
	t.Helper()
	found, err := etcd.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatalf("reading the keys below %s in etcd: %v", prefix, err)
	}
	revisions := map[string]int64{}
	for _, kv := range found.Kvs {
		revisions[string(kv.Key)] = kv.ModRevision
	}
	return revisions
}
