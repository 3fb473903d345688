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

package controlplane

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apiserver/pkg/storage/value"
)

const (
	// firstStoredPage is the number of stored objects that the first read returns, and
	// mostStored the most that one does. Between them a page has about storedPageBytes.
	firstStoredPage, mostStored = 50, 500
	storedPageBytes             = 4 << 20
)

// storedPages reads the stored objects of a resource, of all namespaces or one, page by
// page. It is safe for concurrent use.
type storedPages struct {
	at place
	// begin is the prefix of the keys, and limit how many are read next.
	begin string
	limit atomic.Int64
}

func newStoredPages(at place, namespace string) *storedPages {
	p := &storedPages{at: at, begin: at.prefix}
	if namespace != "" {
		p.begin += namespace + "/"
	}
	p.limit.Store(firstStoredPage)
	return p
}

// storedObject is an object as etcd has it, decrypted.
type storedObject struct {
	key      string
	revision int64
	plain    []byte
}

// read calls visit for some objects, the first behind from, a key without the prefix, ""
// for the beginning. It returns how many these are, how many remain behind them, and where
// to go on, "" at the end.
func (p *storedPages) read(ctx context.Context, from string, visit func(storedObject) error) (objects, remaining int64, next string, err error) {
	page, err := p.at.read(ctx, p.begin, from, p.limit.Load(), visit)
	if page.next != "" {
		p.limit.Store(min(max(storedPageBytes*page.objects/max(page.bytes, 1), 1), mostStored))
	}
	return page.objects, page.remaining, page.next, err
}

// storedPage is what a read of stored objects was of.
type storedPage struct {
	// objects and bytes were read, and remaining objects follow.
	objects, bytes, remaining int64
	// next is the last key without the prefix, "" at the end.
	next string
}

// read calls visit for at most limit objects below a prefix, the first behind from.
func (p place) read(ctx context.Context, prefix, from string, limit int64, visit func(storedObject) error) (storedPage, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	begin := prefix
	if from != "" {
		// The key right behind the last one.
		begin += from + "\x00"
	}
	found, err := p.client.Get(ctx, begin, clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)), clientv3.WithLimit(limit))
	if err != nil {
		return storedPage{}, fmt.Errorf("reading the stored %s: %w", p.resource, err)
	}
	page := storedPage{objects: int64(len(found.Kvs))}
	for _, kv := range found.Kvs {
		page.bytes += int64(len(kv.Value))
		object, err := p.decrypted(ctx, kv)
		if err == nil {
			err = visit(object)
		}
		if err != nil {
			return storedPage{}, err
		}
	}
	page.remaining = found.Count - page.objects
	if found.More {
		page.next = strings.TrimPrefix(string(found.Kvs[len(found.Kvs)-1].Key), prefix)
	}
	return page, nil
}

// decrypted returns an object of etcd.
func (p place) decrypted(ctx context.Context, kv *mvccpb.KeyValue) (storedObject, error) {
	key := string(kv.Key)
	plain, _, err := p.transformer().TransformFromStorage(ctx, kv.Value, value.DefaultContext(key))
	if err != nil {
		return storedObject{}, fmt.Errorf("decrypting the stored object %s: %w", key, err)
	}
	return storedObject{key: key, revision: kv.ModRevision, plain: plain}, nil
}
