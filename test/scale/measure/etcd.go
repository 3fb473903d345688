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

package measure

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Stored is what etcd keeps below a prefix.
type Stored struct {
	// Keys is how many keys there are, Bytes what keys and values have together, of
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
