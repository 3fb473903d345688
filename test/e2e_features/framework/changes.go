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
	"maps"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Kept holds what is stored below a prefix of etcd against what was stored there
// before, and reads what was written meanwhile only: most often that is nothing.
type Kept struct {
	etcd   *clientv3.Client
	prefix string
	of     func(t testing.TB, kv *mvccpb.KeyValue) string
	// revision is that of the last look, and known what there was by key.
	revision int64
	known    map[string]string
}

// Keep looks at what is stored below a prefix. What of an object is compared is said
// by of.
func Keep(t testing.TB, etcd *clientv3.Client, prefix string, of func(testing.TB, *mvccpb.KeyValue) string) *Kept {
	t.Helper()
	k := &Kept{etcd: etcd, prefix: prefix, of: of, known: map[string]string{}}
	k.Changes(t)
	return k
}

// Len is the number of objects.
func (k *Kept) Len() int { return len(k.known) }

// Changes returns what was compared, by key, of objects that are not what they were at
// the last look: before and after. Those that came are only in after, those that went
// only in before.
func (k *Kept) Changes(t testing.TB) (before, after map[string]string) {
	t.Helper()
	keys, err := k.etcd.Get(t.Context(), k.prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatalf("reading the keys of %s in etcd: %v", k.prefix, err)
	}
	now, written := map[string]string{}, false
	for _, kv := range keys.Kvs {
		now[string(kv.Key)] = k.known[string(kv.Key)]
		written = written || kv.ModRevision > k.revision
	}
	if written {
		// Both answers are those of one revision.
		objects, err := k.etcd.Get(t.Context(), k.prefix, clientv3.WithPrefix(), clientv3.WithMinModRev(k.revision+1), clientv3.WithRev(keys.Header.Revision))
		if err != nil {
			t.Fatalf("reading %s in etcd: %v", k.prefix, err)
		}
		for _, kv := range objects.Kvs {
			now[string(kv.Key)] = k.of(t, kv)
		}
	}
	k.revision = keys.Header.Revision
	before, after = maps.Clone(k.known), maps.Clone(now)
	k.known = now
	for key, was := range before {
		if is, ok := after[key]; ok && is == was {
			delete(before, key)
			delete(after, key)
		}
	}
	return before, after
}
