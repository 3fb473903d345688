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
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// TestLeaderKilled kills the server that clears the field (kill -9), at moments that are
// spread over the objects, and starts it again. A transition that ends too early is followed
// by another one.
func TestLeaderKilled(t *testing.T) {
	w := newWorld(t, readSettings(t))
	row := newRow(t, "the leader is killed while it clears")
	random := w.random(100)
	for rounds := 0; row.injected < w.kills; rounds++ {
		if rounds > w.kills {
			t.Fatalf("%d kills came in time in %d transitions, want %d; this shows nothing", row.injected, rounds, w.kills)
		}
		r := w.begin(t, row)
		r.watch(t, w.witness)
		r.resume(t)
		step := r.having / (w.kills + 1)
		for at := 0; row.injected < w.kills; {
			next := at + 1 + step/2 + random.IntN(step)
			if next >= r.having {
				break
			}
			r.progress.wait(t, next)
			if err := w.cluster.Kill(t.Context(), w.leader.name); err != nil {
				t.Fatal(err)
			}
			left := w.left(t)
			t.Logf("killed when %d of %d objects had been cleared; %d are left", next, r.having, left)
			if err := w.cluster.Start(t.Context(), w.leader.name); err != nil {
				t.Fatal(err)
			}
			if left == 0 {
				break
			}
			row.injected++
			at = r.having - left
		}
		r.end(t)
	}
}

// TestTwoLeaders freezes the server that clears the field (SIGSTOP) until another one has
// taken over, as the host of a virtual machine may. Once it continues, both clear the same
// objects.
func TestTwoLeaders(t *testing.T) {
	s := readSettings(t)
	if !s.long {
		t.Skip("another server takes over after a minute; FAULTS_SHORT=false")
	}
	w := newWorld(t, s)
	row := newRow(t, "the leader freezes, and continues beside the next one")
	r := w.begin(t, row)
	r.watch(t, w.witness)
	r.resume(t)
	r.progress.wait(t, r.having/4)
	signal := func(s unix.Signal) {
		if err := w.cluster.Signal(w.leader.name, s); err != nil {
			t.Errorf("sending %s to %s: %v", s, w.leader.name, err)
		}
	}
	signal(unix.SIGSTOP)
	defer signal(unix.SIGCONT)
	frozen := r.having - w.left(t)
	next := frozen + (r.having-frozen)/8
	r.progress.wait(t, next)
	signal(unix.SIGCONT)
	left := w.left(t)
	t.Logf("it froze when %d of %d objects had been cleared, and continued when %d were left", frozen, r.having, left)
	if left == 0 {
		t.Error("the next leader was done before the first one continued; this shows nothing")
	}
	row.injected++
	r.end(t)
}

// TestDisturbed is what happens to one cluster whose processes all live.
func TestDisturbed(t *testing.T) {
	w := newWorld(t, readSettings(t))
	for _, tc := range []struct {
		name string
		test func(*testing.T, *world, *row)
	}{
		{"etcd is compacted while objects are cleared", compacted},
		{"etcd is slow", slow},
		{"etcd is at its size limit", full},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.test(t, w, newRow(t, tc.name)) })
		if t.Failed() {
			// What it left would be taken for the fault of the next one.
			return
		}
	}
}

// compacted takes past revisions from etcd at several moments, each time those from before
// the last one. Compaction up to the present would end watches of etcd that are a moment
// behind, those of kube-apiserver's caches too, whoever writes.
func compacted(t *testing.T, w *world, row *row) {
	r := w.begin(t, row)
	r.watch(t, w.leader, w.witness)
	r.resume(t)
	const times = 8
	past := int64(0)
	for i := 1; i <= times; i++ {
		r.progress.wait(t, i*r.having/(times+1))
		now, err := w.revision(t.Context())
		if err == nil && past > 0 {
			err = w.compactAt(t.Context(), past)
			row.injected++
		}
		if err != nil {
			t.Fatal(err)
		}
		past = now
	}
	r.end(t)
}

// slow makes every message between servers and etcd take longer.
func slow(t *testing.T, w *world, row *row) {
	const delay = 20 * time.Millisecond
	r := w.begin(t, row)
	r.watch(t, w.leader, w.witness)
	delayed := func(delay time.Duration) {
		for _, s := range w.servers {
			s.link.Delay(delay)
		}
	}
	delayed(delay)
	defer delayed(0)
	begun := time.Now()
	r.resume(t)
	row.injected++
	r.progress.wait(t, r.having)
	t.Logf("%d objects took %s with %s to etcd and as much back", r.having, time.Since(begun).Round(time.Millisecond), delay)
	r.end(t)
}

