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

package disruption

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	featurescheme "k8s.io/feature-lifecycle/client/clientset/versioned/scheme"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// strike is a disruption in the middle of a transition, when some objects have been cleared
// and others have not.
type strike struct {
	// whole and short are how often it comes in the two forms.
	whole, short int
	// part is the part of the objects before the end of which it comes.
	part float64
	// again is true if it comes twice in every second transition.
	again bool
	// begin begins it, and returns what ends it.
	begin func(context.Context, *world) (end func(context.Context) error, err error)
	// lasts is the time that it lasts; nil: until another server has finished.
	lasts func(settings, *rand.Rand) time.Duration
	// blind is true for one while which etcd cannot be read.
	blind bool
	// while describes why nothing can be cleared while it lasts, "" if it can.
	while string
	// after describes what may not move anything, for how long.
	after string
	still time.Duration
}

// mostLate is how many in a row may come when the clearing is over: the test hears of an
// object a moment after it was cleared, on a loaded machine a long one.
const mostLate = 5

// do does it in as many transitions as it takes. A transition that had ended before shows
// nothing and does not count.
func (s strike) do(t *testing.T, w *world, row *row) {
	random := w.random(row.name)
	times := form(w.settings, s.whole, s.short)
	for number, n, late := 1, 0, 0; n < times; number++ {
		most := 1
		if s.again && number%2 == 0 {
			most = min(2, times-n)
		}
		// The test is to see the transition from its beginning, however long servers start.
		r := w.holdOff(t, row)
		w.pause(t, false)
		hits := s.hit(t, r, random, most)
		if late++; hits > 0 {
			late = 0
		} else if r.begun = time.Now(); late > mostLate {
			t.Fatalf("%d times it came when all objects were cleared; this shows nothing", late)
		}
		took := r.restOff(t)
		if s.after != "" {
			r.still(t, s.after, s.still)
			r.judge(t)
		}
		n += hits
		w.said("%s, %d of %d: L2: Off %.1f s after it, or its end if that was later; S1, S2, S3, S7 hold: %t", row.name, n, times, took.Seconds(), !t.Failed())
	}
}

