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
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/kubernetes-features/test/benchmark/measure"
)

const (
	// keysUnderWay is how many transactions with one key are under way.
	keysUnderWay = 64
	// mostKeys is how many keys a transaction has where many are wanted, of which
	// transactionsUnderWay are under way. Etcd allows 128 operations.
	mostKeys             = 120
	transactionsUnderWay = 4
	// mostBytes is how large a transaction becomes at most; etcd allows 1.5 MiB. It has 68 objects of
	// 20 KiB.
	mostBytes = 1400 * measure.KiB
	// fewestTransactions is how many there are at least, so that marks lie apart.
	fewestTransactions = 10
)

// rewriter returns what writes all objects again as they are stored, so many in one
// transaction and so many transactions under way, and does nothing else.
func rewriter(keys, underWay int) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		most := min(keys, max(1, w.now.objects/fewestTransactions))
		rewrite := func(ctx context.Context, objects []*mvccpb.KeyValue) error { return rewrite(ctx, w.Etcd, objects) }
		return spread(ctx, underWay, underWay, rewrite, func(ctx context.Context, give func([]*mvccpb.KeyValue) error) error {
			return eachPage(ctx, w.Etcd, plainPage, func(page []*mvccpb.KeyValue) error {
				for len(page) > 0 {
					n := fitting(page, most)
					if err := give(page[:n]); err != nil {
						return err
					}
					page = page[n:]
				}
				return nil
			})
		})
	}
}

// fitting returns how many of the first objects, most at most, one transaction has room for:
// one at least.
func fitting(objects []*mvccpb.KeyValue, most int) int {
	bytes := 0
	for i, kv := range objects[:min(most, len(objects))] {
		// The guard has the key once more.
		if bytes += 2*len(kv.Key) + len(kv.Value); bytes > mostBytes && i > 0 {
			return i
		}
	}
	return min(most, len(objects))
}

// rewrite writes objects as they were read, if none of them was written meanwhile.
func rewrite(ctx context.Context, etcd *clientv3.Client, objects []*mvccpb.KeyValue) error {
	var guards []clientv3.Cmp
	var puts []clientv3.Op
	for _, kv := range objects {
		guards = append(guards, clientv3.Compare(clientv3.ModRevision(string(kv.Key)), "=", kv.ModRevision))
		puts = append(puts, clientv3.OpPut(string(kv.Key), string(kv.Value)))
	}
	answer, err := etcd.Txn(ctx).If(guards...).Then(puts...).Commit()
	if err != nil {
		return fmt.Errorf("writing %s and %d more: %w", objects[0].Key, len(objects)-1, err)
	}
	if !answer.Succeeded {
		return fmt.Errorf("writing %s and %d more: one was changed since it was read; end what else writes StatefulSets", objects[0].Key, len(objects)-1)
	}
	return nil
}