// forServers is the space that servers take when they start.
const forServers = 1 << 20

// full gives etcd less space than clearing needs, again and again after someone made some.
func full(t *testing.T, w *world, row *row) {
	// It is restarted before the servers are, which would have to read all of it again and
	// end the watches of their clients.
	r := w.begin(t, row, func() {
		size, err := w.shrink(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		objects, _ := w.stored(t)
		bytes := int64(0)
		for _, object := range objects {
			bytes += int64(len(object.data))
		}
		w.limit(t, size+forServers+bytes/4)
	})
	defer w.limit(t, 0)
	r.watch(t, w.leader, w.witness)
	r.resume(t)
	for r.fills(t) {
		row.injected++
		left := w.left(t)
		w.cluster.WaitForLog(w.leader.name, "Attempt at a task ended", "database space exceeded")
		if now := w.left(t); now != left {
			t.Errorf("etcd has no space, and %d objects were cleared", left-now)
		}
		t.Logf("etcd has no space and %d of %d objects are left", left, r.having)
		if err := w.makeSpace(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if row.injected == 0 {
		t.Error("etcd was never full; this shows nothing")
	}
	// The end writes, too, and the last of the objects may have taken what was left.
	if err := w.makeSpace(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.end(t)
	told := false
	for _, v := range w.history.Since(r.mark) {
		for _, task := range v.Status.Tasks {
			told = told || strings.Contains(task.Message, "database space exceeded")
		}
	}
	if !told {
		t.Error("the Feature has never named the cause")
	}
}

// fills waits until etcd is full, and returns false when the transition ended first.
func (r *round) fills(t *testing.T) (full bool) {
	t.Helper()
	framework.Eventually(t, "etcd to be full, or all objects to be cleared", func() error {
		alarms, err := r.w.etcd.AlarmList(t.Context())
		if err != nil {
			return err
		}
		if full = len(alarms.Alarms) > 0; !full && !r.over() {
			return errors.New("neither is")
		}
		return nil
	})
	return full
}

// revision is etcd's at this moment.
func (w *world) revision(ctx context.Context) (int64, error) {
	found, err := w.etcd.Get(ctx, "revision", clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("reading etcd's revision: %w", err)
	}
	return found.Header.Revision, nil
}

// compactAt takes all revisions before one from etcd.
func (w *world) compactAt(ctx context.Context, revision int64) error {
	if _, err := w.etcd.Compact(ctx, revision, clientv3.WithCompactPhysical()); err != nil {
		return fmt.Errorf("compacting etcd at revision %d: %w", revision, err)
	}
	return nil
}

// compact takes all past revisions from etcd.
func (w *world) compact(ctx context.Context) error {
	revision, err := w.revision(ctx)
	if err != nil {
		return err
	}
	return w.compactAt(ctx, revision)
}

// shrink makes etcd as small as it can be, and returns its size.
func (w *world) shrink(ctx context.Context) (int64, error) {
	if err := w.compact(ctx); err != nil {
		return 0, err
	}
	if _, err := w.etcd.Defragment(ctx, w.cluster.EtcdEndpoint()); err != nil {
		return 0, fmt.Errorf("defragmenting etcd: %w", err)
	}
	status, err := w.etcd.Status(ctx, w.cluster.EtcdEndpoint())
	if err != nil {
		return 0, fmt.Errorf("reading etcd's size: %w", err)
	}
	return status.DbSize, nil
}

// makeSpace is what an administrator does when etcd is full.
func (w *world) makeSpace(ctx context.Context) error {
	if _, err := w.shrink(ctx); err != nil {
		return err
	}
	if _, err := w.etcd.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		return fmt.Errorf("ending etcd's alarm: %w", err)
	}
	return nil
}

// limit restarts etcd with a limit for its size, 0 for the default.
func (w *world) limit(t *testing.T, quota int64) {
	t.Helper()
	w.cluster.SetArgs(localcluster.Etcd, fmt.Sprintf("--quota-backend-bytes=%d", quota))
	err := w.cluster.Stop(t.Context(), localcluster.Etcd)
	if err == nil {
		err = w.cluster.Start(t.Context(), localcluster.Etcd)
	}
	if err != nil {
		t.Fatalf("restarting etcd with a limit of %d bytes: %v", quota, err)
	}
}
