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

package task

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// storedBatch is how many objects are removed from storage after one look
	// at whether the transition is still wanted, and batchPatience how long that
	// may take: a server that was frozen in between must not go on with it.
	storedBatch   = 100
	batchPatience = 5 * time.Second
)

// clearStored deletes what is stored and out of the API's reach: everything when
// this server serves no version of the resource, else what it cannot decode.
func (c clearCollection) clearStored(ctx context.Context, storage Storage, served bool, attempt Attempt) (removed int64, err error) {
	var left []StoredObject
	err = eachStored(ctx, storage, c.resource, func(object StoredObject) error {
		if !served || object.Unreadable != nil {
			left = append(left, object)
		}
		return nil
	})
	for begin := 0; err == nil && begin < len(left); begin += storedBatch {
		var done int64
		done, err = c.clearBatch(ctx, storage, attempt, left[begin:min(begin+storedBatch, len(left))])
		removed += done
		attempt.Report(Progress{Done: removed, Total: int64(len(left)), Message: fmt.Sprintf("%d stored objects removed that the API does not reach", removed)})
	}
	return removed, err
}

// clearBatch deletes some stored objects and returns the first error.
func (c clearCollection) clearBatch(ctx context.Context, storage Storage, attempt Attempt, batch []StoredObject) (removed int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, batchPatience)
	defer cancel()
	if err := attempt.check(ctx); err != nil {
		return 0, err
	}
	var mu sync.Mutex
	inParallel(len(batch), func(i int) {
		deleteErr := storage.Delete(ctx, c.resource, batch[i])
		mu.Lock()
		defer mu.Unlock()
		switch {
		case deleteErr == nil:
			removed++
		case err == nil:
			err = fmt.Errorf("deleting the stored %s: %w", objectName(batch[i].Namespace, batch[i].Name), deleteErr)
		}
	})
	return removed, err
}
