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

package measure

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Stored is what etcd keeps below a prefix.
type Stored struct {
	// Keys is the number of keys, Bytes what keys and values have together, of
	// their present versions.
	Keys, Bytes int64
}

// storedPage is how many keys one request reads.
const storedPage = 500

// StoredBelow reads everything below a prefix, page by page.
func StoredBelow(ctx context.Context, etcd *clientv3.Client, prefix string) (Stored, error) {
	var stored Stored
	end := clientv3.GetPrefixRangeEnd(prefix)
	for from := prefix; ; {
		page, err := etcd.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(storedPage))
		if err != nil {
			return stored, fmt.Errorf("reading %s from etcd: %w", prefix, err)
		}
		for _, kv := range page.Kvs {
			stored.Keys++
			stored.Bytes += int64(len(kv.Key) + len(kv.Value))
		}
		if !page.More {
			return stored, nil
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}

// Database is the state of an etcd.
type Database struct {
	// Size is that of the file, InUse what of it is not free, both in bytes.
	Size, InUse int64
	// Revision grows by one with every transaction that writes.
	Revision int64
}

// DatabaseOf asks the first endpoint of a client.
func DatabaseOf(ctx context.Context, etcd *clientv3.Client) (Database, error) {
	status, err := etcd.Status(ctx, etcd.Endpoints()[0])
	if err != nil {
		return Database{}, fmt.Errorf("asking etcd for its state: %w", err)
	}
	return Database{Size: status.DbSize, InUse: status.DbSizeInUse, Revision: status.Header.Revision}, nil
}

const (
	// compactKey is where kube-apiserver writes up to which revision it let etcd forget
	// the past (apiserver's storage/etcd3/compact.go).
	compactKey = "compact_rev_key"
	// cacheCompaction is how often a watch cache asks for that revision, and forgets, too
	// (apiserver's storage/cacher/compactor.go).
	cacheCompaction = 15 * time.Second
)

// compactionPatience is the time that a compaction may take at most: kube-apiserver's usual interval is
// five minutes, and what is there now is compacted after two of them.
const compactionPatience = 15 * time.Minute

// UntilCompacted waits until kube-apiserver has let etcd forget all that has been
// overwritten by now, and its watch caches have forgotten it, too. It compacts at each
// --etcd-compaction-interval what was there at the one before.
func UntilCompacted(ctx context.Context, etcd *clientv3.Client) error {
	database, err := DatabaseOf(ctx, etcd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), compactionPatience)
	defer cancel()
	// From the present on: the servers write the key each time.
	for response := range etcd.Watch(ctx, compactKey) {
		if err := response.Err(); err != nil {
			return fmt.Errorf("watching %s in etcd: %w", compactKey, err)
		}
		for _, event := range response.Events {
			revision, err := strconv.ParseInt(string(event.Kv.Value), 10, 64)
			if err != nil {
				return fmt.Errorf("%s in etcd is no revision: %w", compactKey, err)
			}
			if revision >= database.Revision {
				return Pause(ctx, 2*cacheCompaction)
			}
		}
	}
	return fmt.Errorf("watching %s in etcd: %w", compactKey, cmp.Or(ctx.Err(), errWatchEnded))
}
