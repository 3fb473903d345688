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

package stored

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// rivalName is the field manager of the rival, and the annotation that it writes.
const rivalName = "rival"

// every is how many objects there are for one that the rival writes.
const every = 25

// rival is a client that writes some of the objects as long as they are cleared.
type rival struct {
	stop context.CancelFunc
	done sync.WaitGroup

	// The rest is for who waited for its end.

	// wrote is what it wrote last to each object.
	wrote  map[string]string
	writes int
	err    error
}

// newRival begins to write the objects through a server that stays.
func newRival(t *testing.T, w *world, before map[string]object) *rival {
	t.Helper()
	var names []string
	for i := 0; i < w.objects; i += every {
		name := fmt.Sprintf("set-%06d", i)
		if framework.HasMaxUnavailable(decode(t, name, before[name].data)) {
			names = append(names, name)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	r := &rival{stop: stop, wrote: map[string]string{}}
	r.done.Go(func() {
		for number := 0; ctx.Err() == nil && r.err == nil; number++ {
			name := names[number%len(names)]
			r.err = r.write(context.WithoutCancel(ctx), w.witness, name, fmt.Sprint(number))
		}
	})
	t.Cleanup(func() {
		stop()
		r.done.Wait()
	})
	return r
}

// write writes the annotation of an object until that succeeded, so that it is known what
// the object has then.
func (r *rival) write(ctx context.Context, s server, name, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, rivalName, value)
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, framework.Patience, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, later)
		defer cancel()
		_, last = s.kube.AppsV1().StatefulSets(objectNS).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: rivalName})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("another client cannot write StatefulSet %s: %w, the last answer: %w", name, err, last)
	}
	r.wrote[name] = value
	r.writes++
	return nil
}

// end stops the rival and returns how often it wrote.
func (r *rival) end(t *testing.T) int {
	t.Helper()
	r.stop()
	r.done.Wait()
	if r.err != nil {
		t.Error(r.err)
	}
	if r.writes == 0 {
		t.Error("another client has written nothing, so there was nothing to lose")
	}
	return r.writes
}

// forget takes what the rival wrote out of an object.
func forget(set *appsv1.StatefulSet) {
	delete(set.Annotations, rivalName)
	var entries []metav1.ManagedFieldsEntry
	for _, entry := range set.ManagedFields {
		if !strings.HasPrefix(entry.Manager, rivalName) {
			entries = append(entries, entry)
		}
	}
	set.ManagedFields = entries
}