// hit lets it come most times in a round at the most, and returns how often it came in time.
func (s strike) hit(t *testing.T, r *round, random *rand.Rand, most int) (hits int) {
	w, moment := r.w, 0
	off := func() bool { return r.history.Last().Status.State == v1alpha1.StateOff }
	for range most {
		moment += 1 + random.IntN(int(float64(w.bare.objects-moment)*s.part))
		r.cleared(t, moment)
		if off() {
			break
		}
		r.begun = time.Now()
		end, err := s.begin(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		late := false
		if !s.blind {
			left := r.left(t)
			w.said("%s after %d of %d objects; %d are left", r.row.name, moment, w.bare.objects, left)
			late = left == 0
		}
		if s.lasts == nil {
			r.restOff(t)
		} else {
			hold(t.Context(), s.lasts(w.settings, random))
			late = s.while != "" && r.over(t, s.while) || late
		}
		finished := off()
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !finished {
			r.begun = time.Now()
		}
		if late {
			break
		}
		r.row.happened()
		hits++
	}
	return hits
}

func killLeader(ctx context.Context, w *world) (end func(context.Context) error, err error) {
	leader := w.bare.leader.name
	return func(ctx context.Context) error { return w.start(ctx, leader) }, w.kill(ctx, leader)
}

func freezeLeader(ctx context.Context, w *world) (end func(context.Context) error, err error) {
	p, err := w.stop(ctx, w.bare.leader.name)
	return func(context.Context) error { return p.Signal(unix.SIGCONT) }, err
}

func cutLeader(_ context.Context, w *world) (end func(context.Context) error, err error) {
	link := w.bare.links[w.bare.leader.name]
	link.Sever()
	return func(context.Context) error { link.Mend(); return nil }, nil
}

func restartEtcd(ctx context.Context, w *world) (end func(context.Context) error, err error) {
	return func(ctx context.Context) error { return w.start(ctx, localcluster.Etcd) }, w.kill(ctx, localcluster.Etcd)
}

// fillEtcd raises the alarm that etcd raises when its quota is used up: it refuses every
// write, also those by which servers say that they live.
func fillEtcd(ctx context.Context, w *world) (end func(context.Context) error, err error) {
	return func(ctx context.Context) error {
		if _, err := w.etcd.Defragment(ctx, w.cluster.EtcdEndpoint()); err != nil {
			return fmt.Errorf("defragmenting etcd: %w", err)
		}
		return w.alarm(ctx, pb.AlarmRequest_DEACTIVATE)
	}, w.alarm(ctx, pb.AlarmRequest_ACTIVATE)
}

// How long a disruption lasts.
func atOnce(settings, *rand.Rand) time.Duration { return 0 }
func seconds(_ settings, random *rand.Rand) time.Duration {
	return time.Duration(1+random.IntN(5)) * time.Second
}
func aMinute(settings, *rand.Rand) time.Duration       { return time.Minute }
func spaceless(s settings, _ *rand.Rand) time.Duration { return form(s, 50*time.Second, 5*time.Second) }

// pause sets spec.paused through a server.
func (w *world) pause(t *testing.T, paused bool) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"paused":%t}}`, paused)
	client := w.bare.witness.features.FeaturesV1alpha1().Features(systemNS)
	framework.Eventually(t, "spec.paused to be written", func() error {
		_, err := client.Patch(t.Context(), static, mergePatch, []byte(patch), metav1.PatchOptions{})
		return err
	})
}

// paused sets spec.paused before a transition starts, while it waits for uses,
// and while it clears. Nothing moves until it is unset.
func paused(t *testing.T, w *world, row *row) {
	random := w.random(row.name)
	before := func(t *testing.T) *round { return w.holdOff(t, row) }
	waiting := func(t *testing.T) *round {
		r := w.turnOff(t, row)
		r.history.Wait(t, r.mark, "waiting for uses", func(v framework.FeatureVersion) bool { return len(v.Status.Tasks) == 2 })
		w.pause(t, true)
		return r
	}
	middle := func(t *testing.T) *round {
		r := w.turnOff(t, row)
		r.cleared(t, 1+random.IntN(w.bare.objects/2))
		w.pause(t, true)
		return r
	}
	for _, at := range form(w.settings, []func(*testing.T) *round{before, waiting, middle, middle}, []func(*testing.T) *round{middle}) {
		r := at(t)
		held := r.history.Wait(t, r.mark, "paused or Off", func(v framework.FeatureVersion) bool {
			return framework.Because(v1alpha1.ConditionProgressing, v1alpha1.ReasonPaused)(v) && v.Spec.Paused || v.Status.State == v1alpha1.StateOff
		})
		if held.Status.State == v1alpha1.StateOff {
			t.Log("the transition ended before the pause was stored")
		}
		// Writes that were under way arrive.
		hold(t.Context(), time.Second)
		r.still(t, "spec.paused was set", 4*time.Second)
		r.injected()
		state, tasks := held.Status.State, len(held.Status.Tasks)
		w.pause(t, false)
		took := r.restOff(t)
		w.said("paused in %s with %d tasks left: nothing moved; Off %.1f s after it was unset", state, tasks, took.Seconds())
	}
}

// unknown leaves Features of gates that no server knows, as an upgrade does. They
// are written into etcd: only servers may write a status.
func unknown(t *testing.T, w *world, row *row) {
	const kept, old = "RemovedThreeMinorsAgo", "RemovedFourMinorsAgo"
	now := utilversion.MustParse(framework.Minor(framework.UpstreamVersion))
	for name, stored := range map[string]string{kept: now.SubtractMinor(3).String(), old: now.SubtractMinor(4).String()} {
		feature := &v1alpha1.Feature{
			ObjectMeta: metav1.ObjectMeta{Namespace: systemNS, Name: name, UID: uuid.NewUUID(), CreationTimestamp: metav1.Now(), Generation: 1},
			Status:     v1alpha1.FeatureStatus{Stage: v1alpha1.StageAlpha, State: v1alpha1.StateOff, Version: stored, Control: v1alpha1.ControlLocal},
		}
		data, err := runtime.Encode(featurescheme.Codecs.LegacyCodec(v1alpha1.SchemeGroupVersion), feature)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.etcd.Put(t.Context(), framework.FeatureKey(name), string(data)); err != nil {
			t.Fatal(err)
		}
		row.happened()
	}
	begun := time.Now()
	framework.Eventually(t, "the Feature that is too old to be deleted", func() error {
		response, err := w.etcd.Get(t.Context(), framework.FeatureKey(old))
		if err == nil && len(response.Kvs) > 0 {
			err = fmt.Errorf("it is %s", response.Kvs[0].Value)
		}
		return err
	})
	row.recovered(time.Since(begun))
	client := w.bare.witness.features.FeaturesV1alpha1().Features(systemNS)
	w.said("the Feature of four minor versions ago was deleted after %.1f s", time.Since(begun).Seconds())
	framework.Eventually(t, "the other to be shown as unknown", func() error {
		feature, err := client.Get(t.Context(), kept, metav1.GetOptions{})
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(feature.Status.Conditions, v1alpha1.ConditionKnown)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonNotKnown {
			return fmt.Errorf("its conditions are %+v", feature.Status.Conditions)
		}
		return nil
	})
	// A restart of all servers must not take it either.
	w.configureAll(t, w.cluster.Control().FeatureGates == gates(true), w.servers...)
	hold(t.Context(), 5*time.Second)
	response, err := w.etcd.Get(t.Context(), framework.FeatureKey(kept), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	if response.Count != 1 {
		t.Error("the Feature of three minor versions ago is gone; it is kept for three")
		row.lost(0, 1)
	}
}

// alarm raises or ends the alarm. The client's own interface can only end it.
func (w *world) alarm(ctx context.Context, action pb.AlarmRequest_AlarmAction) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	members, err := w.etcd.MemberList(ctx)
	if err != nil {
		return fmt.Errorf("asking for etcd's members: %w", err)
	}
	request := &pb.AlarmRequest{Action: action, MemberID: members.Members[0].ID, Alarm: pb.AlarmType_NOSPACE}
	if _, err := clientv3.RetryMaintenanceClient(w.etcd, w.etcd.ActiveConnection()).Alarm(ctx, request); err != nil {
		return fmt.Errorf("etcd's alarm for no space: %w", err)
	}
	w.bare.spaceless = action == pb.AlarmRequest_ACTIVATE
	return nil
}
